package server

import (
	"context"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/scalar"
	"github.com/sluicegw/sluice/graph/transport"
)

// variables refuses values that the specification has no coercion for (October
// 2021, section 3.5 and 6.1.2) and gqlparser lets pass: strings for numbers, numbers
// for strings, an Int that is out of range, the name of an enum value in another
// case. It runs before gqlparser coerces them, so that whatever is priced or executed
// later is what the client wrote.
type variables struct{ schema *ast.Schema }

var _ interface {
	graphql.OperationParameterMutator
	graphql.HandlerExtension
} = variables{}

// ExtensionName is the name in gqlgen's errors.
func (variables) ExtensionName() string { return "Variables" }

// Validate accepts every schema.
func (variables) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters judges the variables of a request whose document is valid.
func (v variables) MutateOperationParameters(ctx context.Context, p *graphql.RawParams) *gqlerror.Error {
	doc, ok := transport.DocumentOf(ctx)
	if !ok {
		return nil
	}
	operation := doc.Operations.ForName(p.OperationName)
	if operation == nil { // the executor says so
		return nil
	}
	for _, def := range operation.VariableDefinitions {
		value, given := p.Variables[def.Variable]
		if !given {
			continue
		}
		if err := v.check(ast.Path{ast.PathName("variable"), ast.PathName(def.Variable)}, def.Type, value); err != nil {
			errcode.Set(err, errcode.ValidationFailed)
			return err
		}
		p.Variables[def.Variable] = v.plain(def.Type, value)
	}
	return nil
}

func (v variables) check(path ast.Path, t *ast.Type, value any) *gqlerror.Error {
	switch {
	case value == nil && t.NonNull:
		return gqlerror.ErrorPathf(path, "cannot be null")
	case value == nil:
		return nil
	case t.Elem != nil:
		list, ok := value.([]any)
		if !ok {
			return v.check(path, t.Elem, value)
		}
		for i, e := range list {
			if err := v.check(append(path[:len(path):len(path)], ast.PathIndex(i)), t.Elem, e); err != nil {
				return err
			}
		}
		return nil
	}
	def := v.schema.Types[t.NamedType]
	if def == nil { // validation has refused it
		return nil
	}
	switch def.Kind {
	case ast.Enum:
		if name, ok := value.(string); !ok || def.EnumValues.ForName(name) == nil {
			return refused(path, value, def.Name)
		}
	case ast.Scalar:
		if !isScalar(def.Name, value) {
			return refused(path, value, def.Name)
		}
		if err := ofOurs(def.Name, value); err != nil {
			return gqlerror.ErrorPathf(path, "%s", err)
		}
	case ast.InputObject:
		fields, ok := value.(map[string]any)
		if !ok {
			return refused(path, value, def.Name)
		}
		for _, field := range def.Fields {
			one, given := fields[field.Name]
			if !given {
				continue
			}
			at := append(path[:len(path):len(path)], ast.PathName(field.Name))
			switch err := v.check(at, field.Type, one); {
			case kinds.IsWriteOnly(field) && (err != nil || v.hasForeign(field.Type, one)):
				return gqlerror.ErrorPathf(at, "%s", kinds.Concealed)
			case err != nil:
				return err
			}
		}
	}
	return nil
}

// hasForeign says whether an object has a name that its type does not have: in a
// write-only value that may be a secret, and gqlparser would tell it.
func (v variables) hasForeign(t *ast.Type, value any) bool {
	switch value := value.(type) {
	case []any:
		return t.Elem != nil && slices.ContainsFunc(value, func(e any) bool { return v.hasForeign(t.Elem, e) })
	case map[string]any:
		if t.Elem != nil { // one stands for a list of one
			return v.hasForeign(t.Elem, value)
		}
		def := v.schema.Types[t.NamedType]
		if def == nil || def.Kind != ast.InputObject {
			return false // a scalar judges for itself
		}
		for name, e := range value {
			field := def.Fields.ForName(name)
			if field == nil || v.hasForeign(field.Type, e) {
				return true
			}
		}
	}
	return false
}

// plain writes the whole numbers of a value that was checked in digits alone. JSON
// knows one kind of number, so that 10.0 and 1e1 are the Int 10; gqlparser reads
// neither. Objects and lists are changed in place.
func (v variables) plain(t *ast.Type, value any) any {
	if list, ok := value.([]any); ok && t.Elem != nil {
		for i, e := range list {
			list[i] = v.plain(t.Elem, e)
		}
		return list
	}
	if t.Elem != nil {
		return v.plain(t.Elem, value)
	}
	switch value := value.(type) {
	case json.Number:
		if x, err := value.Float64(); err == nil && (t.NamedType == "Int" || t.NamedType == "Int64" || t.NamedType == "ID") && strings.ContainsAny(value.String(), ".eE") {
			return json.Number(strconv.FormatFloat(x, 'f', 0, 64))
		}
	case map[string]any:
		if def := v.schema.Types[t.NamedType]; def != nil && def.Kind == ast.InputObject {
			for _, field := range def.Fields {
				if one, given := value[field.Name]; given {
					value[field.Name] = v.plain(field.Type, one)
				}
			}
		}
	}
	return value
}

// isScalar says whether a value of JSON is one of a scalar of the specification.
// Other scalars judge for themselves.
func isScalar(name string, value any) bool {
	number, isNumber := value.(json.Number)
	switch name {
	case "Int":
		x, err := number.Float64()
		return isNumber && err == nil && x == math.Trunc(x) && math.MinInt32 <= x && x <= math.MaxInt32
	case "Float":
		_, err := number.Float64()
		return isNumber && err == nil
	case "String":
		_, ok := value.(string)
		return ok
	case "Boolean":
		_, ok := value.(bool)
		return ok
	case "ID":
		_, ok := value.(string)
		x, err := number.Float64()
		return ok || isNumber && err == nil && x == math.Trunc(x)
	}
	return true
}

// ofOurs judges a value of a scalar that is the API's own, as it will be read.
func ofOurs(name string, value any) (err error) {
	switch name {
	case "Time":
		_, err = scalar.UnmarshalTime(value)
	case "Int64":
		if number, ok := value.(json.Number); ok {
			if x, bad := number.Float64(); bad == nil && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				return nil
			}
		}
		_, err = scalar.UnmarshalInt64(value)
	}
	return err
}

// refused says what is accepted and what was given. It never quotes the value,
// which may be one that must not be shown.
func refused(path ast.Path, value any, typ string) *gqlerror.Error {
	given := "null"
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
	return gqlerror.ErrorPathf(path, "%s is accepted here, not %s", typ, given)
}
