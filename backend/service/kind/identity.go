package kind

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Maximum lengths of names, from RFC 1123 as Kubernetes applies it.
const (
	MaxName      = 253
	MaxNamespace = 63

	maxLabelName  = 63
	maxLabelValue = 63
)

// labelSyntax matches the value of a label, and the name part of its key, by the rules of Kubernetes.
var labelSyntax = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// Name adds a violation if the name of a resource is not valid.
func (v *Violations) Name(at *failure.Path, name string) {
	switch {
	case name == "":
		v.Add(at, "required", nil, "must not be empty")
	case !isName(name):
		v.Add(at, "format", "name", "must be a DNS-1123 subdomain of at most %d characters: lower case letters, digits, '-' and '.', beginning and ending with a letter or digit", MaxName)
	}
}

// isName reports whether a text is a DNS subdomain (labels joined by dots) of at most [MaxName] characters.
func isName(text string) bool {
	if len(text) > MaxName {
		return false
	}
	for label := range strings.SplitSeq(text, ".") {
		if !isLabel(label) {
			return false
		}
	}
	return true
}

// isLabel reports whether a text is a DNS label of any length.
func isLabel(text string) bool {
	for i := range len(text) {
		c := text[i]
		inside := 0 < i && i < len(text)-1
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && (c != '-' || !inside) {
			return false
		}
	}
	return text != ""
}

// Namespace adds a violation if the name of a namespace is not valid.
func (v *Violations) Namespace(at *failure.Path, ns string) {
	switch {
	case ns == "":
		v.Add(at, "required", nil, "must not be empty")
	case !isLabel(ns) || len(ns) > MaxNamespace:
		v.Add(at, "format", "namespace", "must be a DNS label of at most %d characters: lower case letters, digits and '-', beginning and ending with a letter or digit", MaxNamespace)
	}
}

// LabelKey adds a violation if the key of a label or an annotation is not valid.
func (v *Violations) LabelKey(at *failure.Path, key string) {
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		prefix, name = "", key
	}
	if len(name) > maxLabelName || !labelSyntax.MatchString(name) || qualified && !isName(prefix) {
		v.Add(at, "format", "label key", "must be a name of at most %d letters, digits, '-', '_' and '.', optionally after a DNS subdomain and '/'", maxLabelName)
	}
}

// LabelValue adds a violation if the value of a label is not valid.
func (v *Violations) LabelValue(at *failure.Path, value string) {
	if n := len(value); n > maxLabelValue || n > 0 && !labelSyntax.MatchString(value) {
		v.Add(at, "format", "label", "must be empty or at most %d letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", maxLabelValue)
	}
}

// Resolve returns the kind and the key of an identity. It returns an error if the kind is unknown or a name is not
// valid.
func (c Catalogue) Resolve(id Identity) (*Kind, backend.Key, error) {
	k, err := c.Find(id.Kind)
	if err != nil {
		return nil, backend.Key{}, err
	}
	key := backend.Key{Kind: k.Name, Name: id.Name}
	var v Violations
	switch {
	case k.Scope == descriptor.Global:
		if id.Namespace != nil && *id.Namespace != "" {
			return nil, key, failure.BadInput(
				"metadata.namespace", "kind %s is GLOBAL: its resources have no namespace", k.Name,
			).At(key)
		}
	case id.Namespace == nil:
		key.Namespace = descriptor.DefaultNamespace
	default:
		key.Namespace = *id.Namespace
		v.Namespace(failure.At("metadata").Name("namespace"), key.Namespace)
	}
	v.Name(failure.At("metadata").Name("name"), key.Name)
	if err := v.Err(key); err != nil {
		return nil, key, err
	}
	return k, key, nil
}

const idFormat = 1

// GlobalID returns the global id of a resource, which is the same in every version of the API. The id is a format byte
// and the tuple (kind, namespace, name), encoded in base64url.
func GlobalID(key backend.Key) string {
	return base64.RawURLEncoding.EncodeToString(AppendGlobalID(nil, key))
}

// AppendGlobalID appends the bytes of a global id that [GlobalID] encodes in base64url.
func AppendGlobalID(dst []byte, key backend.Key) []byte {
	return key.Append(append(dst, idFormat))
}

// ParseGlobalID returns the key that [GlobalID] has encoded. For any other text it returns BAD_USER_INPUT.
func ParseGlobalID(id string) (backend.Key, error) {
	bad := badID(id)
	if len(id) > 4*backend.MaxKeyBytes {
		return backend.Key{}, bad
	}
	b, err := base64.RawURLEncoding.Strict().DecodeString(id)
	if err != nil || len(b) == 0 || b[0] != idFormat {
		return backend.Key{}, bad
	}
	key, err := backend.DecodeKey(b[1:])
	if err != nil || GlobalID(key) != id {
		return backend.Key{}, bad
	}
	return key, nil
}

func badID(id string) *failure.Error {
	return failure.BadInput("id", "id %q is not an id of this API; take ids from the id field of a resource", failure.Shorten(id))
}

// KeyOf returns the key in the global id of a resource of a known kind. It returns BAD_USER_INPUT if the kind is not
// known, or if the id is not exactly the result of [GlobalID] for the key.
func (c Catalogue) KeyOf(id string) (backend.Key, error) {
	key, err := ParseGlobalID(id)
	if err != nil {
		return backend.Key{}, err
	}
	if _, means, err := c.Resolve(IdentityOf(key)); err != nil || means != key {
		return backend.Key{}, badID(id)
	}
	return key, nil
}

// Identity identifies a resource in a request. For NAMESPACED kinds a nil Namespace means the default namespace. For
// GLOBAL kinds it must be nil or empty.
type Identity struct {
	Kind      string
	Namespace *string
	Name      string
}

// IdentityOf returns the identity of the resource with a key.
func IdentityOf(key backend.Key) Identity {
	of := Identity{Kind: key.Kind, Name: key.Name}
	if key.Namespace != "" {
		of.Namespace = &key.Namespace
	}
	return of
}
