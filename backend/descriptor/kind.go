// Package descriptor describes kinds as data, as they are declared in SDL. The service and the layers above it use
// these descriptions. Stores do not know kinds.
package descriptor

import (
	"slices"
	"strings"
)

// Scope determines whether the resources of a kind belong to namespaces.
type Scope string

// A resource of a Namespaced kind belongs to a namespace. A resource of a Global kind does not.
const (
	Namespaced Scope = "NAMESPACED"
	Global     Scope = "GLOBAL"
)

// DefaultNamespace is the namespace of a NAMESPACED resource that is named without one.
const DefaultNamespace = "default"

// Verb is something that a caller can do with a kind.
//
// To add a verb, change these places:
//   - backend/service: a file with its name executes it.
//   - backend/service/access: Verbs, from which the set of all verbs follows, and the built-in roles (role.go).
//   - SDL: AccessVerb in schema/core/access.graphqls, KindVerb in schema/core/kind.graphqls and in
//     graph/kinds/directives.graphqls, and the description of verbs in schema/access/access.graphqls.
//   - graph/kinds: which kinds may offer it (verb.go), and its field in the API (derive_input.go).
//   - graph/release/names.go: whether a version of the API has it.
//   - graph/engine: how the field calls it (types.go and mutation.go).
//   - graph/proto and graph/rpc, if it is a method of gRPC services.
//   - Rights.verbs in access/rights.go and cmd/sluice/auth/auth_explain.go, if it needs another verb as well.
type Verb string

// The verbs, with their names in the API.
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

// Kind describes one kind of resource. It is made from SDL, shared, and never changed.
type Kind struct {
	// Name is the name of the kind in manifests and the API, such as "Network".
	Name string
	// Singular and Plural are the names of its fields in the API, such as "network" and "networks".
	Singular, Plural string
	// ShortNames are other names that the command line and arguments of the API accept, such as "net".
	ShortNames  []string
	Description string
	// Group and Version are the parts of a manifest's apiVersion. It is "<group>/<version>", or "<version>" if the
	// group is empty.
	Group, Version string
	Scope          Scope
	// Verbs are the verbs that the kind offers.
	Verbs []Verb
	// SubKinds are the accepted values of subKind. If there are none, resources have no subKind.
	SubKinds []string
	// OutOfMemory reports whether gateways read the resources from the store instead of keeping them in memory.
	OutOfMemory bool
	// Service is the name of the resource service that owns the resources; empty if the gateway stores them itself.
	Service string
	// Review is the name of a resource service that is asked before a caller's change of the spec or metadata is
	// stored; empty if there is none. The service does not own the kind.
	Review string
	// ReviewAllowsFailure reports whether a change is stored if the Review service does not answer.
	ReviewAllowsFailure bool
	// Expires reports whether callers may set expiresAt.
	Expires bool
	// Sensitive reports whether the values of write-only fields are stored apart from
	// the resources and the log.
	Sensitive bool
	// FilterableFields are the fields that filters and orders accept in addition to name, namespace, times, labels and
	// conditions.
	FilterableFields []FilterableField
	// References are the fields that have names of other resources.
	References []Reference
	// Columns are the columns of tables, in order, in addition to those that the tables of all kinds have.
	Columns []Column
	// Spec and Status describe the two parts of the body. Of the constraints of a status, only maxima are checked; see
	// [Field.Constraint].
	Spec, Status *Shape
}

// APIVersion returns the apiVersion of manifests.
func (k *Kind) APIVersion() string { return k.APIVersionOf(k.Version) }

// APIVersionOf returns the apiVersion of manifests for another version of the kind.
func (k *Kind) APIVersionOf(version string) string {
	if k.Group == "" {
		return version
	}
	return k.Group + "/" + version
}

// Has reports whether the kind offers the verb.
func (k *Kind) Has(v Verb) bool { return slices.Contains(k.Verbs, v) }

// HasConditions reports whether the status has conditions, see [Kind.Conditions].
func (k *Kind) HasConditions() bool { return k.Conditions() != nil }

// Conditions returns the shape of a condition of the status. Conditions are a list of objects with a type and a status.
// It returns nil if there are none.
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

// FieldAt returns the field at a path from the root of the body, such as "spec.resource.mtu"; nil if there is none.
// many reports whether the path leads through a list, so that a resource may have several values.
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

// NamespaceFrom returns the namespace in which a resource of the given namespace refers to resources of the kind: the
// same namespace, or none if the kind is GLOBAL.
func (k *Kind) NamespaceFrom(namespace string) string {
	if k.Scope == Global {
		return ""
	}
	return namespace
}

// FilterableField is a scalar field, or a list of scalars, that filters accept.
type FilterableField struct {
	// Path is the path from the root of the body, joined by dots, such as "spec.resource.mtu". It is also the name of
	// the index in memory.
	Path string
	// Sortable reports whether orders accept the field. A list is never sortable.
	Sortable bool
}

// Column is a column of a table. It shows a scalar field, or a list of scalars.
type Column struct {
	// Title is the title of the column, such as "MTU".
	Title string
	// Path is the path from the root of the body, joined by dots. It may lead through lists; then a resource may have
	// several values.
	Path string
	// Wide reports whether the column is only in wide tables.
	Wide bool
}

// Reference is a field with the name of a resource, or a list of names. All named resources have the same kind. They
// are in the namespace of the referring resource, or in none if the kind is GLOBAL. GLOBAL kinds refer only to GLOBAL
// kinds.
type Reference struct {
	// Path is the path from the root of the body, joined by dots. It may lead through lists, such as
	// "spec.resource.addresses.subnetRef".
	Path string
	// Kind is the kind of the resources to which the field refers.
	Kind string
	// Field is the field of the API that returns the target, such as "network". For a list of names it is a connection,
	// such as "securityGroups".
	Field string
	// Inverse is the field of the target's kind that lists the referring resources, such as "subnets"; empty if there
	// is none.
	Inverse string
	// Guarded reports whether the target cannot be deleted while a resource relies on
	// it.
	Guarded bool
}

