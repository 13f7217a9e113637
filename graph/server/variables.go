package server

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/kinds"
)

// variables coerces the variables of operations (specification of October 2021, sections 3.5 and
// 6.1.2). gqlparser's coercion accepts more: strings for numbers, numbers for strings, an Int that is out
// of range, the name of an enum value in another case; and its errors quote values, which may be secrets.
type variables struct{ schema *ast.Schema }

// coerce returns the variables of a valid operation. It may change the values that are given.
func (v variables) coerce(op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	out := make(map[string]any, len(op.VariableDefinitions))
	for _, def := range op.VariableDefinitions {
		at := &location{name: def.Variable}
		value, ok := given[def.Variable]
		var err *gqlerror.Error
		switch {
		case ok:
			value, err = v.value(at, def.Type, value)
		case def.DefaultValue != nil:
			value, _ = def.DefaultValue.Value(nil) // validation has checked it
			if _, isList := value.([]any); def.Type.Elem != nil && value != nil && !isList {
				value = []any{value}
			}
		case def.Type.NonNull:
			err = gqlerror.ErrorPathf(at.path(), "must be defined")
		default:
			continue
		}
		if err != nil {
			return nil, err
		}
		if number, ok := value.(json.Number); ok { // as gqlparser has it
			switch def.Type.NamedType {
			case "Int":
				value, _ = number.Int64() // it is checked
			case "Float":
				value, _ = number.Float64()
			}
		}
		out[def.Variable] = value
	}
	return out, nil
}

// location is the place of a value in the variables.
type location struct {
	in    *location
	name  string
	index int // of an element, which has no name
}

func (l *location) path() ast.Path {
	switch {
	case l == nil:
		return ast.Path{ast.PathName("variable")}
	case l.name == "":
		return append(l.in.path(), ast.PathIndex(l.index))
	}
	return append(l.in.path(), ast.PathName(l.name))
}

// value coerces a value. Objects and lists are changed in place.
func (v variables) value(at *location, t *ast.Type, value any) (_ any, err *gqlerror.Error) {
	switch {
	case value == nil && t.NonNull:
		return nil, gqlerror.ErrorPathf(at.path(), "cannot be null")
	case value == nil:
		return nil, nil
	case t.Elem != nil:
		list, ok := value.([]any)
		if !ok { // one value stands for a list of one
			value, err = v.value(at, t.Elem, value)
			return []any{value}, err
		}
		for i, e := range list {
			if list[i], err = v.value(&location{in: at, index: i}, t.Elem, e); err != nil {
				return nil, err
			}
		}
		return list, nil
	}
	def := v.schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Enum:
		if name, ok := value.(string); !ok || def.EnumValues.ForName(name) == nil {
			return nil, refused(at, value, def.Name)
		}
	case ast.Scalar:
		return scalarValue(at, def.Name, value)
	case ast.InputObject:
		fields, ok := value.(map[string]any)
		if !ok {
			return nil, refused(at, value, def.Name)
		}
		return fields, v.fields(at, def, fields)
	}
	return value, nil
}

// fields coerces the fields of an input object.
func (v variables) fields(at *location, def *ast.Definition, fields map[string]any) (err *gqlerror.Error) {
	known, missing := 0, ""
	for _, field := range def.Fields {
		value, given := fields[field.Name]
		if !given {
			if field.Type.NonNull && field.DefaultValue == nil {
				missing = field.Name
			}
			continue
		}
		known++
		inner := &location{in: at, name: field.Name}
		fields[field.Name], err = v.value(inner, field.Type, value)
		switch {
		case err != nil && kinds.IsWriteOnly(field):
			return gqlerror.ErrorPathf(inner.path(), "%s", kinds.Concealed)
		case err != nil:
			return err
		}
	}
	if known < len(fields) {
		for name := range fields {
			if def.Fields.ForName(name) == nil && name != "__typename" { // clients send back what they read
				return gqlerror.ErrorPathf((&location{in: at, name: name}).path(), "unknown field")
			}
		}
	}
	if missing != "" {
		return gqlerror.ErrorPathf((&location{in: at, name: missing}).path(), "must be defined")
	}
	return nil
}

// scalarValue coerces a value of a scalar. Whole numbers are written in digits alone: JSON has one kind of
// number, so that 10.0 and 1e1 are the Int 10.
func scalarValue(at *location, name string, value any) (_ any, refusal *gqlerror.Error) {
	_, isText := value.(string)
	number, isNumber := value.(json.Number)
	x := 0.0
	if isNumber {
		var err error
		x, err = number.Float64()
		isNumber = err == nil
	}
	whole := isNumber && x == math.Trunc(x)
	ok := true
	switch name {
	case "Int":
		ok = whole && math.MinInt32 <= x && x <= math.MaxInt32
	case "Float":
		ok = isNumber
	case "String":
		ok = isText
	case "Boolean":
		_, ok = value.(bool)
	case "ID":
		ok = isText || whole
	case "Time":
		if _, err := engine.UnmarshalTime(value); err != nil {
			return nil, gqlerror.ErrorPathf(at.path(), "%s", err)
		}
	case "SafeInt":
		if whole && math.Abs(x) < 1<<53 {
			break
		}
		if _, err := engine.UnmarshalSafeInt(value); err != nil {
			return nil, gqlerror.ErrorPathf(at.path(), "%s", err)
		}
	}
	if !ok {
		return nil, refused(at, value, name)
	}
	if whole && (name == "Int" || name == "SafeInt" || name == "ID") && strings.ContainsAny(number.String(), ".eE") {
		return json.Number(strconv.FormatFloat(x, 'f', 0, 64)), nil
	}
	return value, nil
}

// refused returns an error that names the accepted type and the given one. It never quotes the value,
// which may be a secret.
func refused(at *location, value any, typ string) *gqlerror.Error {
	given := ""
	switch value.(type) {
	case string:
		given = "this string"
	case json.Number:
		given = "this number"
	case bool:
		given = "a Boolean"
	case []any:
		given = "a list"
	case map[string]any:
		given = "an object"
	}
	return gqlerror.ErrorPathf(at.path(), "%s is accepted here, not %s", typ, given)
}
