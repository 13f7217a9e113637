package engine

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/kinds"
)

// arguments are the coerced arguments of a field, or why one was refused. An
// absent argument has no entry, null is nil.
type arguments struct {
	values map[string]any
	err    error
	// request is the request of a connection.
	request query.ListRequest
	// steps is the price of reading and using them.
	steps int
}

// coerceInto coerces the arguments of a field into out, which is empty. It calls pay before it coerces an object or a
// list.
func (e *Engine) coerceInto(out *arguments, node *ast.Field, vars map[string]any, pay func(name string, v any)) {
	for _, def := range node.Definition.Arguments {
		v, ok := valueOf(node, def, vars)
		if !ok {
			continue
		}
		switch v.(type) {
		case map[string]any, []any:
			pay(def.Name, v)
		}
		at := valuePath{name: def.Name}
		if out.values[def.Name], out.err = e.coerce(def.Type, v, &at); out.err != nil {
			return
		}
	}
	if list, ok := out.values["orderBy"].([]any); ok {
		out.err = query.CheckOrder(len(list))
	}
}

// ask sets the request of a connection by its arguments.
func (a *arguments) ask(f *field) {
	switch f.op {
	case opList, opRefs, opInverse, opDependencies, opDependents, opBlockedBy, opBlockers:
		if a.err == nil {
			a.request = listRequest(f, a.values)
		}
	}
}

// inputSize returns the number of values in a tree, and the bytes of its texts and names.
func inputSize(v any) (values, texts int) {
	values = 1
	add := func(inner any) {
		n, bytes := inputSize(inner)
		values, texts = values+n, texts+bytes
	}
	switch v := v.(type) {
	case string:
		texts = len(v)
	case map[string]any:
		for name, inner := range v {
			texts += len(name)
			add(inner)
		}
	case []any:
		for _, inner := range v {
			add(inner)
		}
	}
	return values, texts
}

// inputSteps returns the price of coercing and using an argument.
func inputSteps(name string, values, texts int) int {
	steps := values*budget.InputValue + texts/budget.InputBytes
	if name == "filter" {
		return budget.FilterTimes * steps
	}
	return steps
}

// valueOf returns the value of an argument like [ast.Field.ArgumentMap], and whether it has one.
func valueOf(node *ast.Field, def *ast.ArgumentDefinition, vars map[string]any) (v any, ok bool) {
	given := def.DefaultValue
	if a := node.Arguments.ForName(def.Name); a != nil && a.Value.Kind != ast.Variable {
		given = a.Value
	} else if a != nil {
		if v, ok = vars[a.Value.Raw]; ok {
			return v, true
		}
	}
	if given == nil {
		return nil, false
	}
	v, err := given.Value(vars)
	if err != nil { // validation has refused invalid values
		panic(err)
	}
	return v, true
}

// coerce returns a value of a request as a tree of JSON: objects, lists, strings, Booleans, [json.Number] and nil.
// Enum values and names of fields get their stored forms, and the entries of a map become an object.
func (e *Engine) coerce(t *ast.Type, v any, at *valuePath) (any, error) {
	if v == nil && t.NonNull { // validation accepts a variable with a default here
		return nil, at.refuse(refuseInput("null is no %s", t))
	}
	if v == nil {
		return nil, nil
	}
	if t.Elem != nil {
		return e.coerceList(t.Elem, graphql.CoerceList(v), at)
	}
	var out any
	var err error
	switch t.NamedType {
	case "String":
		out, err = graphql.UnmarshalString(v)
	case "ID":
		out, err = graphql.UnmarshalID(v)
	case "Boolean":
		out, err = graphql.UnmarshalBoolean(v)
	case "Int":
		var n int32
		n, err = graphql.UnmarshalInt32(v)
		out = json.Number(strconv.Itoa(int(n)))
	case "SafeInt":
		var n int64
		n, err = UnmarshalSafeInt(v)
		out = json.Number(strconv.FormatInt(n, 10))
	case "Float":
		var x float64
		if x, err = graphql.UnmarshalFloat(v); err == nil {
			var raw []byte
			raw, err = json.Marshal(x)
			out = json.Number(raw)
		}
	case "Time":
		var instant time.Time
		instant, err = UnmarshalTime(v)
		out = descriptor.FormatTime(instant)
	case "JSON":
		out, err = jsonOf(v)
	default:
		return e.coerceNamed(t.NamedType, v, at)
	}
	if err != nil {
		return nil, at.refuse(err)
	}
	return out, nil
}

