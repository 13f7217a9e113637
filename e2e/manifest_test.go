package e2e_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// manifestFolders are folders of folders of manifests: examples that work, some
// that show what is refused, and what others wrote, where it is at hand.
func manifestFolders(t *testing.T) []string {
	t.Helper()
	var out []string
	for root, least := range map[string]int{
		filepath.Join("..", "examples", "manifests"):                   3,
		filepath.Join("testdata", "manifests"):                         2,
		filepath.Join("..", "..", "shared", "data", "orc", "examples"): 0,
	} {
		folders, err := filepath.Glob(filepath.Join(root, "*"))
		if err != nil || len(folders) < least {
			t.Fatalf("%s: %d folders, want %d or more; %v", root, len(folders), least, err)
		}
		out = append(out, folders...)
	}
	return out
}

// TestManifestsOfAllSortsAreAppliedAndReadBack applies each folder into a
// namespace of its own, its files forwards and backwards.
func TestManifestsOfAllSortsAreAppliedAndReadBack(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	known := map[string]string{}
	for _, k := range kindstest.Kinds(t) {
		known[k.Name] = k.Plural
	}
	g := start(t, "")
	for _, folder := range manifestFolders(t) {
		var files []string
		for _, ending := range []string{"*.yaml", "*.json"} {
			found, err := filepath.Glob(filepath.Join(folder, ending))
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, found...)
		}
		if len(files) == 0 {
			t.Fatalf("%s: no manifest", folder)
		}
		for _, direction := range []string{"forwards", "backwards"} {
			t.Run(filepath.Base(folder)+" "+direction, func(t *testing.T) {
				docs, strangers, refused := g.applyFolder(t, filepath.Base(folder)+"-"+direction, files, known)
				if example := strings.Contains(folder, "manifests"); example && docs == 0 || strings.HasPrefix(folder, "..") && example && strangers+refused > 0 {
					t.Errorf("%d applied, %d of unknown kinds, %d refused", docs, strangers, refused)
				}
			})
			slices.Reverse(files)
		}
	}
}

// applyFolder applies the files in their order, holds what is stored against
// them, and counts what was applied, what is of unknown kinds and what breaks its own rules.
func (g *gateway) applyFolder(t *testing.T, namespace string, files []string, known map[string]string) (applied, strangers, refused int) {
	t.Helper()
	args := []string{"apply", "-n", namespace}
	type doc struct{ kind, name, text string }
	var docs []doc
	for _, f := range files {
		args = append(args, "-f", f)
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		for _, part := range manifest.Split(string(raw)) {
			d, err := manifest.Parse(part.Text)
			switch {
			case err != nil:
				t.Fatalf("%s: %v", f, err)
			case known[d.Kind] == "":
				strangers++
			case breaksItsOwnRules(t, d.Spec):
				refused++
			default:
				docs = append(docs, doc{d.Kind, d.Metadata.Name, part.Text})
			}
		}
	}
	for _, want := range []string{"CREATED", "UNCHANGED"} {
		out, errOut, code := g.cli("", args...)
		if (code != 0) != (strangers+refused > 0) || strings.Count(out, want) != len(docs) || strings.Count(out, "\n") != len(docs) {
			t.Errorf("exit %d, want %d times %s\n%s%s", code, len(docs), want, out, errOut)
		}
		if got := strings.Count(errOut, "is not known; known kinds: "); got != strangers {
			t.Errorf("%d documents of unknown kinds are named, want %d:\n%s", got, strangers, errOut)
		}
		if got := strings.Count(errOut, "set import: it is required"); got != refused {
			t.Errorf("%d documents break their own rules, want %d:\n%s", got, refused, errOut)
		}
	}
	for _, d := range docs {
		out, errOut, code := g.cli("", "get", known[d.kind], d.name, "-n", namespace, "-o", "yaml")
		if code != 0 {
			t.Fatalf("%s %s: %s", d.kind, d.name, errOut)
		}
		wantSameSpec(t, out, d.text)
		if again, errOut, _ := g.cli(out, "apply", "-f", "-"); !strings.Contains(again, "UNCHANGED") {
			t.Errorf("%s %s as it was read: %s%s", d.kind, d.name, again, errOut)
		}
	}
	return len(docs), strangers, refused
}

// breaksItsOwnRules recognises a manifest that is meant to be completed by an
// overlay: unmanaged, and an import without content.
func breaksItsOwnRules(t *testing.T, spec json.RawMessage) bool {
	t.Helper()
	var s struct {
		ManagementPolicy string
		Import           map[string]any
	}
	if err := json.Unmarshal(spec, &s); err != nil {
		t.Fatal(err)
	}
	return s.ManagementPolicy == "unmanaged" && len(s.Import) == 0
}

func wantSameSpec(t *testing.T, got, want string) {
	t.Helper()
	specOf := func(text string) any {
		raw, err := manifest.ToJSON(text)
		if err != nil {
			t.Fatal(err)
		}
		var doc struct{ Spec any }
		if err := json.Unmarshal(raw, &doc); err != nil {
			t.Fatal(err)
		}
		return doc.Spec
	}
	if g, w := specOf(got), specOf(want); !reflect.DeepEqual(g, w) {
		t.Errorf("spec %v, want %v", g, w)
	}
}

