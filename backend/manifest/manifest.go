// Package manifest reads and writes the file form of a resource: a YAML or JSON
// document with apiVersion, kind, metadata and spec. It knows no kind.
package manifest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/yaml"
)

// MaxBytes is the most one document may have.
const MaxBytes = 1 << 20

// ErrEmpty is returned for a document without content.
var ErrEmpty = errors.New("the document is empty")

// Document is one manifest, read but not judged.
type Document struct {
	APIVersion string
	// Version is the specification's short form of APIVersion.
	Version  string
	Kind     string
	SubKind  string
	Metadata Metadata
	// Spec as written; nil if absent.
	Spec json.RawMessage
	// Ignored are the keys that the server owns and that were dropped, like "status".
	Ignored []string
}

// Metadata of a manifest. Nil means absent.
type Metadata struct {
	Name        string
	Namespace   *string
	Labels      map[string]string
	Annotations map[string]string
	Description *string
	Revision    *string
}

// UnknownError is a key that a manifest does not have.
type UnknownError struct {
	// Path of the key, like "metadata.nam".
	Path string
	// Accepted are the keys that may stand in its place.
	Accepted []string
}

func (e *UnknownError) Error() string {
	return fmt.Sprintf("%s is not a field of a manifest; accepted are %s", e.Path, strings.Join(e.Accepted, ", "))
}

// Keys of a manifest. The server's own are dropped where they stand.
const (
	topKeys       = "apiVersion version kind subKind metadata spec"
	topOwned      = "status"
	metadataKeys  = "name namespace labels annotations description revision"
	metadataOwned = "uid generation createdAt updatedAt deletionRequestedAt " +
		"creationTimestamp deletionTimestamp resourceVersion managedFields selfLink" // Kubernetes' own
)

// Parse reads one document. Keys that stand twice are refused, so are unknown
// ones outside the spec.
func Parse(text string) (*Document, error) {
	if len(text) > MaxBytes {
		return nil, fmt.Errorf("the document has %d bytes, at most %d are accepted", len(text), MaxBytes)
	}
	switch docs := Split(text); len(docs) {
	case 0:
		return nil, ErrEmpty
	case 1:
	default:
		return nil, fmt.Errorf("%d documents, one is wanted", len(docs))
	}
	raw, err := yaml.YAMLToJSONStrict([]byte(text))
	if err != nil {
		return nil, fmt.Errorf("not acceptable as YAML: %s", strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  "))
	}
	var top map[string]json.RawMessage
	if err := json.Unmarshal(raw, &top); err != nil || top == nil {
		return nil, errors.New("a mapping with apiVersion, kind, metadata and spec is wanted")
	}
	d := &Document{}
	if d.Ignored, err = sift(top, "", topKeys, topOwned); err != nil {
		return nil, err
	}
	var meta map[string]json.RawMessage
	r := reader{}
	r.into(top, "", "apiVersion", &d.APIVersion)
	r.into(top, "", "version", &d.Version)
	r.into(top, "", "kind", &d.Kind)
	r.into(top, "", "subKind", &d.SubKind)
	r.into(top, "", "metadata", &meta)
	if r.err != nil {
		return nil, r.err
	}
	ignored, err := sift(meta, "metadata.", metadataKeys, metadataOwned)
	if err != nil {
		return nil, err
	}
	d.Ignored = append(d.Ignored, ignored...)
	r.into(meta, "metadata.", "name", &d.Metadata.Name)
	r.into(meta, "metadata.", "namespace", &d.Metadata.Namespace)
	r.into(meta, "metadata.", "labels", &d.Metadata.Labels)
	r.into(meta, "metadata.", "annotations", &d.Metadata.Annotations)
	r.into(meta, "metadata.", "description", &d.Metadata.Description)
	r.into(meta, "metadata.", "revision", &d.Metadata.Revision)
	if spec := top["spec"]; !bytes.Equal(spec, []byte("null")) {
		d.Spec = spec
	}
	return d, r.err
}

// sift drops the owned keys and refuses the unknown ones.
func sift(m map[string]json.RawMessage, path, known, owned string) (ignored []string, err error) {
	for key := range m {
		switch {
		case slices.Contains(strings.Fields(known), key):
		case slices.Contains(strings.Fields(owned), key):
			ignored = append(ignored, path+key)
			delete(m, key)
		default:
			return nil, &UnknownError{Path: path + key, Accepted: strings.Fields(known)}
		}
	}
	slices.Sort(ignored)
	return ignored, nil
}

type reader struct{ err error }

func (r *reader) into(m map[string]json.RawMessage, path, key string, dst any) {
	raw, ok := m[key]
	if !ok || r.err != nil {
		return
	}
	if err := json.Unmarshal(raw, dst); err != nil {
		want := "a string"
		switch dst.(type) {
		case *map[string]string:
			want = "a mapping of strings to strings (quote numbers and booleans)"
		case *map[string]json.RawMessage:
			want = "a mapping"
		}
		r.err = fmt.Errorf("%s%s must be %s", path, key, want)
	}
}

// Part is one document of a file.
type Part struct {
	Text string
	// Line of the file on which it begins, from 1.
	Line int
}

// Split cuts a stream of YAML documents at its markers; parts without content
// are left out. A line that begins with "---" can be nothing else in YAML.
func Split(text string) []Part {
	var parts []Part
	begin, line := 0, 1
	cut := func(end, next, nextLine int) {
		if part := text[begin:end]; hasContent(part) {
			parts = append(parts, Part{Text: part, Line: line})
		}
		begin, line = next, nextLine
	}
	at := 1
	for pos := 0; pos < len(text); at++ {
		end := len(text)
		if i := strings.IndexByte(text[pos:], '\n'); i >= 0 {
			end = pos + i + 1
		}
		row := strings.TrimRight(text[pos:end], "\r\n")
		if row == "---" || strings.HasPrefix(row, "--- ") || strings.HasPrefix(row, "---\t") {
			next := pos + len("---")
			cut(pos, next, at)
		}
		pos = end
	}
	cut(len(text), len(text), at)
	return parts
}

func hasContent(part string) bool {
	for row := range strings.Lines(part) {
		if row = strings.TrimSpace(row); row != "" && row != "..." && !strings.HasPrefix(row, "#") && !strings.HasPrefix(row, "%") {
			return true
		}
	}
	return false
}

// out fixes the order of keys.
type out struct {
	APIVersion string          `json:"apiVersion"`
	Kind       string          `json:"kind"`
	SubKind    string          `json:"subKind,omitempty"`
	Metadata   outMetadata     `json:"metadata"`
	Spec       json.RawMessage `json:"spec"`
}

type outMetadata struct {
	Name        string            `json:"name"`
	Namespace   *string           `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description *string           `json:"description,omitempty"`
}

// JSON writes the document, indented, without what the server owns.
func (d *Document) JSON() ([]byte, error) {
	m := d.Metadata
	return json.MarshalIndent(out{
		APIVersion: d.APIVersion, Kind: d.Kind, SubKind: d.SubKind, Spec: d.Spec,
		Metadata: outMetadata{Name: m.Name, Namespace: m.Namespace, Labels: m.Labels, Annotations: m.Annotations, Description: m.Description},
	}, "", "  ")
}

// YAML writes the document, keys in alphabetical order, without what the server owns.
func (d *Document) YAML() ([]byte, error) {
	raw, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return yaml.JSONToYAML(raw)
}
