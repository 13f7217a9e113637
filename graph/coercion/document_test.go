package coercion_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// request validates a document by the embedded API and coerces the variables of its only operation.
func request(t *testing.T, schema *ast.Schema, text, variables string) (map[string]any, gqlerror.List) {
	t.Helper()
	doc, err := parser.ParseQuery(&ast.Source{Input: text})
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	if errs := validator.ValidateWithRules(schema, doc, nil); len(errs) > 0 {
		t.Fatalf("%s: %v", text, errs)
	}
	coercer := coercion.Coercer{Schema: schema}
	checked, errs := coercer.Document(doc)
	if len(errs) > 0 {
		return nil, errs
	}
	values, refused := coercer.Variables(doc.Operations[0], decoded(t, []byte(variables)))
	if refused == nil {
		refused = checked.Check(doc.Operations[0], values)
	}
	if refused != nil {
		return nil, gqlerror.List{refused}
	}
	return values, nil
}

// inputPlace is a place of a value in the arguments of a root field.
type inputPlace struct {
	operation ast.Operation
	field     *ast.FieldDefinition
	path      []string
	typ       *ast.Type
}

// inputPlaces returns the places of all values in arguments of root fields, up to a depth.
func inputPlaces(schema *ast.Schema, depth int) (out []inputPlace) {
	var within func(p inputPlace, left int)
	within = func(p inputPlace, left int) {
		out = append(out, p)
		def := schema.Types[p.typ.NamedType]
		if left == 0 || def == nil || def.Kind != ast.InputObject {
			return
		}
		for _, f := range def.Fields {
			inner := p
			inner.path, inner.typ = append(slices.Clip(p.path), f.Name), f.Type
			within(inner, left-1)
		}
	}
	for _, root := range []struct {
		of  ast.Operation
		def *ast.Definition
	}{{ast.Query, schema.Query}, {ast.Mutation, schema.Mutation}, {ast.Subscription, schema.Subscription}} {
		for _, f := range root.def.Fields {
			for _, a := range f.Arguments {
				within(inputPlace{operation: root.of, field: f, path: []string{a.Name}, typ: a.Type}, depth)
			}
		}
	}
	return out
}

// document returns an operation that has a variable of a type in a place, and what is required besides.
func (p inputPlace) document(schema *ast.Schema, variable string) string {
	arguments := []string{}
	for _, a := range p.field.Arguments {
		switch {
		case a.Name == p.path[0]:
			arguments = append(arguments, a.Name+": "+literalWith(schema, a.Type, p.path[1:]))
		case a.Type.NonNull && a.DefaultValue == nil:
			arguments = append(arguments, a.Name+": "+leastLiteral(schema, a.Type))
		}
	}
	selection := ""
	if def := schema.Types[p.field.Type.Name()]; def.IsCompositeType() {
		selection = " { __typename }"
	}
	return fmt.Sprintf("%s(%s) { %s(%s)%s }", p.operation, variable, p.field.Name, strings.Join(arguments, ", "), selection)
}

// literalWith returns a literal with the variable $v at a path.
func literalWith(schema *ast.Schema, t *ast.Type, path []string) string {
	if len(path) == 0 {
		return "$v"
	}
	fields := []string{}
	for _, f := range schema.Types[t.NamedType].Fields {
		switch {
		case f.Name == path[0]:
			fields = append(fields, f.Name+": "+literalWith(schema, f.Type, path[1:]))
		case f.Type.NonNull && f.DefaultValue == nil:
			fields = append(fields, f.Name+": "+leastLiteral(schema, f.Type))
		}
	}
	return "{" + strings.Join(fields, ", ") + "}"
}

// leastLiteral returns a literal of a type with what is required alone.
func leastLiteral(schema *ast.Schema, t *ast.Type) string {
	if t.Elem != nil {
		return "[]"
	}
	def := schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Enum:
		return def.EnumValues[0].Name
	case ast.InputObject:
		fields := []string{}
		for _, f := range def.Fields {
			if f.Type.NonNull && f.DefaultValue == nil {
				fields = append(fields, f.Name+": "+leastLiteral(schema, f.Type))
			}
		}
		return "{" + strings.Join(fields, ", ") + "}"
	}
	switch def.Name {
	case "Int", "SafeInt", "Float":
		return "1"
	case "Boolean":
		return "true"
	case "Time":
		return `"2026-01-02T03:04:05Z"`
	}
	return `"text"`
}

