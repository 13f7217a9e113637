// Package descriptor describes kinds as data, as their SDL declares them. The layers
// above the stores use descriptors; a store knows no kind.
package descriptor

import (
	"slices"
	"strings"
)

// Scope says whether the resources of a kind are in namespaces.
type Scope string

// The scopes.
const (
	Namespaced Scope = "NAMESPACED"
	Global     Scope = "GLOBAL"
)

// DefaultNamespace is the namespace of a NAMESPACED resource if none is given.
const DefaultNamespace = "default"

// Verb is something a caller can do with a kind.
//
// To add one:
//   - backend/service has a file of its name that executes it.
//   - backend/service/access: Verbs, from which the set of all verbs follows, and the built-in roles (role.go).
//   - Four places of the SDL name it: AccessVerb in schema/core/access.graphqls, KindVerb in schema/core/kind.graphqls
//     and in graph/kinds/directives.graphqls, and the description of verbs in schema/access/access.graphqls.
//   - graph/kinds: when kinds may offer it (verb.go), and the field that the API has for it (derive_input.go).
//   - graph/release/names.go: whether a version of the API has it.
//   - graph/engine: how the field calls it (types.go and mutation.go).
//   - graph/proto and graph/rpc, if it is a method of gRPC services.
//   - Rights.verbs in access/rights.go and cmd/sluice/auth/auth_explain.go, if it needs another verb as well.
type Verb string

// The verbs.
const (
	VerbGet    Verb = "GET"
	VerbList   Verb = "LIST"
	VerbWatch  Verb = "WATCH"
	VerbCreate Verb = "CREATE"
	VerbUpdate Verb = "UPDATE"
	VerbPatch  Verb = "PATCH"
	VerbUpsert Verb = "UPSERT"
	VerbStatus Verb = "STATUS"
	// VerbFinalize adds and removes finalizers, by a patch.
	VerbFinalize Verb = "FINALIZE"
	// VerbControl gives the kind to a controller, or takes it back.
	VerbControl Verb = "CONTROL"
	VerbDelete  Verb = "DELETE"
	// VerbReveal shows the write-only values of a sensitive kind.
	VerbReveal Verb = "REVEAL"
)

// Kind describes one kind of resource. Descriptors are made from the SDL, shared, and
// never changed.
type Kind struct {
	// Name is the name in manifests and the API: "Network".
	Name string
	// Singular and Plural are the names of fields of the API: "network", "networks".
	Singular, Plural string
	// ShortNames are further names on the command line and in arguments of the API:
	// "net".
	ShortNames  []string
	Description string
	// Group and Version make a manifest's apiVersion: "<group>/<version>", or the
	// version alone where the group is empty.
	Group, Version string
	Scope          Scope
	// Verbs are the verbs that the kind offers.
	Verbs []Verb
	// SubKinds are the accepted values of a resource's subKind; none means that
	// the kind has no subKind.
	SubKinds []string
	// OutOfMemory reports that gateways do not keep the resources in memory.
	OutOfMemory bool
	// Service is the name of the resource service that owns the resources; empty if the gateway stores them itself.
	Service string
	// Review is the name of a resource service that is asked before a caller's change of the spec
	// or metadata is stored; empty if there is none. It does not own the kind.
	Review string
	// ReviewAllowsFailure reports whether changes are stored if the service in Review does not
	// answer.
	ReviewAllowsFailure bool
	// Expires reports whether callers may set expiresAt.
	Expires bool
	// Sensitive reports whether the values of write-only fields are stored apart from
	// the resources and the log.
	Sensitive bool
	// FilterableFields are the fields that filters and orders accept, besides name,
	// namespace, times, labels and conditions.
	FilterableFields []FilterableField
	// References are the fields with names of other resources.
	References []Reference
	// Columns of tables, in order, besides those that the tables of all kinds have.
	Columns []Column
	// Spec and Status describe the two parts of the body. Only the maxima of a status are
	// checked; see [Field.Constraint].
	Spec, Status *Shape
}

// APIVersion returns the apiVersion of manifests.
func (k *Kind) APIVersion() string { return k.APIVersionOf(k.Version) }

