package kinds

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/schema"
)

// Limits of a catalogue that is read from a folder.
const (
	// MaxFiles is the maximum number of files.
	MaxFiles = 1000
	// MaxFileBytes is the maximum size of a file in bytes.
	MaxFileBytes = 1 << 20
	// MaxBytes is the maximum size of all files together in bytes.
	MaxBytes = 16 << 20
)

// Embedded returns the catalogue that is built into the gateway.
func Embedded() (*Schema, error) { return Read(EmbeddedFiles(), "schema/v1") }

// EmbeddedFiles returns the folder of the built-in catalogue, including its released versions.
func EmbeddedFiles() fs.FS {
	v1, err := fs.Sub(schema.Files, "v1")
	if err != nil {
		panic(err) // "v1" is a valid path
	}
	return v1
}

// maxReads is the maximum number of times that a folder is read because it was replaced while it was being read.
const maxReads = 5

// ReadDir reads a catalogue from the files in a folder that end in .graphqls. If it is not valid, the error is
// [Findings]. If the folder is replaced meanwhile, it is read again.
func ReadDir(dir string) (schema *Schema, err error) {
	err = ReadFolder(dir, func(files fs.FS) error {
		schema, err = Read(files, dir)
		return err
	})
	return schema, err
}

// ReadFolder calls read with the files of a folder. If the folder was replaced meanwhile, it calls read again, so that
// old and new files are never mixed.
func ReadFolder(dir string, read func(fs.FS) error) error {
	for n := 1; ; n++ {
		info, err := os.Stat(dir)
		if err != nil {
			return fmt.Errorf("catalogue: %w", err)
		}
		if !info.IsDir() {
			return fmt.Errorf("catalogue: %s is not a folder", dir)
		}
		err = read(os.DirFS(dir))
		if now, gone := os.Stat(dir); gone == nil && os.SameFile(info, now) || n == maxReads {
			return err
		}
	}
}

// Read reads a catalogue from a file system. dir is the name of the folder in findings.
func Read(files fs.FS, dir string) (*Schema, error) {
	texts, err := Files(files, dir)
	if err != nil {
		return nil, err
	}
	return ReadTexts(texts, dir)
}

// ReadTexts reads a catalogue from the contents of files, by name. dir is the name of the folder in findings.
func ReadTexts(texts map[string]string, dir string) (*Schema, error) {
	if err := checkCount(len(texts), dir); err != nil {
		return nil, err
	}
	var sources []*ast.Source
	total := 0
	for _, name := range slices.Sorted(maps.Keys(texts)) {
		if len(texts[name]) > MaxFileBytes {
			return nil, fmt.Errorf("catalogue: %s: %w", path.Join(dir, name), errFileSize())
		}
		total += len(texts[name])
		if total > MaxBytes {
			return nil, errSize(dir)
		}
		sources = append(sources, &ast.Source{Name: path.Join(dir, name), Input: texts[name]})
	}
	product, err := embedded("access/*.graphqls", true) // the kinds that every catalogue has
	if err != nil {
		return nil, err
	}
	return Load(append(sources, product...)...)
}

// Files returns the contents of the files of a catalogue, by name.
func Files(files fs.FS, dir string) (map[string]string, error) {
	entries, err := fs.ReadDir(files, ".")
	if err != nil {
		return nil, fmt.Errorf("catalogue: %s: %w", dir, err)
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool { return path.Ext(e.Name()) != ".graphqls" })
	if err := checkCount(len(entries), dir); err != nil {
		return nil, err
	}
	texts, total := map[string]string{}, 0
	for _, e := range entries {
		name := e.Name()
		text, err := ReadFile(files, name)
		if err != nil {
			return nil, fmt.Errorf("catalogue: %s: %w", path.Join(dir, name), err)
		}
		total += len(text)
		if total > MaxBytes {
			return nil, errSize(dir)
		}
		texts[name] = text
	}
	return texts, nil
}

// checkCount returns an error if a catalogue has no files or too many.
func checkCount(n int, dir string) error {
	switch {
	case n == 0:
		return fmt.Errorf("catalogue: %s has no file that ends in .graphqls", dir)
	case n > MaxFiles:
		return fmt.Errorf("catalogue: %s has %d files; at most %d are read", dir, n, MaxFiles)
	}
	return nil
}

func errFileSize() error { return fmt.Errorf("the file has more than %d bytes", MaxFileBytes) }

func errSize(dir string) error {
	return fmt.Errorf("catalogue: the files of %s have more than %d bytes", dir, MaxBytes)
}

// ReadFile returns the contents of a file of a catalogue.
func ReadFile(files fs.FS, name string) (string, error) {
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
	raw, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	if err == nil && len(raw) > MaxFileBytes {
		err = errFileSize()
	}
	return string(raw), err
}

// Descriptors returns the descriptors of all kinds. They share everything that they point to with s.
func (s *Schema) Descriptors() []descriptor.Kind {
	out := make([]descriptor.Kind, len(s.Kinds))
	for i := range s.Kinds {
		out[i] = s.Kinds[i].Kind
	}
	return out
}