// TestCheck_RefusesNullWhereNoneMayBe: null for a variable with a default is refused in every place that takes no null,
// of fields by hand as of those of kinds, with the path; without a value, the default stands.
func TestCheck_RefusesNullWhereNoneMayBe(t *testing.T) {
	schema := kindstest.API(t)
	places := 0
	for _, p := range inputPlaces(schema, 3) {
		if !p.typ.NonNull {
			continue
		}
		places++
		nullable := *p.typ
		nullable.NonNull = false
		text := p.document(schema, "$v: "+nullable.String()+" = "+leastLiteral(schema, p.typ))
		_, errs := request(t, schema, text, `{"v": null}`)
		if len(errs) != 1 || errs[0].Extensions["code"] != "BAD_USER_INPUT" || errs[0].Extensions["field"] != strings.Join(p.path, ".") {
			t.Errorf("%s: %v", text, errs)
		}
		if _, errs := request(t, schema, text, `{}`); errs != nil {
			t.Errorf("%s without a value: %v", text, errs)
		}
	}
	if places < 100 {
		t.Errorf("only %d places", places)
	}
}

// TestCheck_RefusesAForgottenVariableThatGuards: in every mutation and every stream.
func TestCheck_RefusesAForgottenVariableThatGuards(t *testing.T) {
	schema := kindstest.API(t)
	guarded := map[string]int{}
	for _, p := range inputPlaces(schema, 1) {
		name := p.path[len(p.path)-1]
		guards := false
		switch p.operation {
		case ast.Mutation:
			guards = len(p.path) == 2 && slices.Contains([]string{"expectedRevision", "dryRun", "namespace"}, name)
		case ast.Subscription:
			guards = len(p.path) == 1 && slices.Contains([]string{"id", "filter"}, name)
		}
		if p.typ.NonNull {
			continue
		}
		text := p.document(schema, "$v: "+p.typ.String())
		if _, errs := request(t, schema, text, `{"v": null}`); errs != nil {
			t.Errorf("%s with null: %v", text, errs)
		}
		_, errs := request(t, schema, text, `{}`)
		if !guards {
			if errs != nil {
				t.Errorf("%s without a value: %v", text, errs)
			}
			continue
		}
		guarded[name]++
		if len(errs) != 1 || errs[0].Extensions["code"] != "BAD_USER_INPUT" || errs[0].Extensions["field"] != strings.Join(p.path, ".") {
			t.Errorf("%s without a value: %v", text, errs)
		}
	}
	for _, name := range []string{"expectedRevision", "dryRun", "namespace", "id", "filter"} {
		if guarded[name] < 20 {
			t.Errorf("%s guards in %d places", name, guarded[name])
		}
	}
}

