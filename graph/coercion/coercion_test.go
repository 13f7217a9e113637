package coercion_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"math/rand/v2"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/validator"

	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestVariables_AreCoercedAsGqlparserDoes makes values of all input types, most of them right, and compares what
// becomes of them.
func TestVariables_AreCoercedAsGqlparserDoes(t *testing.T) {
	schema := kindstest.API(t)
	seed := rand.Uint64()
	t.Log("seed", seed)
	rounds, enough := 40, 500
	if testing.Short() {
		rounds, enough = 8, 100
	}
	g := valueMaker{schema: schema, Rand: rand.New(rand.NewPCG(seed, 1))}
	right, wrong := 0, 0
	for _, name := range slices.Sorted(maps.Keys(schema.Types)) {
		def := schema.Types[name]
		if !def.IsInputType() {
			continue
		}
		for range rounds {
			op := &ast.OperationDefinition{}
			given := map[string]any{}
			for _, name := range []string{"a", "b"} {
				typ := g.typeOf(def)
				op.VariableDefinitions = append(op.VariableDefinitions, &ast.VariableDefinition{Variable: name, Type: typ, Definition: def})
				if g.IntN(8) > 0 {
					given[name] = g.value(typ, 0)
				}
			}
			if g.IntN(16) == 0 {
				given["c"] = "of no operation"
			}
			text, _ := json.Marshal(given)
			// gqlparser reads no exponents and no points in whole numbers.
			plain := strings.NewReplacer("1e2", "100", "10.0", "10", "1e3", "1000").Replace(string(text))
			want, wantErr := validator.VariableValues(schema, op, decoded(t, []byte(plain)))
			got, err := coercion.Coercer{Schema: schema}.Variables(op, decoded(t, text))
			switch {
			case err == nil && wantErr != nil:
				t.Fatalf("%s as %s: gqlparser says %v", text, def.Name, wantErr)
			case err == nil:
				right++
				for _, variable := range op.VariableDefinitions {
					if value, ok := want[variable.Variable]; ok {
						want[variable.Variable] = g.withTextIDs(variable.Type, reencoded(t, value))
					}
				}
				if diff := cmp.Diff(want, reencoded(t, got), numbers); diff != "" {
					t.Fatalf("%s as %s: %s", text, def.Name, diff)
				}
			case wantErr == nil && !stricter.MatchString(err.Error()):
				t.Fatalf("%s as %s: %v, gqlparser accepts it", text, def.Name, err)
			default:
				wrong++
			}
		}
	}
	if right < enough || wrong < enough {
		t.Errorf("%d right and %d wrong values say little", right, wrong)
	}
}

// TestVariables_GoByTheTextOfANumber: a float64 would take numbers that are not whole for whole ones.
func TestVariables_GoByTheTextOfANumber(t *testing.T) {
	for typ, texts := range map[string]map[string]bool{
		"Int":     {"2147483647": true, "2147483648": false, "1e-400": false, "7.0": true, "7.00000000000000001": false},
		"SafeInt": {"9007199254740991": true, "9007199254740992": false, "123456789012345.99999": false, "4503599627370496.2": false, "1e3": true},
		"ID":      {"12": true, "1e-400": false, "123456789012345678901": true},
	} {
		op := &ast.OperationDefinition{VariableDefinitions: ast.VariableDefinitionList{{Variable: "v", Type: ast.NamedType(typ, nil)}}}
		for text, accepted := range texts {
			got, err := coercion.Coercer{Schema: kindstest.API(t)}.Variables(op, decoded(t, []byte(`{"v":`+text+`}`)))
			if (err == nil) != accepted {
				t.Errorf("%s as %s: %v %v", text, typ, got, err)
			}
		}
	}
}

// stricter matches the errors about values that gqlparser accepts against the specification.
var stricter = regexp.MustCompile(`write-only field|is accepted here, not|RFC 3339|SafeInt|time|integer`)

