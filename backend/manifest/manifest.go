// Package manifest reads and writes the file form of a resource: a YAML or JSON
// document with apiVersion, kind, metadata and spec. It knows no kind.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxBytes is the most bytes of one document. The largest resource (1 MiB stored) has
// fewer, even with indentation and escapes.
const MaxBytes = 4 << 20

// ErrEmpty is returned for a document without content.
var ErrEmpty = errors.New("the document is empty")

// Document is a manifest that was parsed and not validated. [Document.JSON] writes it in the order
// of the fields.
type Document struct {
	APIVersion string `json:"apiVersion"`
	// Version is the short form of APIVersion in the specifications.
	Version  string   `json:"-"`
	Kind     string   `json:"kind"`
	SubKind  string   `json:"subKind,omitempty"`
	Metadata Metadata `json:"metadata"`
	// Spec as written; nil if absent.
	Spec json.RawMessage `json:"spec,omitempty"`
	// Placed are further keys at the top: fields of the spec that the kind places there, see
	// [descriptor.Field.ManifestAt], or unknown keys.
	Placed map[string]json.RawMessage `json:"-"`
}

// Metadata of a manifest. Nil means absent.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   *string           `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description *string           `json:"description,omitempty"`
	ExpiresAt   *time.Time        `json:"expiresAt,omitempty"`
	Revision    *string           `json:"-"`
	// ClearedLabels and ClearedAnnotations are the keys, in order, whose value is null.
	ClearedLabels      []string `json:"-"`
	ClearedAnnotations []string `json:"-"`
	// Cleared are the names of labels, annotations, description and expiresAt that are null.
	Cleared []string `json:"-"`
}

// UnknownError is the error of a key that manifests do not have.
type UnknownError struct {
	// Path of the key, like "metadata.nam".
	Path string
	// Accepted are the keys that are accepted in its place.
	Accepted []string
}

func (e *UnknownError) Error() string {
	path := e.Path
	if r := []rune(path); len(r) > maxShown {
		path = string(r[:maxShown]) + "…"
	}
	return fmt.Sprintf("%s is not a field of a manifest; accepted are %s", path, strings.Join(e.Accepted, ", "))
}

// Unknown returns the error of a key at the top that the kind does not place there.
func Unknown(key string, placed []string) error {
	return &UnknownError{Path: key, Accepted: append(strings.Fields(topKeys), placed...)}
}

// TypeError is the error of a value at the head of a manifest that has the wrong type.
type TypeError struct {
	// Path of the field, like "metadata.labels".
	Path string
	// Want describes the accepted values.
	Want string
}

func (e *TypeError) Error() string { return e.Path + " must be " + e.Want }

// maxShown is the most characters of a key that an error repeats.
const maxShown = 64

// Keys of a manifest. Those that the gateway owns are dropped.
const (
	topKeys       = "apiVersion version kind subKind metadata spec"
	topOwned      = "status"
	metadataKeys  = "name namespace labels annotations description expiresAt revision"
	clearable     = "labels annotations description expiresAt"
	metadataOwned = "uid generation createdAt updatedAt updatedBy deletionRequestedAt finalizers " +
		"creationTimestamp deletionTimestamp resourceVersion managedFields selfLink" // Kubernetes' own
)

// Owned reports whether the gateway owns a key of the metadata, so that the key is
// dropped from a manifest.
func Owned(key string) bool { return slices.Contains(strings.Fields(metadataOwned), key) }