// APIVersionOf returns the apiVersion of manifests of a version of the kind.
func (k *Kind) APIVersionOf(version string) string {
	if k.Group == "" {
		return version
	}
	return k.Group + "/" + version
}

// Has reports whether the kind offers the verb.
func (k *Kind) Has(v Verb) bool { return slices.Contains(k.Verbs, v) }

// HasConditions reports whether the status has conditions: a list of objects with a type
// and a status.
func (k *Kind) HasConditions() bool { return k.Conditions() != nil }

// Conditions is the shape of a condition of the status, nil if it has none.
func (k *Kind) Conditions() *Shape {
	if k.Status == nil {
		return nil
	}
	f := k.Status.Field("conditions")
	if f == nil || !f.List || f.Shape == nil {
		return nil
	}
	for _, name := range []string{"type", "status"} {
		if g := f.Shape.Field(name); g == nil || g.Type != TypeString || g.List {
			return nil
		}
	}
	return f.Shape
}

// FieldAt returns the field at a path from the body's root, like "spec.resource.mtu";
// nil if there is none. many reports whether a list is on the path, so that a resource
// may have several values.
func (k *Kind) FieldAt(path string) (f *Field, many bool) {
	part, rest, _ := strings.Cut(path, ".")
	s := map[string]*Shape{"spec": k.Spec, "status": k.Status}[part]
	for step := range strings.SplitSeq(rest, ".") {
		if s == nil {
			return nil, false
		}
		f = s.Field(step)
		if f == nil {
			return nil, false
		}
		many = many || f.List
		s = f.Shape
	}
	return f, many
}

// NamespaceFrom returns the namespace in which resources of a namespace find a resource
// of the kind by name: the same one, or none if the kind is GLOBAL.
func (k *Kind) NamespaceFrom(namespace string) string {
	if k.Scope == Global {
		return ""
	}
	return namespace
}

// FilterableField is a scalar field, or a list of scalars, that filters accept.
type FilterableField struct {
	// Path from the body's root, joined by dots: "spec.resource.mtu". It is also
	// the name of the index in memory.
	Path string
	// Sortable reports whether orders accept it; a list is never sortable.
	Sortable bool
}

// Column of a table shows a scalar field or a list of them.
type Column struct {
	// Title of the column: "MTU".
	Title string
	// Path from the body's root, joined by dots. A list is a step like an object, so a
	// resource may have several values.
	Path string
	// Wide reports whether only wide tables have the column.
	Wide bool
}

// Reference is a field, or a list of fields, with names of resources of one kind, in the
// same namespace or of a GLOBAL kind. GLOBAL kinds refer only to GLOBAL kinds.
type Reference struct {
	// Path from the body's root, joined by dots. A list of objects is a step like an
	// object: "spec.resource.addresses.subnetRef".
	Path string
	// Kind of the target.
	Kind string
	// Field is the API's field for the target, "network", or for a list of names its
	// connection, "securityGroups".
	Field string
	// Inverse is the field of the target's kind that lists the referrers, "subnets";
	// empty if there is none.
	Inverse string
	// Guarded reports whether the target cannot be deleted while a resource relies on
	// it.
	Guarded bool
}

// Shape describes an object type of a spec or status.
type Shape struct {
	// Name of the type in the SDL.
	Name   string
	Fields []Field
	// Rules are CEL expressions over self, the object with its effective defaults.
	Rules []Rule
	// MinProperties and MaxProperties bound the number of fields that are set; zero means no bound.
	MinProperties, MaxProperties int
}

// Field returns the field of that name, nil if there is none.
func (s *Shape) Field(name string) *Field {
	for i := range s.Fields {
		if s.Fields[i].Name == name {
			return &s.Fields[i]
		}
	}
	return nil
}

// FieldType is the type of a field, or of the elements of a list.
type FieldType string

// The field types. Int is 32 bits; SafeInt is a JSON number within +-(2^53-1); a Time
// is stored as text in RFC 3339 form, and shown in UTC.
const (
	TypeString  FieldType = "String"
	TypeInt     FieldType = "Int"
	TypeSafeInt FieldType = "SafeInt"
	TypeFloat   FieldType = "Float"
	TypeBoolean FieldType = "Boolean"
	TypeTime    FieldType = "Time"
	TypeEnum    FieldType = "Enum"
	TypeObject  FieldType = "Object"
	// TypeMap is a map of strings to strings, in GraphQL a list of key and value.
	TypeMap FieldType = "Map"
)