// numbers compares numbers by their values: gqlparser keeps their texts.
var numbers = cmp.Comparer(func(a, b json.Number) bool {
	x, err1 := a.Float64()
	y, err2 := b.Float64()
	return err1 == nil && err2 == nil && x == y
})

// reencoded encodes a value and decodes it, so that equal lists have equal types.
func reencoded[T any](t *testing.T, value T) T {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return decodedAs[T](t, text)
}

func decoded(t *testing.T, text []byte) map[string]any {
	t.Helper()
	return decodedAs[map[string]any](t, text)
}

func decodedAs[T any](t *testing.T, text []byte) (out T) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	if err := d.Decode(&out); err != nil {
		t.Fatal(err)
	}
	return out
}

// valueMaker makes values of the types of a schema.
type valueMaker struct {
	schema *ast.Schema
	*rand.Rand
}

func (g valueMaker) typeOf(def *ast.Definition) *ast.Type {
	typ := &ast.Type{NamedType: def.Name, NonNull: g.IntN(2) == 0}
	if g.IntN(3) == 0 { // gqlparser does not wrap what stands for a list of lists
		typ = &ast.Type{Elem: typ, NonNull: g.IntN(2) == 0}
	}
	return typ
}

// value is one of a type, or one that is wrong.
func (g valueMaker) value(typ *ast.Type, depth int) any {
	if g.IntN(40) == 0 {
		return []any{nil, "text", json.Number("1.5"), true, []any{json.Number("1")}, map[string]any{"foreign": nil}}[g.IntN(6)]
	}
	if !typ.NonNull && g.IntN(6) == 0 {
		return nil
	}
	if typ.Elem != nil {
		if g.IntN(12) == 0 {
			return g.value(typ.Elem, depth+1) // one stands for a list of one
		}
		list := make([]any, g.IntN(3))
		for i := range list {
			list[i] = g.value(typ.Elem, depth+1)
		}
		return list
	}
	def := g.schema.Types[typ.NamedType]
	switch {
	case def.Kind == ast.Enum:
		return def.EnumValues[g.IntN(len(def.EnumValues))].Name
	case def.Kind == ast.InputObject:
		out := map[string]any{}
		for _, f := range def.Fields {
			if needed := f.Type.NonNull && f.DefaultValue == nil && g.IntN(20) > 0; needed || depth < 4 && g.IntN(4) == 0 {
				out[f.Name] = g.value(f.Type, depth+1)
			}
		}
		return out
	}
	switch def.Name {
	case "Int":
		return json.Number([]string{"7", "-0", "1e2", "10.0"}[g.IntN(4)])
	case "SafeInt":
		return json.Number([]string{"9007199254740991", "1e3"}[g.IntN(2)])
	case "Float":
		return json.Number([]string{"1.5", "2", "1e-3"}[g.IntN(3)])
	case "Boolean":
		return g.IntN(2) == 0
	case "ID":
		return []any{"id", json.Number("12")}[g.IntN(2)]
	case "Time":
		return "2026-01-02T03:04:05Z"
	}
	return "text"
}

// withTextIDs returns a value of a type with its IDs as strings. gqlparser leaves numbers in their place.
func (g valueMaker) withTextIDs(typ *ast.Type, value any) any {
	switch value := value.(type) {
	case []any:
		if typ.Elem == nil { // a value of a custom scalar
			return value
		}
		for i, element := range value {
			value[i] = g.withTextIDs(typ.Elem, element)
		}
	case map[string]any:
		if def := g.schema.Types[typ.Name()]; def.Kind == ast.InputObject {
			for _, field := range def.Fields {
				if inner, ok := value[field.Name]; ok {
					value[field.Name] = g.withTextIDs(field.Type, inner)
				}
			}
		}
	case json.Number:
		if typ.Name() == "ID" {
			return value.String()
		}
	}
	return value
}
