package coercion

import (
	"fmt"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/internal/spelling"
)

// maxListed is the maximum number of names that an error lists.
const maxListed = 8

// EnumValues returns the values of an enum for an error message. If there are many, it returns the first ones and the
// number of the others.
func EnumValues(enum *ast.Definition) string { return list(enumNames(enum)) }

func enumNames(enum *ast.Definition) []string {
	out := make([]string, len(enum.EnumValues))
	for i, v := range enum.EnumValues {
		out[i] = v.Name
	}
	return out
}

func fieldNames(def *ast.Definition) []string {
	out := make([]string, len(def.Fields))
	for i, f := range def.Fields {
		out[i] = f.Name
	}
	return out
}

// list returns the first maxListed names, and the number of the others.
func list(names []string) string {
	if len(names) <= maxListed {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), len(names)-maxListed)
}

// RefuseEnum returns an error about a value that is not a value of an enum. If the enum has too many values to list,
// the error suggests one.
func RefuseEnum(enum *ast.Definition, value any) error {
	err := refuseType(enum.Name, value)
	text, _ := value.(string)
	names := enumNames(enum)
	if name := spelling.Nearest(text, names); name != "" && len(names) > maxListed {
		return Refuse("%s; did you mean %q?", err, name)
	}
	return Refuse("%s; its values are %s", err, list(names))
}

// refuseEnum is [RefuseEnum] without values if the schema is hidden.
func (c Coercer) refuseEnum(enum *ast.Definition, value any) error {
	if c.Hidden {
		return refuseType(enum.Name, value)
	}
	return RefuseEnum(enum, value)
}

// refuseField returns an error about a name that is not a field of an input object.
func (c Coercer) refuseField(def *ast.Definition, name string) error {
	if c.Hidden {
		return Refuse("is not a field of %s", def.Name)
	}
	names := fieldNames(def)
	if known := spelling.Nearest(name, names); known != "" {
		return Refuse("is not a field of %s; did you mean %q?", def.Name, known)
	}
	return Refuse("is not a field of %s; its fields are %s", def.Name, list(names))
}
