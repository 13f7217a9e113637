package standard

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MaxMapping is the maximum size of a mapping, in bytes.
const MaxMapping = 1 << 20

// None in place of a path or a method means that the API has none, although a convention would find one.
const None = "-"

// Itself is the path that stands for the message at which paths begin.
const Itself = "."

// Mapping maps the messages and methods of an API to kinds and verbs. Parts may be left out if exactly one message,
// method or field satisfies the conventions.
type Mapping struct {
	// Descriptors is the path of the file with the descriptors, relative to the file of the mapping.
	Descriptors string `json:"descriptors,omitempty"`
	// Kinds maps the names of kinds to their mappings.
	Kinds map[string]*KindMapping `json:"kinds"`
}

// KindMapping maps a message to a kind. Its paths begin at the message of the resource. A path consists of names of
// fields in the .proto file, joined by dots.
type KindMapping struct {
	// Message is the full name of the resource's message. Service is the full name of the service with its methods.
	Message string `json:"message,omitempty"`
	Service string `json:"service,omitempty"`
	// Spec is the path of the fields that callers set. Status is the path of the fields that the service sets. If Spec
	// is Itself, the spec consists of all fields of the resource for which the mapping has no other use. The
	// output-only fields among them are the status.
	Spec   string `json:"spec,omitempty"`
	Status string `json:"status,omitempty"`
	// Name is the path of the name. Namespace is the path of the namespace; if there is none, the kind is GLOBAL.
	Name      string `json:"name,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Pattern is the form of names that include the parents of the resource, such as
	// projects/{namespace}/topics/{name}.
	Pattern string `json:"pattern,omitempty"`
	// Namespaces are the namespaces to list, if the pattern has a namespace. The default is "-", which means all
	// namespaces (AIP-159).
	Namespaces []string `json:"namespaces,omitempty"`
	// Tag is the path of a field whose value differs in each version of the resource, such as etag.
	Tag string `json:"tag,omitempty"`
	// Unconditional reports whether updates ignore the tag.
	Unconditional bool   `json:"unconditional,omitempty"`
	UID           string `json:"uid,omitempty"`
	Labels        string `json:"labels,omitempty"`
	Annotations   string `json:"annotations,omitempty"`
	Description   string `json:"description,omitempty"`
	CreatedAt     string `json:"createdAt,omitempty"`
	DeletedAt     string `json:"deletedAt,omitempty"`
	// Set maps paths to the constant strings that each resource has there, such as its version to v1.
	Set map[string]string `json:"set,omitempty"`
	// Omit are the paths of fields that are not part of the kind. Text are the paths of 64-bit integers that are
	// strings in JSON, because they may be greater than 2^53.
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

// MethodMapping describes how a method is called. Its paths begin at the request, unless stated otherwise.
type MethodMapping struct {
	// Method is the name of the method, or if it belongs to another service, its full name (package.Service.Method).
	Method string `json:"method,omitempty"`
	// Key is the path of the name. Namespace is the path of the namespace. If there is a pattern, Key is the path of
	// the whole name.
	Key       string `json:"key,omitempty"`
	Namespace string `json:"namespace,omitempty"`
	// Parent is the path of the field for the part of the name before the collection, such as projects/p. It is used by
	// list and create. ID is the path of the field for the last part of the name. It is used by create.
	Parent string `json:"parent,omitempty"`
	ID     string `json:"id,omitempty"`
	// Resource is the path of the resource to write.
	Resource string `json:"resource,omitempty"`
	// Mask is the path of the mask with the changed fields.
	Mask string `json:"mask,omitempty"`
	// Tag is the path of the tag, if it is not in the resource.
	Tag string `json:"tag,omitempty"`
	// DryRun is the path of a field that makes the call a dry run, such as validate_only.
	DryRun string `json:"dryRun,omitempty"`
	// RequestID is the path of an id by which the service recognises repeated requests.
	RequestID string `json:"requestId,omitempty"`
	// Size and Token are the paths of the size and the token of a page. Next is the path of the next token; it begins
	// at the answer.
	Size  string `json:"size,omitempty"`
	Token string `json:"token,omitempty"`
	Next  string `json:"next,omitempty"`
	// Answer is the path of the resource; it begins at the answer. For list it is the path of the list of resources,
	// and for watch it begins at an event. If it is Itself, the answer or the event is the resource.
	Answer string `json:"answer,omitempty"`
	// Operation reports whether the answer is a google.longrunning.Operation, which must be polled.
	Operation bool `json:"operation,omitempty"`
	// Header is the path of the identity of a deleted resource; it begins at an event of a watch. HeaderName and
	// HeaderNamespace are the paths of the name and the namespace; they begin at the header.
	Header          string `json:"header,omitempty"`
	HeaderName      string `json:"headerName,omitempty"`
	HeaderNamespace string `json:"headerNamespace,omitempty"`
	// HeaderIs maps paths in the header to the strings by which events of this kind are recognised.
	HeaderIs map[string]string `json:"headerIs,omitempty"`
	// Set is a JSON object with fields that are set in each request.
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

// YAML returns the mapping in YAML.
func (m *Mapping) YAML() ([]byte, error) {
	raw, err := json.Marshal(m)
	if err != nil {
		return nil, err
	}
	return manifest.YAML(raw)
}

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
