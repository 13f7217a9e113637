package service

import (
	"encoding/base64"
	"regexp"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// Limits of names, from RFC 1123 as Kubernetes applies it.
const (
	MaxName      = 253
	MaxNamespace = 63

	maxLabelName  = 63
	maxLabelValue = 63
)

const (
	dnsLabel     = `[a-z0-9]([-a-z0-9]*[a-z0-9])?`
	dnsSubdomain = dnsLabel + `(\.` + dnsLabel + `)*`
)

// The compiled forms of names, and of label keys (Kubernetes' rules).
var (
	nameSyntax      = regexp.MustCompile(`^` + dnsSubdomain + `$`)
	namespaceSyntax = regexp.MustCompile(`^` + dnsLabel + `$`)
	labelSyntax     = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)
)

// name checks the name of a resource.
func (v *violations) name(path, name string) {
	switch {
	case name == "":
		v.add(path, "required", "", "must not be empty")
	case len(name) > MaxName || !nameSyntax.MatchString(name):
		v.add(path, "format", "name", "must be a DNS-1123 subdomain of at most %d characters: lower case letters, digits, '-' and '.', beginning and ending with a letter or digit", MaxName)
	}
}

// namespace checks the name of a namespace.
func (v *violations) namespace(path, ns string) {
	switch {
	case ns == "":
		v.add(path, "required", "", "must not be empty")
	case len(ns) > MaxNamespace || !namespaceSyntax.MatchString(ns):
		v.add(path, "format", "namespace", "must be a DNS label of at most %d characters: lower case letters, digits and '-', beginning and ending with a letter or digit", MaxNamespace)
	}
}

// labelKey checks the key of a label or an annotation.
func (v *violations) labelKey(path, key string) {
	prefix, name, qualified := strings.Cut(key, "/")
	if !qualified {
		prefix, name = "", key
	}
	if len(name) > maxLabelName || !labelSyntax.MatchString(name) || qualified && (len(prefix) > MaxName || !nameSyntax.MatchString(prefix)) {
		v.add(path, "format", "label key", "must be a name of at most %d letters, digits, '-', '_' and '.', optionally after a DNS subdomain and '/'", maxLabelName)
	}
}

// labelValue checks the value of a label.
func (v *violations) labelValue(path, value string) {
	if n := len(value); n > maxLabelValue || n > 0 && !labelSyntax.MatchString(value) {
		v.add(path, "format", "label", "must be empty or at most %d letters, digits, '-', '_' and '.', beginning and ending with a letter or digit", maxLabelValue)
	}
}

// resolve finds the kind and key that an identity means, and checks their syntax.
func (c catalogue) resolve(id Identity) (*kind, backend.Key, error) {
	k, err := c.find(id.Kind)
	if err != nil {
		return nil, backend.Key{}, err
	}
	key := backend.Key{Kind: k.Name, Name: id.Name}
	var v violations
	switch {
	case k.Scope == descriptor.Global:
		if id.Namespace != nil && *id.Namespace != "" {
			return nil, key, badInput("metadata.namespace", "kind %s is GLOBAL: its resources have no namespace", k.Name).of(key)
		}
	case id.Namespace == nil:
		key.Namespace = descriptor.DefaultNamespace
	default:
		key.Namespace = *id.Namespace
		v.namespace("metadata.namespace", key.Namespace)
	}
	v.name("metadata.name", key.Name)
	if err := v.err(key); err != nil {
		return nil, key, err
	}
	return k, key, nil
}

const idFormat = 1

// GlobalID is the id of a resource in every API version: base64url of a format
// byte and the tuple (kind, namespace, name).
func GlobalID(key backend.Key) string {
	return base64.RawURLEncoding.EncodeToString(AppendGlobalID(nil, key))
}

// AppendGlobalID appends what a global id is the base64url of.
func AppendGlobalID(dst []byte, key backend.Key) []byte {
	return key.Append(append(dst, idFormat))
}

// ParseGlobalID reads what [GlobalID] wrote; anything else is BAD_USER_INPUT.
func ParseGlobalID(id string) (backend.Key, error) {
	bad := badInput("id", "id %q is not an id of this API; take ids from the id field of a resource", shorten(id))
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

// Identity names a resource as a caller does: a nil namespace is the default
// one for NAMESPACED kinds, and the only one accepted for GLOBAL kinds.
type Identity struct {
	Kind      string
	Namespace *string
	Name      string
}
