package engine

import (
	"encoding/json"
	"fmt"
	"strconv"
	"time"
	"unicode/utf8"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/kinds"
)

// arguments are the coerced arguments of a field, or the error of the first argument that is not valid. An absent
// argument has no entry in values; a null has the entry nil.
type arguments struct {
	values map[string]any
	err    error
	// request is the request for a page, if the field is a connection.
	request query.ListRequest
	// steps is the number of steps to be charged for coercing and using the arguments.
	steps int
}

// read coerces the arguments of a field into out, which must be empty. Before it coerces an object or a list, it calls
// pay.
func (e *Engine) read(out *arguments, node *ast.Field, vars map[string]any, pay func(name string, v any)) {
	for _, def := range node.Definition.Arguments {
		v, ok := e.valueOf(node, def, vars)
		if !ok {
			continue
		}
		switch v.(type) {
		case map[string]any, []any:
			pay(def.Name, v)
		}
		out.values[def.Name], out.err = e.stored(def.Type, v, failure.At(def.Name))
		if out.err != nil {
			return
		}
	}
	if list, ok := out.values["orderBy"].([]any); ok {
		out.err = query.CheckOrder(len(list))
	}
}

// ask sets a.request from the arguments if the field is a connection.
func (a *arguments) ask(f *field) {
	if f.connection && a.err == nil {
		a.request = listRequest(f, a.values)
	}
}

// inputSize is the size of a tree of coerced values. objects counts the values that are objects or maps. texts is the
// number of bytes in strings and names.
type inputSize struct{ values, objects, texts int }

// add adds the size of a tree.
func (s *inputSize) add(v any) {
	s.values++
	switch v := v.(type) {
	case string:
		s.texts += len(v)
	case map[string]any:
		s.objects++
		for name, inner := range v {
			s.texts += len(name)
			s.add(inner)
		}
	case []any:
		for _, inner := range v {
			s.add(inner)
		}
	}
}

// sizeOf returns the size of a tree.
func sizeOf(v any) (out inputSize) {
	out.add(v)
	return out
}

// steps returns the number of steps to be charged for coercing and using an argument.
func (s inputSize) steps(name string) int {
	steps := s.values*budget.InputValue + s.texts/budget.InputBytes
	if name == "filter" {
		return budget.FilterTimes * steps
	}
	return steps
}

// held returns the number of bytes that the tree needs in memory, without its texts.
func (s inputSize) held() int { return s.values*budget.InputHeld + s.objects*budget.InputObjectHeld }

// valueOf returns the coerced value of an argument. ok is false if it has none.
func (e *Engine) valueOf(node *ast.Field, def *ast.ArgumentDefinition, vars map[string]any) (v any, ok bool) {
	given := def.DefaultValue
	if a := node.Arguments.ForName(def.Name); a != nil && a.Value.Kind != ast.Variable {
		given = a.Value
	} else if a != nil {
		_, ok = vars[a.Value.Raw]
		if ok {
			given = a.Value
		}
	}
	if given == nil {
		return nil, false
	}
	return coercion.Coercer{Schema: e.schema}.Literal(def.Type, given, vars), true
}

// stored converts a coerced value to its stored form: with the stored names of fields and enum values, and with a map
// as an object instead of a list of entries. The value itself is not modified.
func (e *Engine) stored(t *ast.Type, v any, at *failure.Path) (any, error) {
	switch {
	case v == nil:
		return nil, nil
	case t.Elem != nil:
		return e.storedList(t.Elem, v.([]any), at)
	}
	switch def := e.schema.Types[t.NamedType]; def.Kind {
	case ast.Enum:
		if stored, ok := e.enums[def.Name][v.(string)]; ok {
			return stored, nil
		}
	case ast.InputObject:
		return e.storedObject(def, v.(map[string]any), at)
	default:
		if def.Name == "JSON" {
			return jsontree.Clone(v), nil
		}
	}
	return v, nil
}