// Shape describes an object in a spec or status.
type Shape struct {
	// Name is the name of its type in the SDL.
	Name   string
	Fields []Field
	// Rules are CEL expressions that must hold. In them, self is the object with its effective defaults.
	Rules []Rule
	// MinProperties and MaxProperties are the minimum and the maximum number of fields that are set; zero for no limit.
	MinProperties, MaxProperties int
}

// Field returns the field with a name; nil if there is none.
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

// The field types. TypeInt has 32 bits. TypeSafeInt is a JSON number within +-(2^53-1). TypeTime is stored as text in
// RFC 3339 form and shown in UTC.
const (
	TypeString  FieldType = "String"
	TypeInt     FieldType = "Int"
	TypeSafeInt FieldType = "SafeInt"
	TypeFloat   FieldType = "Float"
	TypeBoolean FieldType = "Boolean"
	TypeTime    FieldType = "Time"
	TypeEnum    FieldType = "Enum"
	TypeObject  FieldType = "Object"
	// TypeMap is a map of strings to strings. In GraphQL it is a list of entries with key and value.
	TypeMap FieldType = "Map"
)

// ListType selects how lists are compared. In a SET, order and repetition do not matter. The elements of a MAP are
// objects, which are matched by their keys. An ATOMIC list is compared as a whole.
type ListType string

// The list types, with their names in SDL.
const (
	ListSet    ListType = "SET"
	ListMap    ListType = "MAP"
	ListAtomic ListType = "ATOMIC"
)

// Field describes one field of a shape. Name is its name in manifests and in the stored body. APIName is its name in
// the API, empty if that is the same.
type Field struct {
	Name        string
	APIName     string
	Description string
	Type        FieldType
	// Required reports whether the field must have a value, both when it is written and when it is read.
	Required bool
	// List reports whether the field is a list of Type, whose elements are never null.
	List     bool
	ListType ListType
	// Keys are the fields that identify an element of a MAP list.
	Keys []string
	// Enum is set for TypeEnum, and Shape for TypeObject.
	Enum  *Enum
	Shape *Shape
	// Constraint bounds the value, or each element of a list. The constraint of a status
	// field has only MaxLength, MaxItems and KeyMaxLength.
	Constraint Constraint
	// ManifestAt is the top-level key of a manifest under which the field is written; empty if it is written in the
	// spec.
	ManifestAt string
	// WriteOnly reports whether the field can be written but is never shown. A write without the field keeps the value;
	// null or an empty value removes it. A write-only field is not required, is not in a list, is not a reference, and
	// has no index.
	WriteOnly bool
	// MergeInto is the name of another map of the same shape, into which the entries of this map are merged. This map
	// is then not stored. It is empty if this map is stored. Both maps are write-only.
	MergeInto string
	// Immutable reports whether the effective value cannot be changed to another one. It can be removed.
	Immutable bool
	// Default is the effective default in stored form; nil if there is none. A number is a [json.Number]. The default
	// applies when the field is read, and is never stored.
	Default any
	// Deprecated is the reason for the deprecation; empty if the field is not deprecated.
	Deprecated string
}

// Format is the name of a syntax that the values of a string field must have.
type Format string

const (
	// FormatUUID is a UUID in the text form of RFC 9562.
	FormatUUID Format = "uuid"
	// FormatDuration is a duration of Go, such as "10m" or "1h30m".
	FormatDuration Format = "duration"
	// FormatDateTime is a time in RFC 3339 form.
	FormatDateTime Format = "date-time"
	// FormatName is a DNS-1123 subdomain, the form of a resource's name.
	FormatName Format = "name"
	// FormatCIDR is an IPv4 or IPv6 prefix, RFC 4632 and RFC 4291 section 2.3.
	FormatCIDR Format = "cidr"
	// FormatBase64 is base64 as in RFC 4648 section 4, with padding. Line breaks are ignored.
	FormatBase64 Format = "base64"
)

// Constraint bounds a value. A nil or empty field means no bound. Lengths are numbers of Unicode code points, as in
// JSON Schema.
type Constraint struct {
	MinLength, MaxLength *int
	// Pattern is an RE2 expression that must match somewhere in the value.
	Pattern  string
	Format   Format
	Min, Max *float64
	// In are the accepted strings. If it is empty, all are accepted.
	In []string
	// MinItems and MaxItems bound the length of a list, and the number of keys of a map.
	MinItems, MaxItems *int
	// Unique reports whether the elements of the list must differ. The elements of a SET must always differ.
	Unique bool
	// KeyMinLength, KeyMaxLength and KeyPattern apply to the keys of a map. The other bounds of strings apply to its
	// values.
	KeyMinLength, KeyMaxLength *int
	KeyPattern                 string
}

// Enum describes an enum type.
type Enum struct {
	Name   string
	Values []EnumValue
}

// Has reports whether the enum has a value with the given stored form.
func (e *Enum) Has(stored string) bool {
	return slices.ContainsFunc(e.Values, func(v EnumValue) bool { return v.Stored == stored })
}

// EnumValue is a value of an enum. Name is its name in GraphQL, Stored its form in the store and in manifests.
type EnumValue struct{ Name, Stored, Description string }

// Rule is a CEL expression that must hold for an object, and the message if it does not hold. In the expression, self
// is the new object and oldSelf is the stored one. A rule with oldSelf is evaluated only if there is a stored object.
type Rule struct{ CEL, Message string }