func TestTwoDocumentsOfOneResourceThatDifferAreRefusedTogether(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	dir := t.TempDir()
	for name, text := range map[string]string{"a.yaml": networkManifest, "b.yaml": strings.Replace(networkManifest, "- bar", "- baz", 1)} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	out, errOut, code := g.cli("", "apply", "-f", dir)
	if code != 2 || out != "" || !strings.Contains(errOut, "a.yaml:1 and ") || !strings.Contains(errOut, "b.yaml:1 are of the same resource, ") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	if out, _, _ := g.cli("", "get", "networks"); strings.Contains(out, "net-a") {
		t.Error("something was applied")
	}
}

// TestManifests_StoreTheSameInEveryForm applies the same resources as documents, as items of a List, as a stream of
// JSON objects and by the mutation applyManifest.
func TestManifests_StoreTheSameInEveryForm(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	texts := []string{
		"a", "two words", "010", "1_000", "~", "a: b", "- x", "#", " leading", "trailing ", "tab\there", "a\n", "a\nb", "\n\na\n\n", " a\n  b\n", "a b\n\nc\n\n\nd e f\n",
		strings.Repeat("long words ", 25), "a\u0085b\u2028c\u2029d", "<&>", "\\n", "'", "\"", "%", "🙂", "---\n", "key: |\n  x\n",
	}
	quote := func(text string) string {
		raw, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	// block writes lines as a folded or literal scalar. What it means is up to YAML: it is compared between forms.
	block := func(style, text, indent string) string {
		return style + "2+\n" + indent + strings.ReplaceAll(strings.TrimLeft(text, "\n"), "\n", "\n"+indent)
	}
	document := func(text, indent string) string {
		lines := []string{
			"apiVersion: v1", "kind: Secret", "metadata:", "  name: NAME", "  annotations:", "    quoted: " + quote(text),
			"    folded: " + block(">", text, indent+"      "), "    literal: " + block("|", text, indent+"      "),
			"stringData:", "  quoted: " + quote(text), "  folded: " + block(">", text, indent+"    "),
		}
		return strings.Join(lines, "\n"+indent) + "\n"
	}
	var documents, list, stream strings.Builder
	list.WriteString("kind: SecretList\nitems:\n")
	for i, text := range texts {
		name := fmt.Sprintf("s%d", i)
		alone := strings.ReplaceAll(document(text, ""), "NAME", name)
		documents.WriteString("---\n" + alone)
		list.WriteString("- " + strings.ReplaceAll(document(text, "  "), "NAME", name))
		raw, err := manifest.ToJSON(alone)
		if err != nil {
			t.Fatalf("%q: %v\n%s", text, err, alone)
		}
		stream.Write(raw)
		a := g.post(`mutation($m: String!) { applyManifest(input: {manifest: $m, namespace: "mutation"}) { outcome } }`, map[string]any{"m": alone})
		if a.codes() != "" {
			t.Fatalf("%q: %v", text, a)
		}
	}
	forms := map[string]string{"documents": documents.String(), "list": list.String(), "stream": stream.String()}
	for form, text := range forms {
		if out, errOut, code := g.cli(text, "apply", "-n", form, "-f", "-"); code != 0 || strings.Count(out, "CREATED") != len(texts) {
			t.Fatalf("%s: exit %d\n%s%s", form, code, out, errOut)
		}
	}
	// stored are the annotations and the values of all resources in a namespace, by name.
	stored := func(namespace string) map[string]string {
		t.Helper()
		query := fmt.Sprintf(`{ secrets(namespace: %q, first: 100) { nodes { metadata { name annotations { key value } } } } `, namespace)
		for i := range texts {
			query += fmt.Sprintf(`s%d: reveal(kind: "Secret", namespace: %q, name: "s%[1]d") { values { path key value } } `, i, namespace)
		}
		a := g.must(query + "}")
		out := map[string]string{}
		for _, node := range a.get("secrets", "nodes").([]any) {
			metadata := node.(map[string]any)["metadata"].(map[string]any)
			name := metadata["name"].(string)
			out[name] = fmt.Sprintf("%q\n%q", metadata["annotations"], a.get(name, "values"))
		}
		if len(out) != len(texts) {
			t.Fatalf("%s: %d resources, want %d", namespace, len(out), len(texts))
		}
		return out
	}
	want := stored("mutation")
	for form := range forms {
		got := stored(form)
		for i, text := range texts {
			name := fmt.Sprintf("s%d", i)
			if got[name] != want[name] {
				t.Errorf("%q in %s:\n%s\nby the mutation:\n%s", text, form, got[name], want[name])
			}
		}
	}
	for i, text := range texts {
		name := fmt.Sprintf("s%d", i)
		if quoted, _, _ := g.cli("", "reveal", "secret", name, "-n", "mutation", "--key", "quoted"); quoted != text {
			t.Errorf("%q is stored as %q", text, quoted)
		}
	}
}