func TestCheck_LooksAtWhatIsExecuted(t *testing.T) {
	schema := kindstest.API(t)
	for text, refused := range map[string]bool{
		`query($d: Boolean = true) { kinds { name @include(if: $d) } }`:                                                  true,
		`query($d: Boolean = true) { ... @skip(if: $d) { kinds { name } } }`:                                             true,
		`query($d: Boolean = true) { ...F @skip(if: $d) } fragment F on Query { kinds { name } }`:                        true,
		`query($d: Boolean = true) { ...F } fragment F on Query { kinds { name @skip(if: $d) } }`:                        true,
		`query($d: ID = "x") { dependencyTree(id: $d) { truncated } }`:                                                   true,
		`query($d: ID = "x") { dependencyTree(id: $d) @skip(if: true) { truncated } }`:                                   false,
		`query($d: ID = "x") { ... @include(if: false) { dependencyTree(id: $d) { truncated } } }`:                       false,
		`query($d: ID = "x") { ...F @skip(if: true) } fragment F on Query { dependencyTree(id: $d) { truncated } }`:      false,
		`query($d: ID = "x") { ...F @skip(if: true) ...F } fragment F on Query { dependencyTree(id: $d) { truncated } }`: true,
		`query($d: Int = 3) { dependencyTree(id: "x", depth: $d) { truncated } }`:                                        false,
		`mutation($d: String) { ... @skip(if: true) { deleteNetwork(input: {name: "a", namespace: $d}) { state } } }`:    false,
		`mutation($d: String = "x") { deleteNetwork(input: {name: "a", namespace: $d}) { state } }`:                      false,
		`mutation($d: Boolean = false) { a: updateKind(input: {kind: "Network", controlled: $d}) { kind { name } } }`:    true,
		`query($d: [ID!] = []) { nodes(ids: $d) { id } }`:                                                                true,
		`query($d: ID = "x") { nodes(ids: ["a", $d]) { id } }`:                                                           true,
	} {
		_, errs := request(t, schema, text, `{"d": null}`)
		if (errs != nil) != refused {
			t.Errorf("%s: %v", text, errs)
		}
		if directive := strings.Contains(text, "name @include(if: $d)"); directive && !strings.Contains(errs.Error(), ": @include.if: the variable $d is null") {
			t.Errorf("%s: %v", text, errs)
		}
	}
}

func TestDocument_RefusesLiteralsOutOfRange(t *testing.T) {
	schema := kindstest.API(t)
	for text, message := range map[string]string{
		`{ networks(first: 2147483648) { totalCount } }`:                                   "Int is accepted here, not this number",
		`query($n: Int = -2147483649) { networks(first: $n) { totalCount } }`:              "Int is accepted here, not this number",
		`{ ...F } fragment F on Query { networks(last: 2147483648) { totalCount } }`:       "Int is accepted here, not this number",
		`{ networks(filter: {createdAt: {gte: "yesterday"}}) { totalCount } }`:             `"yesterday" is no Time: `,
		`{ kinds { name @include(if: true) } networks(first: 2147483647) { totalCount } }`: "",
	} {
		_, errs := request(t, schema, text, `{}`)
		switch {
		case message == "" && errs != nil:
			t.Errorf("%s: %v", text, errs)
		case message != "" && (len(errs) != 1 || !strings.HasPrefix(errs[0].Message, message) || len(errs[0].Locations) != 1):
			t.Errorf("%s: %v", text, errs)
		}
	}
}

// TestLiteral_IsWhatTheSameVariableIs: a value has the same coerced form as a literal, as a variable and as a default.
func TestLiteral_IsWhatTheSameVariableIs(t *testing.T) {
	schema := kindstest.API(t)
	coercer := coercion.Coercer{Schema: schema}
	for literal, typ := range map[string]*ast.Type{
		`5`: ast.NamedType("Int", nil), `-0`: ast.NamedType("Int", nil), `5.50`: ast.NamedType("Float", nil), `7`: ast.NamedType("Float", nil),
		`12`: ast.NamedType("ID", nil), `"2026-01-02T04:04:05+01:00"`: ast.NamedType("Time", nil), `"text"`: ast.ListType(ast.NamedType("String", nil), nil),
		`{a: [1, {b: null}], c: 1.50}`: ast.NamedType("JSON", nil),
	} {
		doc, err := parser.ParseQuery(&ast.Source{Input: "query($v: " + typ.String() + " = " + literal + ") { kinds { name } }"})
		if err != nil {
			t.Fatal(err)
		}
		written := strings.NewReplacer("{a:", `{"a":`, "{b:", `{"b":`, "c:", `"c":`).Replace(literal)
		variables, refused := coercer.Variables(doc.Operations[0], decoded(t, []byte(`{"v":`+written+`}`)))
		if refused != nil {
			t.Fatal(literal, refused)
		}
		byDefault, refused := coercer.Variables(doc.Operations[0], nil)
		if refused != nil {
			t.Fatal(literal, refused)
		}
		if want, got := encoded(t, variables), encoded(t, byDefault); want != got {
			t.Errorf("%s: %s as a variable, %s as a default", literal, want, got)
		}
	}
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
