package kinds

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/schema"
)

// Limits of a catalogue that is read from a folder.
const (
	maxFiles     = 1000
	maxFileBytes = 1 << 20
)

// Embedded is the catalogue that is compiled into the gateway.
func Embedded() (*Schema, error) {
	v1, err := fs.Sub(schema.Files, "v1")
	if err != nil {
		return nil, err
	}
	return read(v1, "schema/v1")
}

// ReadDir reads the catalogue of a folder: all its files that end in .graphqls.
// What it refuses is [Findings].
func ReadDir(dir string) (*Schema, error) {
	info, err := os.Stat(dir)
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	if !info.IsDir() {
		return nil, fmt.Errorf("catalogue: %s is not a folder", dir)
	}
	return read(os.DirFS(dir), dir)
}

func read(files fs.FS, dir string) (*Schema, error) {
	names, err := fs.Glob(files, "*.graphqls")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %w", err)
	}
	switch n := len(names); {
	case n == 0:
		return nil, fmt.Errorf("catalogue: %s has no file that ends in .graphqls", dir)
	case n > maxFiles:
		return nil, fmt.Errorf("catalogue: %s has %d files; at most %d are read", dir, n, maxFiles)
	}
	var sources []*ast.Source
	for _, name := range names {
		text, err := readFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", path.Join(dir, name), err)
		}
		sources = append(sources, &ast.Source{Name: path.Join(dir, name), Input: text})
	}
	return Load(sources...)
}

func readFile(files fs.FS, name string) (string, error) {
	info, err := fs.Stat(files, name)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() { // a pipe may never end
		return "", errors.New("it is no regular file")
	}
	f, err := files.Open(name)
	if err != nil {
		return "", err
	}
	defer func() { _ = f.Close() }()
	raw, err := io.ReadAll(io.LimitReader(f, maxFileBytes+1))
	if err == nil && len(raw) > maxFileBytes {
		err = fmt.Errorf("the file has more than %d bytes", maxFileBytes)
	}
	return string(raw), err
}

// Descriptors are those of all kinds.
func (s *Schema) Descriptors() []descriptor.Kind {
	out := make([]descriptor.Kind, len(s.Kinds))
	for i := range s.Kinds {
		out[i] = s.Kinds[i].Kind
	}
	return out
}
