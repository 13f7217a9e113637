// Package manifest parses and writes manifests, the form of resources in files: a YAML or JSON document with
// apiVersion, kind, metadata and spec. It does not depend on kinds.
package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// MaxBytes is the maximum size of a document in bytes. The largest resource, 1 MiB when stored, is smaller even with
// indentation and escapes.
const MaxBytes = 4 << 20

// ErrEmpty is returned for a document without content.
var ErrEmpty = errors.New("the document is empty")

// Document is a manifest that was parsed but not validated. [Document.JSON] writes its fields in the order of this
// struct.
type Document struct {
	APIVersion string `json:"apiVersion"`
	// Version is a short form of APIVersion.
	Version  string   `json:"-"`
	Kind     string   `json:"kind"`
	SubKind  string   `json:"subKind,omitempty"`
	Metadata Metadata `json:"metadata"`
	// Spec is the spec as it is written; nil if it is absent.
	Spec json.RawMessage `json:"spec,omitempty"`
	// Placed are the other top-level keys. They are fields of the spec that the kind places there
	// ([descriptor.Field.ManifestAt]), or unknown keys.
	Placed map[string]json.RawMessage `json:"-"`
}

// Metadata is the metadata of a manifest. A nil field is absent.
type Metadata struct {
	Name        string            `json:"name"`
	Namespace   *string           `json:"namespace,omitempty"`
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	Description *string           `json:"description,omitempty"`
	ExpiresAt   *time.Time        `json:"expiresAt,omitempty"`
	Revision    *string           `json:"-"`
	// ClearedLabels and ClearedAnnotations are the keys whose value is null, in order.
	ClearedLabels      []string `json:"-"`
	ClearedAnnotations []string `json:"-"`
	// Cleared are the fields that are null. They can be labels, annotations, description and expiresAt.
	Cleared []string `json:"-"`
}

// UnknownError is the error for a key that manifests do not have.
type UnknownError struct {
	// Path is the path of the key, such as "metadata.nam".
	Path string
	// Accepted are the keys that are accepted there.
	Accepted []string
}

func (e *UnknownError) Error() string {
	path := e.Path
	if r := []rune(path); len(r) > maxShown {
		path = string(r[:maxShown]) + "…"
	}
	return fmt.Sprintf("%s is not a field of a manifest; accepted are %s", path, strings.Join(e.Accepted, ", "))
}

// Unknown returns the error for an unknown top-level key. placed are the fields that the kind places there.
func Unknown(key string, placed []string) error {
	return &UnknownError{Path: key, Accepted: append(strings.Fields(topKeys), placed...)}
}

// TypeError is the error for a value of the wrong type outside of the spec.
type TypeError struct {
	// Path is the path of the field, such as "metadata.labels".
	Path string
	// Want describes which values are accepted.
	Want string
}

func (e *TypeError) Error() string { return e.Path + " must be " + e.Want }

// maxShown is the maximum length of a key that an error contains, in characters.
const maxShown = 64

// The keys of a manifest, separated by spaces. The keys that the gateway owns are ignored.
const (
	topKeys       = "apiVersion version kind subKind metadata spec"
	topOwned      = "status"
	metadataKeys  = "name namespace labels annotations description expiresAt revision"
	clearable     = "labels annotations description expiresAt"
	metadataOwned = "uid generation createdAt updatedAt updatedBy deletionRequestedAt finalizers " +
		"creationTimestamp deletionTimestamp resourceVersion managedFields selfLink" // Kubernetes' own
)

// Owned reports whether a key of the metadata belongs to the gateway, so that it is ignored in manifests.
func Owned(key string) bool { return slices.Contains(strings.Fields(metadataOwned), key) }
