package server_test

import (
	"encoding/json"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/server"
)

// TestVariablesAreCoercedAsGqlparserDoes makes values of all input types, most of them
// right, and compares what becomes of them.
func TestVariablesAreCoercedAsGqlparserDoes(t *testing.T) {
	var cfg server.Config
	newServer(t, plain, &cfg)
	var schema *ast.Schema
	for _, api := range cfg.Catalogue.APIs {
		schema = api.Schema
	}
	seed := rand.Uint64()
	t.Log("seed", seed)
	rounds, enough := 40, 500
	if testing.Short() {
		rounds, enough = 8, 100
	}
	g := valueMaker{schema: schema, Rand: rand.New(rand.NewPCG(seed, 1))}
	right, wrong := 0, 0
	for _, def := range schema.Types {
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
			want, wantErr := server.CoerceByParser(schema, op, decoded(t, []byte(plain)))
			got, err := server.Coerce(schema, op, decoded(t, text))
			switch {
			case err == nil && wantErr != nil:
				t.Fatalf("%s as %s: gqlparser says %v", text, def.Name, wantErr)
			case err == nil:
				right++
				if diff := cmp.Diff(again(t, want), again(t, got)); diff != "" {
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

// stricter matches the errors about values that gqlparser accepts against the specification.
var stricter = regexp.MustCompile(`write-only field|is accepted here, not|RFC 3339|SafeInt|time|integer`)

// again decodes a value that was encoded, so that equal lists have equal types.
func again(t *testing.T, value any) map[string]any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return decoded(t, text)
}

func decoded(t *testing.T, text []byte) (out map[string]any) {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(string(text)))
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
