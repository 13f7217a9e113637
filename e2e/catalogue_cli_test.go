package e2e_test

import (
	"path/filepath"
	"strings"
	"testing"
)

// oddKinds offer less, and report otherwise, than those of the release.
const oddKinds = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: GLOBAL) {
  spec: ShelfSpec!
  status: ShelfStatus
}

type ShelfSpec {
  colour: String @constraint(maxLength: 9)
}

type ShelfStatus {
  load: Int
}

type Board @resource(plural: "boards", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ShelfSpec!
  status: BoardStatus
}

type BoardStatus {
  aspects: [BoardAspect!]
}

type BoardAspect {
  type: Int
  status: String
}

type Note @resource(plural: "notes", group: "example.org", version: "v1", scope: NAMESPACED, verbs: [GET, CREATE]) {
  spec: ShelfSpec!
}
`

func TestTheCommandLineServesCataloguesThatItDoesNotKnow(t *testing.T) {
	t.Parallel()
	kinds := t.TempDir()
	writeFile(t, filepath.Join(kinds, "odd.graphqls"), oddKinds)
	g := start(t, "", "--catalogue", kinds)
	manifest := func(kind string) string {
		return "apiVersion: example.org/v1\nkind: " + kind + "\nmetadata: {name: x}\nspec: {colour: red}\n"
	}
	for _, kind := range []string{"Shelf", "Board", "Note"} {
		if out, errOut, code := g.cli(manifest(kind), "create", "-f", "-"); code != 0 {
			t.Errorf("create %s: %d %s%s", kind, code, out, errOut)
		}
	}
	for _, test := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"get", "SHELVES"}, 0, "x"},
		{[]string{"get", "shelf", "x", "-o", "manifest"}, 0, "colour: red"},
		{[]string{"get", "Boards"}, 0, "x"},
		{[]string{"get", "board", "x"}, 0, "x"},
		{[]string{"get", "NOTE", "x"}, 0, "x"},
		{[]string{"get", "notes"}, 1, "kind Note does not offer LIST; it offers GET and CREATE"},
		{[]string{"get", "all", "-o", "name"}, 0, "board/x\nshelf/x\n"},
		{[]string{"get", "shelves", "-A", "-o", "wide"}, 0, "NAME   AGE   REVISION"},
		{[]string{"get", "boards", "-A"}, 0, "NAMESPACE   NAME   AGE"},
		{[]string{"get", "shelves", "--filter", "spec.colour=red"}, 2, "usable are metadata.name, metadata.createdAt, metadata.updatedAt"},
		{[]string{"describe", "shelf", "x"}, 0, "colour: red"},
		{[]string{"wait", "shelf/x", "--for=jsonpath={.spec.colour}=red"}, 0, "shelf/x condition met"},
		{[]string{"wait", "shelf/x", "--for=condition=Available"}, 2, "kind Shelf has no conditions"},
		{[]string{"wait", "note/x", "--for=delete"}, 1, "kind Note does not offer WATCH"},
		{[]string{"describe", "note/x"}, 0, "colour: red"},
		{[]string{"explain", "board.status.aspects"}, 0, "<[BoardAspect]>"},
		{[]string{"watch", "notes"}, 1, "kind Note does not offer WATCH; it offers GET and CREATE"},
		{[]string{"delete", "Notes", "x"}, 1, "Note x: kind Note does not offer DELETE; it offers GET and CREATE"},
		{[]string{"delete", "sHelf", "x"}, 0, "Shelf x DELETED"},
	} {
		out, errOut, code := g.cli("", test.args...)
		if code != test.code || !strings.Contains(out+errOut, test.says) || strings.Count(out+errOut, "\n") > 12 {
			t.Errorf("%v: %d\n%s%s", test.args, code, out, errOut)
		}
	}
}
