package e2e_test

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/vektah/gqlparser/v2"
	"github.com/vektah/gqlparser/v2/ast"
)

// walker writes operations of a schema.
type walker struct {
	schema *ast.Schema
	// values are those of arguments and input fields, by name.
	values map[string]string
}

func newWalker(t *testing.T) *walker {
	t.Helper()
	raw, err := os.ReadFile("../docs/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	schema, err := gqlparser.LoadSchema(&ast.Source{Name: "schema.graphql", Input: string(raw)})
	if err != nil {
		t.Fatal(err)
	}
	return &walker{schema: schema}
}

// operation asks one root field for all that it has, some levels deep.
func (w *walker) operation(root *ast.Definition, f *ast.FieldDefinition, depth int) string {
	kind := map[string]string{w.schema.Query.Name: "query", "Mutation": "mutation", "Subscription": "subscription"}[root.Name]
	return kind + " { " + f.Name + w.arguments(f.Arguments) + w.selection(f.Type, depth) + " }"
}

func (w *walker) arguments(list ast.ArgumentDefinitionList) string {
	var out []string
	for _, a := range list {
		if a.Name == "id" && list.ForName("name") != nil { // one of them is enough
			continue
		}
		if v, ok := w.value(a.Name, a.Type, 0); ok {
			out = append(out, a.Name+": "+v)
		}
	}
	if len(out) == 0 {
		return ""
	}
	return "(" + strings.Join(out, ", ") + ")"
}

// value is a value of a type. Only what is named or required has one.
func (w *walker) value(name string, t *ast.Type, depth int) (string, bool) {
	if v, ok := w.values[name]; ok {
		return v, true
	}
	if !t.NonNull {
		return "", false
	}
	if t.Elem != nil {
		v, _ := w.value("", &ast.Type{NamedType: t.Elem.NamedType, Elem: t.Elem.Elem, NonNull: true}, depth+1)
		return "[" + v + "]", true
	}
	def := w.schema.Types[t.NamedType]
	switch {
	case def.Kind == ast.Enum:
		return def.EnumValues[0].Name, true
	case def.Kind == ast.InputObject:
		var fields []string
		for _, f := range def.Fields {
			if f.Name == "id" && def.Fields.ForName("name") != nil { // one of them is enough
				continue
			}
			if v, ok := w.value(f.Name, f.Type, depth+1); ok {
				fields = append(fields, f.Name+": "+v)
			}
		}
		return "{" + strings.Join(fields, ", ") + "}", true
	}
	return map[string]string{"Int": "1", "SafeInt": "1", "Float": "1", "Boolean": "true", "Time": `"2026-01-01T00:00:00Z"`, "JSON": "{}"}[t.NamedType] + map[bool]string{true: `"x"`}[slices.Contains([]string{"String", "ID"}, t.NamedType)], true
}

// selection asks for every field of a type.
func (w *walker) selection(t *ast.Type, depth int) string {
	def := w.schema.Types[t.Name()]
	switch def.Kind {
	case ast.Scalar, ast.Enum:
		return ""
	}
	out := []string{"__typename"}
	for _, f := range def.Fields {
		leaf := w.schema.Types[f.Type.Name()].IsLeafType()
		if strings.HasPrefix(f.Name, "__") || !leaf && depth == 0 || f.Name == "spec" || f.Name == "status" { // specJSON and statusJSON say the same
			continue
		}
		out = append(out, f.Name+w.nested(f.Arguments)+w.selection(f.Type, depth-1))
	}
	return " { " + strings.Join(out, " ") + " }"
}

// nested are the arguments of a field below the root.
func (w *walker) nested(list ast.ArgumentDefinitionList) string {
	if list.ForName("first") != nil {
		return "(first: 3)"
	}
	return ""
}

// hiddenWords are the texts of resources in a namespace and of the GLOBAL kinds, as far as no schema and nothing else has them.
func (g *guarded) hiddenWords(t *testing.T, schema string, visible string) (out []string) {
	t.Helper()
	var seen []string
	var collect func(v any)
	collect = func(v any) {
		switch v := v.(type) {
		case map[string]any:
			for key, one := range v {
				seen = append(seen, key)
				collect(one)
			}
		case []any:
			for _, one := range v {
				collect(one)
			}
		case string:
			seen = append(seen, v)
		}
	}
	list, _ := g.admin.ask("{ kinds { name scope } }").get("kinds").([]any)
	for _, k := range list {
		name, where := k.(map[string]any)["name"].(string), `, namespace: "hidden"`
		if k.(map[string]any)["scope"] == "GLOBAL" {
			where = ""
		}
		a := g.admin.ask(fmt.Sprintf("{ resources(kind: %q%s) { nodes { id metadata { name uid description labels { key value } annotations { key value } } specJSON } } }", name, where))
		collect(a.get("resources", "nodes"))
	}
	slices.Sort(seen)
	for _, word := range slices.Compact(seen) {
		if len(word) >= 5 && !strings.Contains(schema, word) && !strings.Contains(visible, word) {
			out = append(out, word)
		}
	}
	if len(out) < 20 {
		t.Fatalf("only %q are hidden", out)
	}
	return out
}

// TestNothingHiddenIsTold has callers walk all root fields and paths below them. Whatever they ask, no text of what
// they may not see is in an answer; and what is hidden from them is answered as what does not exist.
func TestNothingHiddenIsTold(t *testing.T) {
	t.Parallel()
	g := startGuarded(t)
	raw, err := os.ReadFile("../docs/schema.graphql")
	if err != nil {
		t.Fatal(err)
	}
	env := []string{"--server", g.address, "--token-file", t.TempDir() + "/token"}
	if err := os.WriteFile(env[3], []byte(g.admin.bearer), 0o600); err != nil {
		t.Fatal(err)
	}
	if out, errOut, code := sluice(t, "", append([]string{"apply", "-n", "hidden", "-f", "../examples/manifests/shop", "-f", "../examples/manifests/laboratory"}, env...)...); code != 0 {
		t.Fatalf("%s%s", out, errOut)
	}
	g.apply(networkIn("hidden", "zzhidden"), `{"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": "hidden", "name": "zzsecret", "labels": {"zzkey": "zzlabel"}}, "stringData": {"zzfield": "zzvalue"}}`,
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessRole", "metadata": {"name": "zzrole", "description": "zzdescribed"}, "spec": {"rules": [{"kinds": ["Network"], "verbs": ["GET"]}]}}`,
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessBinding", "metadata": {"name": "zzbinding"}, "spec": {"roles": ["zzrole"], "users": ["token:zzuser"], "namespaces": ["hidden"]}}`,
		projectIn("team"), networkIn("team", "visible"), subnetIn("team", "visible", "visible"),
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessBinding", "metadata": {"name": "team"}, "spec": {"roles": ["editor"], "users": ["token:team"], "namespaces": ["team"]}}`,
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessRole", "metadata": {"name": "maker"}, "spec": {"rules": [{"kinds": ["*"], "verbs": ["CREATE"]}]}}`,
		`{"apiVersion": "access.sluice.dev/v1", "kind": "AccessBinding", "metadata": {"name": "maker"}, "spec": {"roles": ["maker"], "users": ["token:maker"], "namespaces": ["hidden"]}}`)
	// Callers know their own names and the namespace that they ask for, and everybody knows the kinds.
	visible, _ := json.Marshal([]any{"hidden", "token:team", "token:maker", g.admin.ask(`{ networks(namespace: "team") { nodes { specJSON } } subnets(namespace: "team") { nodes { specJSON } } }`).Data})
	words := g.hiddenWords(t, string(raw), string(visible))
	plain := g.caller(nil)
	callers := map[string]*caller{"nobody": plain.with(g.tokens.add("nobody", "-", time.Time{})), "team": plain.with(g.tokens.add("team", "-", time.Time{})), "maker": plain.with(g.tokens.add("maker", "-", time.Time{}))}
	for _, c := range callers {
		for deadline := time.Now().Add(patience); len(c.ask(viewer).Errors) > 0; {
			if time.Now().After(deadline) {
				t.Fatal("a token is not known")
			}
		}
	}
	w := newWalker(t)
	w.schema.Types["Query"].Fields = slices.DeleteFunc(w.schema.Types["Query"].Fields, func(f *ast.FieldDefinition) bool { return strings.HasPrefix(f.Name, "__") })
	for _, root := range []*ast.Definition{w.schema.Query, w.schema.Mutation, w.schema.Subscription} {
		for _, f := range root.Fields {
			for who, c := range callers {
				w.door(t, g, root, f, who, c, words)
			}
		}
	}
}

// door tries a root field with what is hidden and with what does not exist.
func (w *walker) door(t *testing.T, g *guarded, root *ast.Definition, f *ast.FieldDefinition, who string, c *caller, words []string) {
	t.Helper()
	name, namespace, kind := "zzhidden", "hidden", "Network"
	switch {
	case strings.Contains(f.Name, "ccessRole"):
		name, namespace, kind = "zzrole", "", "AccessRole"
	case strings.Contains(f.Name, "ccessBinding"):
		name, namespace, kind = "zzbinding", "", "AccessBinding"
	case strings.Contains(f.Name, "ecret"), f.Name == "reveal":
		name, kind = "zzsecret", "Secret"
	}
	of := name
	ask := func(name string) string {
		id := g.idLike(kind, namespace, of, name)
		manifest := networkIn("hidden", name)
		w.values = map[string]string{
			"name": graphQL(name), "id": graphQL(id), "ids": "[" + graphQL(id) + "]", "kind": graphQL(kind), "kinds": "[" + graphQL(kind) + "]", "expectedRevision": `"1-1"`,
			"manifest": graphQL(manifest), "dryRun": "true", "verb": "GET", "snapshot": "true", "by": `["labels.app", "labels.zzkey"]`, "controlled": "true", "specJSON": "{}", "statusJSON": "{}",
		}
		if namespace != "" {
			w.values["namespace"] = graphQL(namespace)
		}
		if root.Name == "Subscription" {
			w.values["name"] = graphQL(name)
		}
		if f.Name == "resourceChanges" {
			w.values["kinds"] = "[" + graphQL(kind) + "]"
		}
		q := w.operation(root, f, 3)
		if root.Name != "Subscription" {
			return fmt.Sprint(settled(c.ask(q), name, id))
		}
		s := transports["server-sent events"](c, q)
		defer s.stop()
		var all []string
		for {
			a, how := s.outcome()
			text := settled(a, name, id)
			if all = append(all, text+how); how != "" || len(a.Errors) > 0 || strings.Contains(text, "IN_SYNC") {
				return strings.Join(all, "\n")
			}
		}
	}
	hidden, absent := ask(name), ask(strings.Repeat("q", len(name)))
	creates := who == "maker" && (strings.HasPrefix(f.Name, "create") || f.Name == "applyManifest")
	if hidden != absent && !creates {
		t.Errorf("%s asks %s.%s:\nwhat is hidden:  %s\nwhat is not there: %s", who, root.Name, f.Name, cut(hidden), cut(absent))
	}
	w.values = map[string]string{} // everything there is
	if root.Name == "Query" && len(f.Arguments) > 3 {
		w.values["kind"] = graphQL(kind)
		w.values["by"] = `["labels.app"]`
		raw, _ := json.Marshal(c.ask(w.operation(root, f, 4)))
		hidden += string(raw)
	}
	for _, word := range words {
		if strings.Contains(hidden, word) && f.Name != "kinds" {
			t.Errorf("%s asks %s.%s and is told %q:\n%s", who, root.Name, f.Name, word, cut(hidden))
		}
	}
}

// idLike is the global id of a resource with another name of the same length.
func (g *guarded) idLike(kind, namespace, existing, name string) string {
	g.t.Helper()
	where := ""
	if namespace != "" {
		where = fmt.Sprintf(", namespace: %q", namespace)
	}
	id, _ := g.admin.ask(fmt.Sprintf("{ resource(kind: %q, name: %q%s) { id } }", kind, existing, where)).get("resource", "id").(string)
	raw, err := base64.RawURLEncoding.DecodeString(id)
	if err != nil || id == "" {
		g.t.Fatalf("%s %s/%s has the id %q", kind, namespace, existing, id)
	}
	return base64.RawURLEncoding.EncodeToString(bytes.Replace(raw, []byte(existing), []byte(name), 1))
}

// settled is an answer without what differs each time, and with the resource that was asked for as "*".
func settled(a answer, name, id string) string {
	raw, _ := json.Marshal(a)
	text := strings.NewReplacer(id, "*", name, "*").Replace(string(raw))
	return regexp.MustCompile(`"(requestId|cursor|changeCursor|retryAfter)":"?[^",}]*"?`).ReplaceAllString(text, "$1")
}

func cut(s string) string { return s[:min(len(s), 1500)] }
