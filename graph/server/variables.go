package server

import (
	"context"
	"encoding/json"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/validator"

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
	return v.judge(operation, p.Variables)
}

// judge refuses values that have no coercion, and writes whole numbers in digits alone.
func (v variables) judge(op *ast.OperationDefinition, values map[string]any) *gqlerror.Error {
	for _, def := range op.VariableDefinitions {
		value, given := values[def.Variable]
		if !given || scalar.IsText(def.Type, value) {
			continue
		}
		if err := v.check(&place{name: def.Variable}, def.Type, value); err != nil {
			errcode.Set(err, errcode.ValidationFailed)
			return err
		}
		if plain, changed := v.plain(def.Type, value); changed {
			values[def.Variable] = plain
		}
	}
	return nil
}

// values are the variables of an operation as gqlparser coerces them. It may change those given.
func (v variables) values(op *ast.OperationDefinition, given map[string]any) (map[string]any, *gqlerror.Error) {
	if err := v.judge(op, given); err != nil {
		return nil, err
	}
	if v.settles(op, given) {
		return given, nil
	}
	out, err := validator.VariableValues(v.schema, op, given)
	if err == nil {
		return out, nil
	}
	var refused *gqlerror.Error
	if !errors.As(err, &refused) {
		refused = gqlerror.Wrap(err)
	}
	errcode.Set(refused, errcode.ValidationFailed)
	return nil, refused
}

// settles says whether gqlparser would accept all variables that were judged and leave
// them as they are, but for the types of numbers, which it changes then. What it says no
// to goes through gqlparser, which says what is wrong or missing: it needs several times as long.
func (v variables) settles(op *ast.OperationDefinition, values map[string]any) bool {
	given := 0
	for _, def := range op.VariableDefinitions {
		value, ok := values[def.Variable]
		if !ok && (def.DefaultValue != nil || def.Type.NonNull) || ok && !v.settled(def.Type, value) {
			return false
		}
		if ok {
			given++
		}
	}
	if given < len(values) { // some are not of this operation
		return false
	}
	for _, def := range op.VariableDefinitions {
		number, ok := values[def.Variable].(json.Number)
		if !ok {
			continue
		}
		switch def.Type.NamedType {
		case "Int":
			values[def.Variable], _ = number.Int64() // it was judged
		case "Float":
			values[def.Variable], _ = number.Float64()
		}
	}
	return true
}

func (v variables) settled(t *ast.Type, value any) bool {
	if value == nil || scalar.IsText(t, value) {
		return true
	}
	if t.Elem != nil {
		list, ok := value.([]any)
		return ok && !slices.ContainsFunc(list, func(e any) bool { return !v.settled(t.Elem, e) })
	}
	def := v.schema.Types[t.NamedType]
	if def == nil {
		return false
	}
	fields, ok := value.(map[string]any)
	if !ok || def.Kind != ast.InputObject {
		return def.Kind != ast.InputObject
	}
	known := 0
	for _, f := range def.Fields {
		one, given := fields[f.Name]
		if !given && f.Type.NonNull && f.DefaultValue == nil || given && !v.settled(f.Type, one) {
			return false
		}
		if given {
			known++
		}
	}
	return known == len(fields)
}

// place is where in the variables a value is.
type place struct {
	in    *place
	name  string
	index int // of an element, where name is empty
}

func (p *place) path() ast.Path {
	if p == nil {
		return ast.Path{ast.PathName("variable")}
	}
	if p.name == "" {
		return append(p.in.path(), ast.PathIndex(p.index))
	}
	return append(p.in.path(), ast.PathName(p.name))
}

func (v variables) check(at *place, t *ast.Type, value any) *gqlerror.Error {
	switch {
	case value == nil && t.NonNull:
		return gqlerror.ErrorPathf(at.path(), "cannot be null")
	case value == nil:
		return nil
	case t.Elem != nil:
		list, ok := value.([]any)
		if !ok {
			return v.check(at, t.Elem, value)
		}
		for i, e := range list {
			if err := v.check(&place{in: at, index: i}, t.Elem, e); err != nil {
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
			return refused(at, value, def.Name)
		}
	case ast.Scalar:
		if !isScalar(def.Name, value) {
			return refused(at, value, def.Name)
		}
		if err := ofOurs(def.Name, value); err != nil {
			return gqlerror.ErrorPathf(at.path(), "%s", err)
		}
	case ast.InputObject:
		fields, ok := value.(map[string]any)
		if !ok {
			return refused(at, value, def.Name)
		}
		for _, field := range def.Fields {
			one, given := fields[field.Name]
			if !given {
				continue
			}
			inner := place{in: at, name: field.Name}
			switch err := v.check(&inner, field.Type, one); {
			case kinds.IsWriteOnly(field) && (err != nil || v.hasForeign(field.Type, one)):
				return gqlerror.ErrorPathf(inner.path(), "%s", kinds.Concealed)
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
// neither. Objects and lists are changed in place; changed says that the value itself is another one.
func (v variables) plain(t *ast.Type, value any) (out any, changed bool) {
	if list, ok := value.([]any); ok && t.Elem != nil {
		for i, e := range list {
			if one, changed := v.plain(t.Elem, e); changed {
				list[i] = one
			}
		}
		return list, false
	}
	if t.Elem != nil {
		return v.plain(t.Elem, value)
	}
	switch value := value.(type) {
	case json.Number:
		if (t.NamedType != "Int" && t.NamedType != "SafeInt" && t.NamedType != "ID") || !strings.ContainsAny(value.String(), ".eE") {
			return value, false
		}
		if x, err := value.Float64(); err == nil {
			return json.Number(strconv.FormatFloat(x, 'f', 0, 64)), true
		}
	case map[string]any:
		if def := v.schema.Types[t.NamedType]; def != nil && def.Kind == ast.InputObject {
			for _, field := range def.Fields {
				one, given := value[field.Name]
				if !given {
					continue
				}
				if one, changed := v.plain(field.Type, one); changed {
					value[field.Name] = one
				}
			}
		}
	}
	return value, false
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
	case "SafeInt":
		if number, ok := value.(json.Number); ok {
			if x, bad := number.Float64(); bad == nil && x == math.Trunc(x) && math.Abs(x) < 1<<53 {
				return nil
			}
		}
		_, err = scalar.UnmarshalSafeInt(value)
	}
	return err
}

// refused says what is accepted and what was given. It never quotes the value,
// which may be one that must not be shown.
func refused(at *place, value any, typ string) *gqlerror.Error {
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
	return gqlerror.ErrorPathf(at.path(), "%s is accepted here, not %s", typ, given)
}
