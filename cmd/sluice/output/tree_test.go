package output_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// node is one of a tree whose ids are names.
func node(level int, from, name, path, state string) client.TreeNode {
	return client.TreeNode{ResourceID: name, Kind: "Shelf", Namespace: new("default"), Name: name, Level: level, From: from, Path: path, State: state, Guarded: state == "BOUND"}
}

func TestATreeIsDrawnWithCyclesRepetitionsAndNamespaces(t *testing.T) {
	cycle := node(3, "c", "root", "spec.back", "BOUND")
	cycle.Cycle = true
	going := node(1, "root", "b", "spec.b", "DELETING")
	going.Resource = &client.TreeResource{}
	going.Resource.Metadata.DeletionRequestedAt = new(time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC))
	global := node(2, "b", "g", "spec.g", "MISSING")
	global.Namespace = nil
	far := node(1, "root", "far", "spec.root\x1b[31m", "NOT_READY")
	far.Namespace = new("other")
	gone := node(1, "root", "gone", "spec.root", "")
	tree := &client.Tree{
		Root: node(0, "", "root", "", ""),
		// c is met below b, which is drawn after a, and before that level by level.
		Dependencies: []client.TreeNode{
			node(1, "root", "a", "spec.a", "BOUND"), going,
			node(2, "a", "c", "spec.c", "BOUND"), node(2, "a", "c", "spec.other", "BOUND"), node(2, "b", "c", "spec.c", "NOT_READY"), global,
			cycle,
		},
		Dependents: []client.TreeNode{far, gone},
		Truncated:  true,
	}
	var b strings.Builder
	for _, o := range []output.TreeOptions{{Dependencies: true, Dependents: true}, {Dependents: true}, {Dependencies: true, Colours: true}} {
		if err := output.DrawTree(&b, tree, o); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	b.WriteString("what may not be seen\n")
	if err := output.DrawTree(&b, &client.Tree{Root: tree.Root, HiddenBlockers: 2}, output.TreeOptions{Dependents: true}); err != nil {
		t.Fatal(err)
	}
	b.WriteString("\nnothing around it\n")
	if err := output.DrawTree(&b, &client.Tree{Root: tree.Root}, output.TreeOptions{Dependencies: true, Dependents: true}); err != nil {
		t.Fatal(err)
	}
	transcript(t, "tree", b.String())
}

func TestHoldersThatAreHiddenAreCounted(t *testing.T) {
	for want, c := range map[string]struct {
		names         []string
		total, hidden int
	}{
		"a": {[]string{"a"}, 1, 0}, "2 that you may not see": {hidden: 2}, "a and 4 more and 1 that you may not see": {[]string{"a"}, 5, 1},
	} {
		if got := output.Holders(c.names, c.total, c.hidden); got != want {
			t.Errorf("%+v: %q, want %q", c, got, want)
		}
	}
}

func TestSomeOfSeveralAreNamed(t *testing.T) {
	for want, c := range map[string]struct {
		names []string
		total int
	}{
		"": {}, "a": {[]string{"a"}, 1}, "a and b": {[]string{"a", "b"}, 2}, "a, b and c": {[]string{"a", "b", "c"}, 3},
		"a, b, c and 1 more": {[]string{"a", "b", "c", "d"}, 4}, "a and 99 more": {[]string{"a"}, 100},
	} {
		if got := output.Some(c.names, c.total); got != want {
			t.Errorf("%v of %d: %q, want %q", c.names, c.total, got, want)
		}
	}
}
