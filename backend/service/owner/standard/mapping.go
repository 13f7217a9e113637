package standard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MaxMapping is the most bytes of a mapping.
const MaxMapping = 1 << 20

// None as a value of a mapping says that the API does not have it, where a convention would find something.
const None = "-"

// Itself as a path is the message itself.
const Itself = "."

// Mapping says which messages and methods of an API are kinds and their verbs. What it leaves out is found by
// conventions, if there is exactly one message or method that they fit.
type Mapping struct {
	// Descriptors is the path of the file with the descriptors, relative to the file of the mapping.
	Descriptors string `json:"descriptors,omitempty"`
	// Kinds are the kinds by their names.
	Kinds map[string]*KindMapping `json:"kinds"`
}

// KindMapping says how a kind is expressed in an API. Paths are names of fields as the .proto file has them, joined by
// dots, from the message of the resource.
type KindMapping struct {
	// Message is the full name of the message of a resource, and Service the full name of the service with its methods.
	Message string `json:"message,omitempty"`
	Service string `json:"service,omitempty"`
	// Spec is the path of what callers set, and Status of what the service tells. Itself: all fields of the resource
	// that are nothing else; its output-only fields are the status.
	Spec   string `json:"spec,omitempty"`
	Status string `json:"status,omitempty"`
	// Name is the path of the name, and Namespace of the namespace; without one the kind is GLOBAL.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Pattern is the form of names that hold the whole place of a resource, such as projects/{namespace}/topics/{name}.
	Pattern string `json:"pattern,omitempty"`
	// Namespaces are those whose resources are listed, if the names have a pattern with a namespace. Default: "-",
	// which is all of them (AIP-159).
	Namespaces []string `json:"namespaces,omitempty"`
	// Tag is the path of what another version has another one of, such as etag.
	Tag string `json:"tag,omitempty"`
	// Unconditional says that updates do not heed the tag.
	Unconditional bool   `json:"unconditional,omitempty"`
	UID           string `json:"uid,omitempty"`
	Labels        string `json:"labels,omitempty"`
	Annotations   string `json:"annotations,omitempty"`
	Description   string `json:"description,omitempty"`
	CreatedAt     string `json:"createdAt,omitempty"`
	DeletedAt     string `json:"deletedAt,omitempty"`
	// Set are the texts that each resource has, by their paths, such as kind and version.
	Set map[string]string `json:"set,omitempty"`
	// Omit are paths of fields that are neither shown nor changed, and Text those of 64-bit integers that are texts,
	// since they are not within 2^53.
	Omit []string `json:"omit,omitempty"`
	Text []string `json:"text,omitempty"`

	Get    *MethodMapping `json:"get,omitempty"`
	List   *MethodMapping `json:"list,omitempty"`
	Create *MethodMapping `json:"create,omitempty"`
	Update *MethodMapping `json:"update,omitempty"`
	Upsert *MethodMapping `json:"upsert,omitempty"`
	Delete *MethodMapping `json:"delete,omitempty"`
	Watch  *MethodMapping `json:"watch,omitempty"`
}

// MethodMapping says how a method is called. Paths are those of fields of its request, unless they are said to be
// others.
type MethodMapping struct {
	// Method is its name, or its full name (package.Service.Method) if it is another service's.
	Method string `json:"method,omitempty"`
	// Key is the field with the name, and Namespace the one with the namespace. With a pattern, Key has the whole name.
	Key       string `json:"key,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Parent has the part of the pattern before the collection, and ID the name alone, of create and list.
	Parent string `json:"parent,omitempty"`
	ID     string `json:"id,omitempty"`
	// Resource has the resource that is written.
	Resource string `json:"resource,omitempty"`
	// Mask has the names of the fields that change.
	Mask string `json:"mask,omitempty"`
	// Tag has the tag of the resource that is changed, besides the resource itself.
	Tag string `json:"tag,omitempty"`
	// DryRun is a field that makes the call a rehearsal, such as validate_only.
	DryRun string `json:"dryRun,omitempty"`
	// RequestID has an id by which the service knows a repeated request.
	RequestID string `json:"requestId,omitempty"`
	// Size and Token are those of a page. Next is the field of the answer with the next token.
	Size  string `json:"size,omitempty"`
	Token string `json:"token,omitempty"`
	Next  string `json:"next,omitempty"`
	// Answer is the field of the answer with the resource, with the resources of a list, or with the resource of an
	// event of a watch. Itself: the answer is the resource.
	Answer string `json:"answer,omitempty"`
	// Operation says that the answer is a google.longrunning.Operation, which is polled.
	Operation bool `json:"operation,omitempty"`
	// Header is the field of an event of a watch that has the place of a resource that is gone, HeaderName the path of
	// its name in it, HeaderNamespace that of its namespace.
	Header          string `json:"header,omitempty"`
	HeaderName      string `json:"headerName,omitempty"`
	HeaderNamespace string `json:"headerNamespace,omitempty"`
	// HeaderIs are texts that the header has if the event is one of this kind, by their paths in it.
	HeaderIs map[string]string `json:"headerIs,omitempty"`
	// Set is what each request has besides, as JSON has it.
	Set json.RawMessage `json:"set,omitempty"`
}

// ParseMapping reads a mapping in YAML or JSON.
func ParseMapping(raw []byte) (*Mapping, error) {
	if len(raw) > MaxMapping {
		return nil, fmt.Errorf("the mapping has %d bytes; at most %d are accepted", len(raw), MaxMapping)
	}
	text, err := manifest.ToJSON(string(raw))
	if err != nil {
		return nil, fmt.Errorf("the mapping: %w", err)
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	out := &Mapping{}
	if err := d.Decode(out); err != nil {
		return nil, fmt.Errorf("the mapping: %w", err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("the mapping: there is something after its end")
	}
	for name, k := range out.Kinds {
		if k == nil {
			out.Kinds[name] = &KindMapping{}
		}
	}
	return out, nil
}

// YAML returns the mapping as a file has it.
func (m *Mapping) YAML() ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return manifest.YAML(raw)
}

// clone returns a copy of the kind that can be completed.
func (k *KindMapping) clone() (*KindMapping, error) {
	raw, err := json.Marshal(k)
	if err != nil {
		return nil, err
	}
	out := &KindMapping{}
	if err := json.Unmarshal(raw, out); err != nil {
		return nil, err
	}
	return out, nil
}
