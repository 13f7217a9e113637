// Package coercion converts the values in a request to the types of the schema, before anything is executed. It follows
// sections 3.5, 5.6.1, 6.1.2 and 6.4.1 of the GraphQL specification of October 2021:
//
//	literals in a document       once for each document           Coercer.Document
//	values of variables          once for each request            Coercer.Variables
//	nullable variables in        once for each request            Document.Check
//	places that accept no null
//
// A nullable variable may stand in a place that accepts no null if the place has a default.
//
// A coerced value is a tree of JSON: objects, lists, strings, Booleans, [json.Number] and nil. Fields and enum values
// have their names of the API, integers have only digits, and times are in UTC. So neither the engine nor the code of
// gqlgen can refuse a coerced value because of its type.
package coercion

import (
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Coercer coerces values to the types of a schema. It is safe for concurrent use.
type Coercer struct {
	// Schema defines the types. Required.
	Schema *ast.Schema
	// Hidden keeps names of the schema that the request does not have out of errors.
	Hidden bool
}

// Variables returns the coerced values of the variables of a valid operation. If a variable has neither a value nor a
// default, the result has no entry for it. Variables may modify given.
//
// The coercion of gqlparser is not used, because it accepts too much: strings as numbers, numbers as strings, an Int
// that is out of range, and enum values in another case. Its errors also contain the values, which may be secrets.
func (c Coercer) Variables(op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	out := make(map[string]any, len(op.VariableDefinitions))
	for _, def := range op.VariableDefinitions {
		at := failure.At("variable").Name(def.Variable)
		value, ok := given[def.Variable]
		switch {
		case ok:
			var err *gqlerror.Error
			if out[def.Variable], err = c.value(at, def.Type, value); err != nil {
				return nil, err
			}
		case def.DefaultValue != nil:
			out[def.Variable] = c.Literal(def.Type, def.DefaultValue, nil)
		case def.Type.NonNull:
			return nil, refusedf(at, "must be defined")
		}
	}
	return out, nil
}

// Value coerces a decoded JSON value to a type. It may modify the value. The path of an error begins at the value.
func (c Coercer) Value(t *ast.Type, value any) (any, *gqlerror.Error) { return c.value(nil, t, value) }

// value is like [Coercer.Value]; at is the path of the value.
func (c Coercer) value(at *failure.Path, t *ast.Type, value any) (any, *gqlerror.Error) {
	switch {
	case value == nil && t.NonNull:
		return nil, refusedf(at, "cannot be null")
	case value == nil:
		return nil, nil
	case t.Elem != nil:
		return c.list(at, t.Elem, value)
	}
	def := c.Schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Enum:
		name, ok := value.(string)
		if !ok || def.EnumValues.ForName(name) == nil {
			return nil, refusedAt(at, c.refuseEnum(def, value))
		}
	case ast.Scalar:
		out, err := scalar(def.Name, value)
		if err != nil {
			return nil, refusedAt(at, err)
		}
		return out, nil
	case ast.InputObject:
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, refusedAt(at, refuseType(def.Name, value))
		}
		return fields, c.fields(at, def, fields)
	}
	return value, nil
}

// list coerces a list. A single value becomes a list with one element.
func (c Coercer) list(at *failure.Path, elem *ast.Type, value any) (any, *gqlerror.Error) {
	list, ok := value.([]any)
	if !ok {
		one, err := c.value(at, elem, value)
		return []any{one}, err
	}
	inner := at.Below()
	for i, e := range list {
		inner.SetElement(i)
		var err *gqlerror.Error
		if list[i], err = c.value(&inner, elem, e); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// fields coerces the fields of an input object in place. It returns an error for an unknown field, and for a missing
// field that is required.
func (c Coercer) fields(at *failure.Path, def *ast.Definition, fields map[string]any) *gqlerror.Error {
	known, missing := 0, ""
	inner := at.Below()
	for _, field := range def.Fields {
		value, given := fields[field.Name]
		if !given {
			if field.Type.NonNull && field.DefaultValue == nil {
				missing = field.Name
			}
			continue
		}
		known++
		inner.SetName(field.Name)
		coerced, err := c.value(&inner, field.Type, value)
		switch {
		case err != nil && kinds.IsWriteOnly(field):
			return refusedf(&inner, "%s", kinds.Concealed)
		case err != nil:
			return err
		}
		fields[field.Name] = coerced
	}
	if known < len(fields) {
		if name, ok := unknownField(def, fields); ok {
			return refusedf(at.Name(name), "%s", c.refuseField(def, name))
		}
	}
	if missing != "" {
		return refusedf(at.Name(missing), "must be defined")
	}
	return nil
}

// unknownField returns the first field, by name, that an input object does not have. ok is false if there is none.
func unknownField(def *ast.Definition, fields map[string]any) (first string, ok bool) {
	for name := range fields {
		if ok && name > first {
			continue
		}
		if def.Fields.ForName(name) == nil && name != "__typename" { // clients send back what they read
			first, ok = name, true
		}
	}
	return first, ok
}

func refusedAt(at *failure.Path, err error) *gqlerror.Error { return refusedf(at, "%s", err) }

// refusedf returns an error about the value at a path.
func refusedf(at *failure.Path, format string, args ...any) *gqlerror.Error {
	return gqlerror.ErrorPathf(ErrorPath(at.Steps(failure.APINames)), format, args...)
}
