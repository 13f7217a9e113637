// Package input reads what people give to commands: documents of files and folders, of which it knows on
// which line of its file each field stands, and what chooses resources: labels, as kubectl has it, and the
// fields that a kind declares for filters.
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
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MaxBytes is the most that is read of all files together, unless [Source.Limit] says less.
const MaxBytes = 256 << 20

// Standard is the name of the standard input among files.
const Standard = "-"

// Source says where documents are.
type Source struct {
	// Files are names of files and folders, or [Standard]. Of a folder its .yaml, .yml
	// and .json files are read.
	Files []string
	// Recursive reads the folders of folders too.
	Recursive bool
	// Stdin is read for the name [Standard].
	Stdin io.Reader
	// Limit of all files together, in bytes. Default: MaxBytes.
	Limit int64
}

// Read reads all documents, in the order of the files. It is an error if there is none, unless
// there is an empty List, as `get -o json` prints it, or an empty array.
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

// Names returns the names of the files for people.
func (s Source) Names() string {
	names := make([]string, len(s.Files))
	for i, name := range s.Files {
		names[i] = shown(name)
	}
	return strings.Join(names, ", ")
}

// folder lists the files of a folder, in the order of their names.
func (s Source) folder(root string) ([]string, error) {
	var paths []string
	err := filepath.WalkDir(root, func(path string, e fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case e.IsDir() && path != root && !s.Recursive:
			return fs.SkipDir
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

// shown returns the name of a file for people.
func shown(path string) string {
	if path == Standard {
		return "standard input"
	}
	return path
}

// split cuts a file into its documents: at YAML's markers, and lists at their elements. listed
// reports whether there is a list.
func split(file string, data []byte) (docs []Document, listed bool, err error) {
	add := func(more ...Document) {
		for _, d := range more {
			d.File, d.Number = file, len(docs)+1
			docs = append(docs, d.read())
		}
	}
	if bytes.HasPrefix(bytes.TrimSpace(data), []byte("[")) && json.Valid(data) {
		add(elements(data, 1)...)
		return docs, true, nil
	}
	for _, part := range manifest.Split(string(data)) {
		items, isList, err := list(part)
		if err != nil {
			return nil, false, fmt.Errorf("%s:%d: %w", file, part.Line, err)
		}
		if !isList {
			items = []Document{{Line: part.Line, Text: part.Text}}
		}
		listed = listed || isList
		add(items...)
	}
	return docs, listed, nil
}

// elements returns the elements of a valid JSON array that begins on a line.
func elements(array []byte, line int) (docs []Document) {
	dec := json.NewDecoder(bytes.NewReader(array))
	_, _ = dec.Token()
	for at := 0; dec.More(); {
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		begin := int(dec.InputOffset()) - len(raw)
		line, at = line+bytes.Count(array[at:begin], []byte("\n")), begin
		docs = append(docs, Document{Line: line, Text: string(raw)})
	}
	return docs
}

// withoutItems returns the error about a document of kind List without items. It returns nil if the document
// has a name: it may be a resource, since a catalogue can have a kind called List.
func withoutItems(named bool) error {
	if named {
		return nil
	}
	return errors.New("a List has items, a list of manifests; write items: [] if there are none")
}

// named reports whether a document has a name.
func named(document *yaml.Node) bool {
	metadata := member(document, "metadata")
	return metadata != nil && member(metadata, "name") != nil
}

// list returns the items of a document of kind List, as kubectl writes them.
func list(part manifest.Part) ([]Document, bool, error) {
	if !strings.Contains(part.Text, "List") {
		return nil, false, nil
	}
	if json.Valid([]byte(part.Text)) {
		return listJSON(part)
	}
	var root yaml.Node
	if err := yaml.Unmarshal([]byte(part.Text), &root); err != nil || len(root.Content) != 1 {
		return nil, false, nil // the gateway explains the error when the document is sent
	}
	items := member(root.Content[0], "items")
	if kind := member(root.Content[0], "kind"); kind == nil || kind.Value != "List" {
		return nil, false, nil
	}
	if items == nil || items.Kind != yaml.SequenceNode {
		return nil, false, withoutItems(named(root.Content[0]))
	}
	var keys []string
	for i := 0; i < len(root.Content[0].Content); i += 2 {
		keys = append(keys, root.Content[0].Content[i].Value)
	}
	if err := checkListKeys(keys); err != nil {
		return nil, true, err
	}
	var docs []Document
	for _, item := range items.Content {
		text, err := yaml.Marshal(item)
		if err != nil {
			return nil, true, err
		}
		docs = append(docs, Document{Line: part.Line + item.Line - 1, Text: string(text), node: item, base: part.Line - 1})
	}
	return docs, true, nil
}

// listJSON returns the items of a document of kind List in valid JSON, so that decoding it again has no errors.
func listJSON(part manifest.Part) ([]Document, bool, error) {
	text := []byte(part.Text)
	dec := json.NewDecoder(bytes.NewReader(text))
	if begin, _ := dec.Token(); begin != json.Delim('{') {
		return nil, false, nil
	}
	var keys []string
	values, line := map[string]json.RawMessage{}, part.Line
	for dec.More() {
		key, _ := dec.Token()
		var raw json.RawMessage
		_ = dec.Decode(&raw)
		if keys, values[key.(string)] = append(keys, key.(string)), raw; key == "items" {
			line = part.Line + bytes.Count(text[:int(dec.InputOffset())-len(raw)], []byte("\n"))
		}
	}
	if string(values["kind"]) != `"List"` {
		return nil, false, nil
	}
	if !bytes.HasPrefix(values["items"], []byte("[")) {
		var metadata struct{ Name any }
		_ = json.Unmarshal(values["metadata"], &metadata) // a value that is no object has no name
		return nil, false, withoutItems(metadata.Name != nil)
	}
	if err := checkListKeys(keys); err != nil {
		return nil, true, err
	}
	return elements(values["items"], line), true, nil
}

// checkListKeys refuses keys of a List that would be ignored, with the documents that they may hold.
func checkListKeys(keys []string) error {
	known := []string{"apiVersion", "kind", "metadata", "items"}
	for i, key := range keys {
		switch {
		case !slices.Contains(known, key):
			return fmt.Errorf("%q is not a field of a List; accepted are %s", key, strings.Join(known, ", "))
		case slices.Contains(keys[:i], key):
			return fmt.Errorf("%s is given twice in a List", key)
		}
	}
	return nil
}