// ListType selects how a list is compared: SET ignores order and repetition, MAP uses
// the keys of its objects, ATOMIC is compared as a whole.
type ListType string

// The list types.
const (
	ListSet    ListType = "SET"
	ListMap    ListType = "MAP"
	ListAtomic ListType = "ATOMIC"
)

// Field describes one field of a shape. Name is its name in manifests and in the stored
// body, APIName its name in the API if that differs.
type Field struct {
	Name        string
	APIName     string
	Description string
	Type        FieldType
	// Required reports whether the field must have a value, when written and when read.
	Required bool
	// List reports whether the field is a list of Type, whose elements are never null.
	List     bool
	ListType ListType
	// Keys are the fields that identify an element of a MAP list.
	Keys []string
	// Enum, for TypeEnum; Shape, for TypeObject.
	Enum  *Enum
	Shape *Shape
	// Constraint bounds the value, or each element of a list. The constraint of a status
	// field has only MaxLength, MaxItems and KeyMaxLength.
	Constraint Constraint
	// ManifestAt is the key at the top of a manifest under which the field stands
	// instead of in the spec; empty if it stands in the spec.
	ManifestAt string
	// WriteOnly reports whether the field is accepted and never shown. A write that
	// leaves it out keeps it; null and empty values clear it. Such a field is not
	// required, not in a list, and neither a reference nor indexed.
	WriteOnly bool
	// MergeInto is the map of the same shape into which the entries of this one are
	// merged; this one is then not stored. Empty if it is stored. Both are write-only.
	MergeInto string
	// Immutable reports whether the effective value can be removed but not changed to
	// another one.
	Immutable bool
	// Default is the effective default in stored form (a number as a json.Number), nil
	// for none. It applies when the field is read, and is never stored.
	Default any
	// Deprecated is the reason of the deprecation, empty if the field is not
	// deprecated.
	Deprecated string
}

// Format names a syntax that a string must have.
type Format string

// The formats.
const (
	// FormatUUID is RFC 9562 text form.
	FormatUUID Format = "uuid"
	// FormatDuration is a Go duration: "10m", "1h30m".
	FormatDuration Format = "duration"
	// FormatDateTime is RFC 3339.
	FormatDateTime Format = "date-time"
	// FormatName is a DNS-1123 subdomain, as of a resource's name.
	FormatName Format = "name"
	// FormatCIDR is an IPv4 or IPv6 prefix, RFC 4632 and RFC 4291 section 2.3.
	FormatCIDR Format = "cidr"
	// FormatBase64 is RFC 4648 section 4, with padding; line breaks are passed over.
	FormatBase64 Format = "base64"
)

// Constraint bounds a value. Nil and empty mean no bound. Lengths count
// Unicode code points, as JSON Schema does.
type Constraint struct {
	MinLength, MaxLength *int
	// Pattern is an RE2 expression that must match somewhere in the value.
	Pattern  string
	Format   Format
	Min, Max *float64
	// In are the accepted strings.
	In []string
	// MinItems and MaxItems bound a list, and the number of keys of a map.
	MinItems, MaxItems *int
	// Unique reports whether the elements of the list must differ. SET implies it.
	Unique bool
	// KeyMinLength, KeyMaxLength and KeyPattern bound the keys of a map; the other
	// bounds of strings apply to its values.
	KeyMinLength, KeyMaxLength *int
	KeyPattern                 string
}

// Enum describes an enum type.
type Enum struct {
	Name   string
	Values []EnumValue
}

// Has reports whether the enum has a value of that stored form.
func (e *Enum) Has(stored string) bool {
	return slices.ContainsFunc(e.Values, func(v EnumValue) bool { return v.Stored == stored })
}

// EnumValue is a value of an enum: its GraphQL name, and its form in the store and in
// manifests.
type EnumValue struct{ Name, Stored, Description string }

// Rule is a CEL expression over self that must hold, and the message if it does not. A
// rule that mentions oldSelf, the stored object, is evaluated only if there is one.
type Rule struct{ CEL, Message string }
