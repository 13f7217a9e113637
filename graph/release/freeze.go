package release

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/kinds"
)

// Next returns why a version cannot be the next one that is released after others, nil if it can.
func Next(number Number, released []*Version) error {
	if len(released) == 0 {
		return nil
	}
	last := released[len(released)-1].Number
	minor := Number{Major: last.Major, Minor: last.Minor + 1}
	major := Number{Major: last.Major + 1}
	if number != minor && number != major {
		return fmt.Errorf("%s cannot follow %s: the next minor version is %s, the next major one %s",
			number, last, minor, major)
	}
	if number == minor {
		return nil
	}
	for _, v := range released {
		if v.Served() {
			return fmt.Errorf("%s cannot be served beside %s: a gateway serves one major; withdraw %s in %s first",
				number, v, v, StatesFile)
		}
	}
	return nil
}

// Dir returns the folder of a version below the folder of its catalogue.
func Dir(dir string, number Number) string { return filepath.Join(dir, Folder, number.String()) }

// Write writes a released version below the folder of its catalogue: sources are the texts of the catalogue's files by
// their names. Either the whole version is there afterwards, or nothing of it.
func Write(dir string, number Number, sources map[string]string, api *ast.Schema) (err error) {
	versions := filepath.Join(dir, Folder)
	if err := os.MkdirAll(versions, 0o777); err != nil {
		return err
	}
	target := Dir(dir, number)
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s is there already", target)
	}
	next, err := os.MkdirTemp(versions, "."+number.String()+"-") // readers pass over it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(next))
		}
	}()
	texts := map[string]string{APIFile: kinds.PrintBare(api)}
	for name, text := range sources {
		texts[name] = text
	}
	for name, text := range texts {
		if err := os.WriteFile(filepath.Join(next, name), []byte(text), 0o666); err != nil {
			return err
		}
	}
	if err := os.Chmod(next, 0o755); err != nil {
		return err
	}
	return os.Rename(next, target)
}
