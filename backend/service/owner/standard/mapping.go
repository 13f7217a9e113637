package standard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MaxMapping is the maximum size of a mapping in bytes.
const MaxMapping = 1 << 20

// None as a value in a mapping means that the API lacks something which a convention would find.
const None = "-"

// Itself is the path of the message itself.
const Itself = "."

// Mapping maps the messages and methods of an API to kinds and their verbs. What it leaves out is
// found by conventions, if exactly one message or method fits them.
type Mapping struct {
	// Descriptors is the path of the file with the descriptors, relative to the file of the mapping.
	Descriptors string `json:"descriptors,omitempty"`
	// Kinds by name.
	Kinds map[string]*KindMapping `json:"kinds"`
}

// KindMapping maps a message to a kind. Paths begin at the message of the resource; they are names
// of fields in the .proto file, joined by dots.
type KindMapping struct {
	// Message is the full name of the message of a resource, and Service the full name of the service with its methods.
	Message string `json:"message,omitempty"`
	Service string `json:"service,omitempty"`
	// Spec is the path of the fields that callers set, and Status of those that the service sets.
	// If a path is Itself, the spec has all fields of the resource without another meaning, and
	// output-only fields are the status.
	Spec   string `json:"spec,omitempty"`
	Status string `json:"status,omitempty"`
	// Name is the path of the name, and Namespace of the namespace. Without a namespace the kind is
	// GLOBAL.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Pattern is the form of names that include the parents of a resource, such as
	// projects/{namespace}/topics/{name}.
	Pattern string `json:"pattern,omitempty"`
	// Namespaces are the namespaces whose resources are listed, if the pattern has a namespace.
	// Default: "-", which means all (AIP-159).
	Namespaces []string `json:"namespaces,omitempty"`
	// Tag is the path of a field that changes with each version of the resource, such
	// as etag.
	Tag string `json:"tag,omitempty"`
	// Unconditional means that updates ignore the tag.
	Unconditional bool   `json:"unconditional,omitempty"`
	UID           string `json:"uid,omitempty"`
	Labels        string `json:"labels,omitempty"`
	Annotations   string `json:"annotations,omitempty"`
	Description   string `json:"description,omitempty"`
	CreatedAt     string `json:"createdAt,omitempty"`
	DeletedAt     string `json:"deletedAt,omitempty"`
	// Set has constant strings that each resource has, by their paths, such as kind and
	// version.
	Set map[string]string `json:"set,omitempty"`
	// Omit are the paths of fields that are neither shown nor changed. Text are the paths of 64-bit
	// integers that are strings in JSON, because they may exceed 2^53.
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

// MethodMapping describes how a method is called. Paths begin at its request, unless stated
// otherwise.
type MethodMapping struct {
	// Method is its name, or its full name (package.Service.Method) if it belongs to another
	// service.
	Method string `json:"method,omitempty"`
	// Key is the path of the name, and Namespace of the namespace. If there is a pattern, Key has
	// the whole name.
	Key       string `json:"key,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Parent is the path of the part of a name before the collection, and ID of the last part, for
	// create and list.
	Parent string `json:"parent,omitempty"`
	ID     string `json:"id,omitempty"`
	// Resource is the path of the resource to be written.
	Resource string `json:"resource,omitempty"`
	// Mask is the path of the mask with the names of the changed fields.
	Mask string `json:"mask,omitempty"`
	// Tag is the path of the tag, if the request has it outside of the resource.
	Tag string `json:"tag,omitempty"`
	// DryRun is the path of a field that makes the call a dry run, such as
	// validate_only.
	DryRun string `json:"dryRun,omitempty"`
	// RequestID is the path of an id by which the service recognises a repeated
	// request.
	RequestID string `json:"requestId,omitempty"`
	// Size and Token are the paths of the size and the token of a page. Next is the path of
	// the next token in the answer.
	Size  string `json:"size,omitempty"`
	Token string `json:"token,omitempty"`
	Next  string `json:"next,omitempty"`
	// Answer is the path, in the answer, of the resource, of the resources of a list, or of the
	// resource of a watch's event. Itself means that the answer is the resource.
	Answer string `json:"answer,omitempty"`
	// Operation means that the answer is a google.longrunning.Operation, which is
	// polled.
	Operation bool `json:"operation,omitempty"`
	// Header is the path, in an event of a watch, of the identity of a deleted resource. HeaderName
	// and HeaderNamespace are the paths of name and namespace in it.
	Header          string `json:"header,omitempty"`
	HeaderName      string `json:"headerName,omitempty"`
	HeaderNamespace string `json:"headerNamespace,omitempty"`
	// HeaderIs has the strings, by their paths in the header, that identify events of this kind.
	HeaderIs map[string]string `json:"headerIs,omitempty"`
	// Set is JSON that is part of each request.
	Set json.RawMessage `json:"set,omitempty"`
}

// ParseMapping parses a mapping in YAML or JSON.
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

// YAML returns the mapping as the text of a file.
func (m *Mapping) YAML() ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return manifest.YAML(raw)
}

// clone returns a copy that can be completed.
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
