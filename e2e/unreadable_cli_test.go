package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"
)

const itemKinds = `type Item @resource(plural: "items", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ItemSpec! }
type ItemSpec { text: String @constraint(maxLength: 20), n: Int }
`

// TestUnreadable_IsToldByEveryCommand: a type that was changed makes one of three resources unreadable. No command passes
// over it in silence.
func TestUnreadable_IsToldByEveryCommand(t *testing.T) {
	t.Parallel()
	s := openJudgedShop(t, itemKinds)
	for name, spec := range map[string]string{"a": "{n: 1}", "bad": "{text: hello}", "c": "{n: 3}"} {
		manifest := "apiVersion: example.org/v1\nkind: Item\nmetadata: {name: " + name + ", labels: {u: x}}\nspec: " + spec + "\n"
		if _, errOut, code := s.cli(manifest, "apply", "-f", "-"); code != 0 {
			t.Fatal(errOut)
		}
	}
	s.write("kinds", strings.Replace(itemKinds, "text: String @constraint(maxLength: 20)", "text: Int", 1))
	if _, errOut, code := s.catalogue("reload", "--allow-breaking"); code != 0 {
		t.Fatal(errOut)
	}
	const warning = "sluice: 1 of kind Item cannot be read (sluice get items --unreadable lists them)\n"
	for _, c := range []struct {
		args string
		code int
		out  []string
	}{
		{"get items", 1, []string{"a", "c"}},
		{"get items -o yaml", 1, []string{"name: a", "name: c"}},
		{"get items -o json", 1, []string{`"a"`, `"c"`}},
		{"get items -l u=x -o name", 1, []string{"item/a", "item/c"}},
		{"get items --sort-by .metadata.name -o name", 1, []string{"item/a", "item/c"}},
		{"get all -o name", 1, []string{"item/a", "item/c"}},
		{"label items -l u=x k=v", 4, []string{"Item default/a UPDATED", "Item default/c UPDATED"}},
		{"delete items -l u=x --dry-run", 4, []string{"Item default/a DELETED", "Item default/c DELETED"}},
		{"wait items -l u=x --for=jsonpath={.metadata.labels.u}=x", 1, []string{"item/a condition met", "item/c condition met"}},
	} {
		out, errOut, code := s.cli("", strings.Fields(c.args)...)
		if code != c.code || !strings.Contains(errOut, warning) || strings.Count(errOut, warning) != 1 {
			t.Errorf("%s: exit %d, %s%s", c.args, code, out, errOut)
		}
		for _, want := range c.out {
			if !strings.Contains(out, want) {
				t.Errorf("%s: %q lacks %q", c.args, out, want)
			}
		}
		if strings.HasSuffix(c.args, "-o json") && !json.Valid([]byte(out)) {
			t.Errorf("%s: the list is not complete: %s", c.args, out)
		}
	}
	out, errOut, code := s.cli("", "get", "items", "--unreadable")
	if code != 0 || !strings.Contains(out, "Item   default     bad    Item.spec: ItemSpec.text: ") {
		t.Errorf("exit %d: %s%s", code, out, errOut)
	}
	_, errOut, code = s.cli("", "get", "items", "--unreadable", "-n", "nosuch")
	if code != 0 || errOut != "there is nothing in namespace \"nosuch\"\n" {
		t.Errorf("a namespace without resources: exit %d: %s", code, errOut)
	}
	got := s.must(`{ items { totalCount unreadableCount } itemsSummary(by: ["namespace"]) { unreadableCount } unreadables(kind: "item") { namespace name reason } }`)
	unreadable, total, inSummary := got.get("items", "unreadableCount"), got.get("items", "totalCount"), got.get("itemsSummary", "unreadableCount")
	if unreadable != 1.0 || total != 2.0 || inSummary != 1.0 {
		t.Errorf("%v unreadable of %v, %v in the summary", unreadable, total, inSummary)
	}
	for args, says := range map[string]string{
		"label item bad k=v":                       "cannot read (UNREADABLE; sluice get KIND --unreadable says why, sluice apply replaces it)\n",
		"finalize item bad --remove example.org/x": "Item bad: its finalizers can be changed by a gateway whose catalogue reads it, or after sluice apply has replaced it\n",
	} {
		if _, errOut, code := s.cli("", strings.Fields(args)...); code != 1 || !strings.HasSuffix(errOut, says) {
			t.Errorf("%s: exit %d, %s", args, code, errOut)
		}
	}
	if _, errOut, code := s.cli("", "delete", "item", "bad"); code != 0 {
		t.Error(errOut)
	}
	if _, errOut, code := s.cli("", "get", "items"); code != 0 || errOut != "" {
		t.Errorf("exit %d, %s", code, errOut)
	}
}

// TestUnreadable_DependentsAreInATree: a resource that cannot be read and relies on another is in the tree of that one.
func TestUnreadable_DependentsAreInATree(t *testing.T) {
	t.Parallel()
	const kinds = `type Item @resource(plural: "items", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ItemSpec! }
type ItemSpec { text: String @constraint(maxLength: 20), boxRef: String @ref(kind: "Box", inverse: "items", guarded: true) @constraint(maxLength: 20) }
type Box @resource(plural: "boxes", group: "example.org", version: "v1", scope: NAMESPACED) { spec: BoxSpec! }
type BoxSpec { n: Int }
`
	s := openJudgedShop(t, kinds)
	s.must(`mutation { createBox(input: {name: "b", spec: {}}) { box { id } } }`)
	s.must(`mutation { createItem(input: {name: "good", spec: {boxRef: "b"}}) { item { id } } }`)
	s.must(`mutation { createItem(input: {name: "bad", spec: {boxRef: "b", text: "x"}}) { item { id } } }`)
	s.must(`mutation { createItem(input: {name: "other", spec: {text: "x"}}) { item { id } } }`)
	s.write("kinds", strings.Replace(kinds, "text: String @constraint(maxLength: 20)", "text: Int", 1))
	if _, errOut, code := s.catalogue("reload", "--allow-breaking"); code != 0 {
		t.Fatal(errOut)
	}
	out, errOut, code := s.cli("", "tree", "box", "b")
	if code != 0 {
		t.Fatal(errOut)
	}
	for name, want := range map[string]string{"item/good": "BOUND yes spec.boxRef", "item/bad": "UNREADABLE yes", "item/other": ""} {
		got := ""
		for line := range strings.Lines(out) {
			if before, after, found := strings.Cut(line, name); found && !strings.Contains(before, "item") {
				got = strings.Join(strings.Fields(after), " ")
			}
		}
		if !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%s: %q, want %q\n%s", name, got, want, out)
		}
	}
}
