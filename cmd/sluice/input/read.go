// Package input reads the input of commands: documents in files and folders, with the line of each field, and selectors
// of resources. Selectors are tests of labels in the syntax of kubectl, or of fields that the kind offers for filters.
package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MaxBytes is the default of [Source.Limit].
const MaxBytes = 256 << 20

// Standard is the file name for the standard input.
const Standard = "-"

// Source is the source of documents.
type Source struct {
	// Files are files, folders, or [Standard]. In folders, the files with the suffixes .yaml, .yml and .json are read.
	Files []string
	// Recursive also reads subfolders, except those whose names begin with a dot.
	Recursive bool
	// Stdin is read instead of a file named [Standard].
	Stdin io.Reader
	// Limit is the maximum size of all files together, in bytes. Default: MaxBytes.
	Limit int64
}

// Read reads all documents, in the order of the files. It returns an error if there are none, unless a file has an
// empty List, which `get -o json` may print, or an empty array.
func (s Source) Read() ([]Document, error) {
	docs := []Document{}
	listed := false
	if s.Limit <= 0 {
		s.Limit = MaxBytes
	}
	left := s.Limit
	for _, name := range s.Files {
		paths := []string{name}
		if info, err := os.Stat(name); name != Standard && err == nil && info.IsDir() {
			if paths, err = s.folder(name); err != nil {
				return nil, err
			}
		}
		for _, path := range paths {
			data, err := s.file(path, left)
			if err != nil {
				return nil, err
			}
			left -= int64(len(data))
			more, isList, err := split(shown(path), data)
			if err != nil {
				return nil, err
			}
			docs, listed = append(docs, more...), listed || isList
		}
	}
	if len(docs) == 0 && !listed {
		return nil, fmt.Errorf("no document in %s", s.Names())
	}
	return docs, nil
}

// Names returns the names of the files for messages.
func (s Source) Names() string {
	names := make([]string, len(s.Files))
	for i, name := range s.Files {
		names[i] = shown(name)
	}
	return strings.Join(names, ", ")
}

// folder returns the files in a folder, in the order of their names.
func (s Source) folder(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && (!s.Recursive || strings.HasPrefix(e.Name(), ".")):
			return fs.SkipDir // a hidden folder, such as .git
		case !e.IsDir() && slices.Contains([]string{".yaml", ".yml", ".json"}, filepath.Ext(path)):
			info, err := os.Stat(path) // e may be a link
			if err == nil && !info.Mode().IsRegular() {
				err = fmt.Errorf("%s is no regular file; name it itself to have it read", path)
			}
			paths = append(paths, path)
			return err
		}
		return nil
	})
	if err == nil && len(paths) == 0 {
		hint := ""
		if !s.Recursive {
			hint = "; -R reads the folders in it too"
		}
		err = fmt.Errorf("%s holds no .yaml, .yml or .json file%s", root, hint)
	}
	return paths, err
}

func (s Source) file(path string, left int64) ([]byte, error) {
	in := s.Stdin
	if path != Standard {
		f, err := os.Open(path)
		if err != nil {
			return nil, err
		}
		defer func() { _ = f.Close() }()
		in = f
	}
	data, err := io.ReadAll(io.LimitReader(in, left+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", shown(path), err)
	case int64(len(data)) > left:
		return nil, fmt.Errorf("%s: all files have more than %d bytes together", shown(path), s.Limit)
	case !utf8.Valid(data):
		return nil, fmt.Errorf("%s is not UTF-8", shown(path))
	}
	return data, nil
}

// shown returns the name of a file for messages.
func shown(path string) string {
	if path == Standard {
		return "standard input"
	}
	return path
}

// split splits a file into documents. YAML is split at its markers and JSON between its values. A list is replaced by
// its elements. listed reports whether there is a list.
func split(file string, data []byte) (docs []Document, listed bool, err error) {
	var found list
	text := bytes.TrimPrefix(data, []byte("\ufeff"))
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) && json.Valid(text) {
		listed, err = true, found.addElements(text, 1)
	} else {
		for _, part := range manifest.Split(string(data)) {
			if err = found.addPart(part); err != nil {
				break
			}
		}
		listed = found.listed
	}
	if err == nil {
		err = refuseForeignAliases(found.docs)
	}
	if at, ok := errors.AsType[*lineError](err); ok {
		return nil, false, fmt.Errorf("%s:%d: %w", file, at.line, at.err)
	}
	for i, d := range found.docs {
		d.File, d.Number = file, i+1
		docs = append(docs, d.read())
	}
	return docs, listed, err
}

// errForeignAlias is the error for a YAML alias whose anchor is in an earlier document.
var errForeignAlias = errors.New("the anchor of this alias is in an earlier document of the file; repeat the value")

// refuseForeignAliases returns an error if a document has an alias whose anchor is in an earlier document. In YAML an
// anchor is only valid in its document. Such a document would fail only after the earlier ones had been sent.
func refuseForeignAliases(docs []Document) error {
	for i, d := range docs[min(1, len(docs)):] {
		if d.node != nil || !strings.Contains(d.Text, "*") {
			continue
		}
		_, err := manifest.ParseYAML(d.Text)
		unknown, ok := errors.AsType[*manifest.AnchorError](err)
		if !ok {
			continue
		}
		anchor := regexp.MustCompile(`(^|[\s\[{,:-])&` + regexp.QuoteMeta(unknown.Name) + `($|[\s,\]}])`)
		if slices.ContainsFunc(docs[:i+1], func(before Document) bool { return anchor.MatchString(before.Text) }) {
			return &lineError{d.Line + unknown.Line - 1, errForeignAlias}
		}
	}
	return nil
}