// jsonOf returns a value of the scalar JSON, whose numbers may be of any type, as a tree of JSON.
func jsonOf(v any) (out any, err error) {
	raw, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	err = dec.Decode(&out)
	return out, err
}

func (e *Engine) coerceList(elem *ast.Type, list []any, at *valuePath) (any, error) {
	if elem.NamedType == "MapEntryInput" || elem.NamedType == "MapEntryPatch" {
		return coerceEntries(list, elem.NamedType == "MapEntryPatch", at)
	}
	out := make([]any, len(list))
	for i, v := range list {
		var err error
		if out[i], err = e.coerce(elem, v, &valuePath{in: at, index: i}); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// coerceEntries returns the entries of a map of strings as the object that is stored. In a patch, null removes an entry.
func coerceEntries(list []any, patch bool, at *valuePath) (any, error) {
	out := make(map[string]any, len(list))
	for i, e := range list {
		entry, ok := e.(map[string]any)
		if !ok {
			return nil, at.refuse(refuseInput("%s is no entry of a map; {key, value} is wanted", jsonKind(e)))
		}
		key, ok := entry["key"].(string)
		if !ok {
			return nil, at.refuse(refuseInput("an entry of a map has no key"))
		}
		if _, twice := out[key]; twice {
			entry := &valuePath{in: at, index: i}
			return nil, (&valuePath{in: entry, name: "key"}).refuse(refuseInput("entry %q is given twice", failure.Shorten(key)))
		}
		out[key] = entry["value"]
		if _, ok := out[key].(string); !ok && !patch {
			return nil, at.refuse(refuseInput("entry %.64q has no value; a string is wanted", key))
		} else if !ok {
			out[key] = nil
		}
	}
	return out, nil
}

// coerceNamed coerces an enum value or an input object.
func (e *Engine) coerceNamed(name string, v any, at *valuePath) (any, error) {
	def := e.schema.Types[name]
	if def.Kind == ast.Enum {
		text, _ := v.(string)
		if stored, ok := e.enums[name][text]; ok {
			return stored, nil
		}
		if def.EnumValues.ForName(text) == nil { // in variables, gqlparser accepts names in any case
			return nil, at.refuse(refuseInput("%.64q is not a value of %s; %s", text, name, accepted(def.EnumValues)))
		}
		return text, nil
	}
	m, ok := v.(map[string]any)
	if !ok {
		return nil, at.refuse(refuseInput("%T is no %s: an object is wanted", v, name))
	}
	out := make(map[string]any, len(m))
	for _, f := range def.Fields {
		v, ok := m[f.Name]
		if !ok {
			continue
		}
		var err error
		inner, key := valuePath{in: at, name: f.Name}, f.Name
		if stored, ok := e.stored[fieldName{name, f.Name}]; ok {
			key = stored
		}
		if out[key], err = e.coerce(f.Type, v, &inner); err != nil && kinds.IsWriteOnly(f) {
			return nil, inner.refuse(refuseInput(kinds.Concealed))
		} else if err != nil {
			return nil, err
		}
	}
	return out, nil
}

// accepted lists the first values of an enum.
func accepted(values ast.EnumValueList) string {
	const most = 10
	names := make([]string, 0, most)
	for _, v := range values[:min(len(values), most)] {
		names = append(names, v.Name)
	}
	if len(values) > most {
		return strings.Join(names, ", ") + " and others are"
	}
	last := len(names) - 1
	if last == 0 {
		return names[0] + " is"
	}
	return strings.Join(names[:last], ", ") + " and " + names[last] + " are"
}

// optional returns an argument, nil if it is absent or null.
func optional[T any](args map[string]any, name string) *T {
	v, ok := args[name].(T)
	if !ok {
		return nil
	}
	return &v
}

// value returns an argument, the zero value if it is absent or null.
func value[T any](args map[string]any, name string) T {
	v, _ := args[name].(T)
	return v
}

// count returns an argument of type Int.
func count(args map[string]any, name string) *int {
	n, ok := args[name].(json.Number)
	if !ok {
		return nil
	}
	i, _ := strconv.Atoi(n.String()) // coerce has made it of an int32
	return &i
}

// listRequest returns the request of a connection, without its parent.
func listRequest(f *field, args map[string]any) query.ListRequest {
	req := query.ListRequest{
		Namespace: optional[string](args, "namespace"), Filter: args["filter"], First: count(args, "first"), Last: count(args, "last"),
		After: optional[string](args, "after"), Before: optional[string](args, "before"), ChangeCursor: f.changeCursor, Ahead: f.ahead, Total: f.total,
	}
	req.Kind = value[string](args, "kind")
	var of map[string]string
	if f.kind != nil {
		req.Kind, of = f.kind.Name, f.kind.orders
	} else if args["orderBy"] != nil {
		of = sharedOrders()
	}
	for _, o := range elementsOf[map[string]any](args, "orderBy") {
		req.OrderBy = append(req.OrderBy, query.Order{Field: of[value[string](o, "field")], Descending: value[string](o, "direction") == "DESC"})
	}
	return req
}

// metadata returns the metadata in an input.
func metadata(in map[string]any) service.Metadata {
	m := service.Metadata{Description: description(in), ExpiresAt: expiry(in)}
	_, m.Labels.Set = in["labels"]
	for _, e := range elementsOf[map[string]any](in, "labels") {
		m.Labels.Value = append(m.Labels.Value, service.Label{Key: value[string](e, "key"), Value: value[string](e, "value")})
	}
	_, m.Annotations.Set = in["annotations"]
	for _, e := range elementsOf[map[string]any](in, "annotations") {
		m.Annotations.Value = append(m.Annotations.Value, service.Annotation{Key: value[string](e, "key"), Value: value[string](e, "value")})
	}
	return m
}

// metadataPatch returns the changes of the metadata in a patch.
func metadataPatch(in map[string]any) service.MetadataPatch {
	return service.MetadataPatch{
		Labels: pairPatch(in, "labels"), Annotations: pairPatch(in, "annotations"), Description: description(in), ExpiresAt: expiry(in),
		AddFinalizers: elementsOf[string](in, "addFinalizers"), RemoveFinalizers: elementsOf[string](in, "removeFinalizers"),
	}
}

func description(in map[string]any) (out service.Optional[string]) {
	_, out.Set = in["description"]
	out.Value = value[string](in, "description")
	return out
}

func expiry(in map[string]any) (out service.Optional[time.Time]) {
	if text := value[string](in, "expiresAt"); text != "" {
		at, _ := time.Parse(time.RFC3339Nano, text) // coerce has formatted it
		return service.ExpiresAt(at)
	}
	_, out.Set = in["expiresAt"]
	return out
}

// pairPatch returns the changes of labels or annotations; null removes all.
func pairPatch(in map[string]any, name string) (out service.Optional[[]service.PairPatch]) {
	if _, out.Set = in[name]; in[name] != nil {
		out.Value = []service.PairPatch{}
	}
	for _, e := range elementsOf[map[string]any](in, name) {
		out.Value = append(out.Value, service.PairPatch{Key: value[string](e, "key"), Value: optional[string](e, "value")})
	}
	return out
}

// elementsOf returns the elements of a list, which coerce has made all of one type.
func elementsOf[T any](in map[string]any, name string) (out []T) {
	for _, e := range value[[]any](in, name) {
		one, _ := e.(T)
		out = append(out, one)
	}
	return out
}

// Limits of arguments.
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
