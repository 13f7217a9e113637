package release

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"go.yaml.in/yaml/v4"

	"github.com/sluicegw/sluice/graph/kinds"
)

// Next returns an error if a version cannot be released after the released ones.
func Next(number Number, released []*Version) error {
	if len(released) == 0 {
		return nil
	}
	if newest := released[len(released)-1]; newest.Candidate {
		if number != newest.Number {
			return fmt.Errorf("%s cannot follow %s, which is a candidate: release %s first", number, newest, newest)
		}
		return nil
	}
	last := released[len(released)-1].Number
	minor := Number{Major: last.Major, Minor: last.Minor + 1}
	major := Number{Major: last.Major + 1}
	if number == minor || number == major {
		return nil
	}
	if number.Major < last.Major {
		return fmt.Errorf("%s cannot follow %s: there are no new minor versions of a major once a newer one was "+
			"released; the next version is %s or %s", number, last, minor, major)
	}
	return fmt.Errorf("%s cannot follow %s: the next minor version is %s, the next major one %s",
		number, last, minor, major)
}

// Dir returns the folder of a version. dir is the folder of the catalogue.
func Dir(dir string, number Number) string { return filepath.Join(dir, Folder, number.String()) }

// Write writes a version, either completely or not at all. dir is the folder of the catalogue. sources are the texts of
// the catalogue's files by name.
func Write(dir string, number Number, sources map[string]string, api *ast.Schema) error {
	versions := filepath.Join(dir, Folder)
	if err := os.MkdirAll(versions, 0o777); err != nil {
		return err
	}
	target := Dir(dir, number)
	if _, err := os.Lstat(target); err == nil {
		return fmt.Errorf("%s is there already", target)
	}
	return write(target, sources, api)
}

// Rewrite replaces a candidate. It has the same parameters as [Write].
func Rewrite(dir string, number Number, sources map[string]string, api *ast.Schema) error {
	target := Dir(dir, number)
	before := filepath.Join(dir, Folder, "."+number.String()+"-before") // readers ignore it
	if err := errors.Join(os.RemoveAll(before), os.Rename(target, before)); err != nil {
		return err
	}
	if err := write(target, sources, api); err != nil {
		return errors.Join(err, os.Rename(before, target))
	}
	return os.RemoveAll(before)
}

// write writes the folder of a version.
func write(target string, sources map[string]string, api *ast.Schema) (err error) {
	next, err := os.MkdirTemp(filepath.Dir(target), "."+filepath.Base(target)+"-") // readers ignore it
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, os.RemoveAll(next))
		}
	}()
	texts := map[string]string{APIFile: kinds.PrintBare(api)}
	maps.Copy(texts, sources)
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

// Freeze releases a version, which must be a candidate, by removing it from the states file of the catalogue. It
// returns an error if the file does not have the version.
func Freeze(dir string, number Number) error {
	name := filepath.Join(dir, Folder, StatesFile)
	text, err := os.ReadFile(name)
	if err != nil {
		return err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(text, &doc); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	at := -1
	if len(doc.Content) > 0 && doc.Content[0].Kind == yaml.MappingNode {
		at = slices.IndexFunc(doc.Content[0].Content, func(n *yaml.Node) bool { return n.Value == number.String() })
	}
	if at < 0 { // the file was changed after it was read with the catalogue
		return fmt.Errorf("%s does not have the candidate %s", name, number)
	}
	states := doc.Content[0]
	states.Content = slices.Delete(states.Content, at, at+2) // a candidate has no other key
	if len(states.Content) == 0 {
		return os.Remove(name)
	}
	if text, err = yaml.Marshal(&doc); err != nil {
		return err
	}
	aside, err := os.MkdirTemp(filepath.Dir(name), ".states-") // readers ignore it
	if err != nil {
		return err
	}
	next := filepath.Join(aside, StatesFile)
	if err = os.WriteFile(next, text, 0o666); err == nil {
		err = os.Rename(next, name)
	}
	return errors.Join(err, os.RemoveAll(aside))
}