func (e *Engine) storedList(elem *ast.Type, list []any, at *failure.Path) (any, error) {
	if elem.NamedType == "MapEntryInput" || elem.NamedType == "MapEntryPatch" {
		return entriesObject(list, at)
	}
	out := make([]any, len(list))
	inner := at.Below()
	for i, v := range list {
		inner.SetElement(i)
		var err error
		if out[i], err = e.stored(elem, v, &inner); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (e *Engine) storedObject(def *ast.Definition, fields map[string]any, at *failure.Path) (any, error) {
	out := make(map[string]any, len(fields))
	inner := at.Below()
	for _, f := range def.Fields {
		v, ok := fields[f.Name]
		if !ok {
			continue
		}
		name := f.Name
		if stored, ok := e.storedNames[fieldName{def.Name, f.Name}]; ok {
			name = stored
		}
		inner.SetName(f.Name)
		stored, err := e.stored(f.Type, v, &inner)
		switch {
		case err != nil && kinds.IsWriteOnly(f):
			return nil, refuseAt(&inner, coercion.Refuse(kinds.Concealed))
		case err != nil:
			return nil, err
		}
		out[name] = stored
	}
	return out, nil
}

// entriesObject converts a list of entries to an object. In a patch, the value of an entry may be null.
func entriesObject(list []any, at *failure.Path) (any, error) {
	out := make(map[string]any, len(list))
	for i, e := range list {
		entry, _ := e.(map[string]any)
		key, _ := entry["key"].(string)
		if _, twice := out[key]; twice {
			return nil, refuseAt(at.Element(i).Name("key"), coercion.Refuse("entry %q is given twice", failure.Shorten(key)))
		}
		out[key] = entry["value"]
	}
	return out, nil
}

// optional returns an argument; nil if it is absent or null.
func optional[T any](args map[string]any, name string) *T {
	v, ok := args[name].(T)
	if !ok {
		return nil
	}
	return &v
}

// value returns an argument; the zero value if it is absent or null.
func value[T any](args map[string]any, name string) T {
	v, _ := args[name].(T)
	return v
}

// count returns an argument of type Int; nil if it is absent or null.
func count(args map[string]any, name string) *int {
	n, ok := args[name].(json.Number)
	if !ok {
		return nil
	}
	i, _ := strconv.Atoi(n.String()) // it was coerced to an Int
	return &i
}

// listRequest returns the request for a page of a connection. It leaves Parent and Names empty.
func listRequest(f *field, args map[string]any) query.ListRequest {
	req := query.ListRequest{
		Namespace:    optional[string](args, "namespace"),
		Filter:       args["filter"],
		FieldNames:   f.fieldNames(),
		First:        count(args, "first"),
		Last:         count(args, "last"),
		After:        optional[string](args, "after"),
		Before:       optional[string](args, "before"),
		ChangeCursor: f.changeCursor,
		Ahead:        f.ahead,
		Total:        f.total,
	}
	req.Kind = value[string](args, "kind")
	var of map[string]string
	if f.kind != nil {
		req.Kind, of = f.kind.Name, f.kind.orders
	} else if args["orderBy"] != nil {
		of = sharedOrders()
	}
	for _, o := range elementsOf[map[string]any](args, "orderBy") {
		req.OrderBy = append(req.OrderBy, query.Order{
			Field:      of[value[string](o, "field")],
			Descending: value[string](o, "direction") == "DESC",
		})
	}
	return req
}

// metadata returns the metadata in the input of a mutation.
func metadata(in map[string]any) service.Metadata {
	m := service.Metadata{Description: description(in), ExpiresAt: expiry(in)}
	_, m.Labels.Set = in["labels"]
	for _, e := range elementsOf[map[string]any](in, "labels") {
		m.Labels.Value = append(m.Labels.Value, service.Label{
			Key:   value[string](e, "key"),
			Value: value[string](e, "value"),
		})
	}
	_, m.Annotations.Set = in["annotations"]
	for _, e := range elementsOf[map[string]any](in, "annotations") {
		m.Annotations.Value = append(m.Annotations.Value, service.Annotation{
			Key:   value[string](e, "key"),
			Value: value[string](e, "value"),
		})
	}
	return m
}

// metadataPatch returns the changes of metadata in the input of a patch.
func metadataPatch(in map[string]any) service.MetadataPatch {
	return service.MetadataPatch{
		Labels:           pairPatch(in, "labels"),
		Annotations:      pairPatch(in, "annotations"),
		Description:      description(in),
		ExpiresAt:        expiry(in),
		AddFinalizers:    elementsOf[string](in, "addFinalizers"),
		RemoveFinalizers: elementsOf[string](in, "removeFinalizers"),
	}
}

func description(in map[string]any) (out service.Optional[string]) {
	_, out.Set = in["description"]
	out.Value = value[string](in, "description")
	return out
}

func expiry(in map[string]any) (out service.Optional[time.Time]) {
	if text := value[string](in, "expiresAt"); text != "" {
		at, _ := time.Parse(time.RFC3339Nano, text) // it was coerced to a Time
		return service.ExpiresAt(at)
	}
	_, out.Set = in["expiresAt"]
	return out
}

// pairPatch returns the changes of labels or annotations in the input of a patch. A null removes all of them.
func pairPatch(in map[string]any, name string) (out service.Optional[[]service.PairPatch]) {
	_, out.Set = in[name]
	if in[name] != nil {
		out.Value = []service.PairPatch{}
	}
	for _, e := range elementsOf[map[string]any](in, name) {
		out.Value = append(out.Value, service.PairPatch{
			Key:   value[string](e, "key"),
			Value: optional[string](e, "value"),
		})
	}
	return out
}

// elementsOf returns the elements of a list in an input. All must have the type T.
func elementsOf[T any](in map[string]any, name string) (out []T) {
	for _, e := range value[[]any](in, name) {
		one, _ := e.(T)
		out = append(out, one)
	}
	return out
}

// Limits of arguments: the characters of clientMutationId, and the elements of the lists ids and kinds.
const (
	maxMutationID = 128
	maxIDs        = 100
	maxKinds      = 100
)

func checkMutationID(in map[string]any) error {
	if utf8.RuneCountInString(value[string](in, "clientMutationId")) <= maxMutationID {
		return nil
	}
	return tooLong("clientMutationId", "maxLength", maxMutationID, "characters")
}

func tooLong(path, rule string, limit int, unit string) error {
	return &failure.Error{
		Code: failure.CodeValidationFailed, Path: path, Rule: rule, Limit: limit,
		Message: fmt.Sprintf("%s: must have at most %d %s", path, limit, unit),
	}
}
