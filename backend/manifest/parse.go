package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Parse parses one document. It returns an error for repeated keys, and for unknown keys of the metadata. It accepts
// unknown top-level keys, which the caller must check against the kind.
func Parse(text string) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the document has %d bytes, at most %d are accepted", len(text), MaxBytes)
	}
	docs := Split(text)
	switch len(docs) {
	case 0:
		return nil, ErrEmpty
	case 1:
	default:
		return nil, fmt.Errorf("%d documents, one is wanted", len(docs))
	}
	// The newlines are added so that errors have the line numbers of the whole text.
	raw, err := ToJSON(strings.Repeat("\n", docs[0].Line-1) + docs[0].Text)
	if err != nil {
		return nil, err
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return nil, errors.New("a mapping with apiVersion, kind, metadata and spec is wanted")
	}
	d := &Document{}
	for key, value := range top {
		if !slices.Contains(strings.Fields(topKeys+" "+topOwned), key) {
			if d.Placed == nil {
				d.Placed = map[string]json.RawMessage{}
			}
			d.Placed[key] = value
		}
	}
	var meta map[string]json.RawMessage
	r := documentReader{}
	r.into(top, "", "apiVersion", &d.APIVersion)
	r.into(top, "", "version", &d.Version)
	r.into(top, "", "kind", &d.Kind)
	r.into(top, "", "subKind", &d.SubKind)
	r.into(top, "", "metadata", &meta)
	if r.err != nil {
		return nil, r.err
	}
	if err := sift(meta); err != nil {
		return nil, err
	}
	r.into(meta, "metadata.", "name", &d.Metadata.Name)
	r.into(meta, "metadata.", "namespace", &d.Metadata.Namespace)
	r.pairs(meta, "labels", &d.Metadata.Labels, &d.Metadata.ClearedLabels)
	r.pairs(meta, "annotations", &d.Metadata.Annotations, &d.Metadata.ClearedAnnotations)
	r.into(meta, "metadata.", "description", &d.Metadata.Description)
	r.time(meta, "metadata.", "expiresAt", &d.Metadata.ExpiresAt)
	r.into(meta, "metadata.", "revision", &d.Metadata.Revision)
	for _, key := range strings.Fields(clearable) {
		if string(meta[key]) == "null" {
			d.Metadata.Cleared = append(d.Metadata.Cleared, key)
		}
	}
	if spec := top["spec"]; !bytes.Equal(spec, []byte("null")) {
		d.Spec = spec
	}
	return d, r.err
}

// Size returns a lower bound of the number of keys and values in a text, without parsing it.
func Size(text string) (n int) {
	for i := range len(text) {
		switch text[i] {
		case ',', ':', '-', '[', '{', '\n', '\r', '?', '*', '&', '!':
			n++
		}
	}
	return n
}

// sift removes the keys of the metadata that the gateway owns, and returns an error for unknown keys.
func sift(meta map[string]json.RawMessage) error {
	const path = "metadata."
	for key := range meta {
		switch {
		case slices.Contains(strings.Fields(metadataKeys), key):
		case Owned(key):
			delete(meta, key)
		default:
			return &UnknownError{Path: path + key, Accepted: strings.Fields(metadataKeys)}
		}
	}
	return nil
}

type documentReader struct{ err error }

func (r *documentReader) into(m map[string]json.RawMessage, path, key string, dst any) {
	raw, ok := m[key]
	if !ok || r.err != nil {
		return
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		want := "a string"
		switch dst.(type) {
		case *map[string]*string:
			want = "a mapping of strings to strings (quote numbers and Booleans)"
		case *map[string]json.RawMessage:
			want = "a mapping"
		}
		r.err = &TypeError{Path: path + key, Want: want}
	}
}

// pairs parses labels or annotations. It appends the keys with null values to cleared.
func (r *documentReader) pairs(meta map[string]json.RawMessage, key string, set *map[string]string, cleared *[]string) {
	var all map[string]*string
	r.into(meta, "metadata.", key, &all)
	if all == nil {
		return
	}
	*set = map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(all)) {
		if value := all[name]; value == nil {
			*cleared = append(*cleared, name)
		} else {
			(*set)[name] = *value
		}
	}
}

// time parses a time. Null means no time.
func (r *documentReader) time(m map[string]json.RawMessage, path, key string, dst **time.Time) {
	var text *string
	r.into(m, path, key, &text)
	if text == nil || r.err != nil {
		return
	}
	t, err := descriptor.ParseTime(*text)
	if err != nil {
		r.err = &TypeError{Path: path + key, Want: "a time: " + err.Error()}
		return
	}
	*dst = &t
}

// ToJSON converts a text with one value to JSON. If the text is valid JSON, it is parsed as JSON, because YAML does not
// accept all characters that JSON accepts; otherwise it is parsed as YAML. It returns an error for repeated keys, and
// for values that JSON cannot represent. Errors do not contain values.
func ToJSON(text string) ([]byte, error) {
	if raw := []byte(text); json.Valid(raw) {
		if err := checkJSON(raw); err != nil {
			return nil, fmt.Errorf("not acceptable as JSON: %w", err)
		}
		return raw, nil
	}
	root, err := ParseYAML(text)
	if err != nil || root == nil {
		return []byte("null"), err
	}
	return NodeJSON(root)
}

// checkJSON returns an error for repeated keys and for invalid Unicode, both of which encoding/json accepts.
func checkJSON(raw []byte) error {
	if !utf8.Valid(raw) {
		return errors.New("the text is not UTF-8")
	}
	if at := loneSurrogate(raw); at >= 0 {
		return fmt.Errorf("the escape %s is half of a character", raw[at:at+6])
	}
	type level struct {
		keys map[string]bool // nil in a list
		key  bool            // whether the next token is a key
	}
	var levels []level
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	for {
		t, err := dec.Token()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if n := len(levels) - 1; n >= 0 && levels[n].keys != nil && levels[n].key {
			if key, ok := t.(string); ok {
				if levels[n].keys[key] {
					before := raw[:dec.InputOffset()]
					return fmt.Errorf(
						"line %d, column %d: %s", 1+bytes.Count(before, []byte("\n")),
						len(before)-bytes.LastIndexByte(before, '\n')-1, twice(key),
					)
				}
				levels[n].keys[key], levels[n].key = true, false
				continue
			}
		}
		switch t {
		case json.Delim('{'):
			levels = append(levels, level{keys: map[string]bool{}, key: true})
			continue
		case json.Delim('['):
			levels = append(levels, level{})
			continue
		case json.Delim('}'), json.Delim(']'):
			levels = levels[:len(levels)-1]
		}
		if n := len(levels) - 1; n >= 0 {
			levels[n].key = true
		}
	}
}

// loneSurrogate returns the index of the first escape in valid JSON that is an unpaired surrogate; -1 if there is none.
func loneSurrogate(raw []byte) int {
	unit := func(i int) (u rune) {
		if i+6 > len(raw) || raw[i] != '\\' || raw[i+1] != 'u' {
			return 0
		}
		n, _ := strconv.ParseUint(string(raw[i+2:i+6]), 16, 16) // valid JSON has four digits there
		return rune(n)
	}
	for i := 0; i < len(raw); i++ {
		if raw[i] != '\\' {
			continue
		}
		switch u := unit(i); {
		case u >= 0xD800 && u < 0xDC00 && unit(i+6) >= 0xDC00 && unit(i+6) < 0xE000:
			i += 11
		case u >= 0xD800 && u < 0xE000:
			return i
		default:
			i++
		}
	}
	return -1
}
