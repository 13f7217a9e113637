package output_test

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

var update = flag.Bool("update", false, "rewrite the expectations in testdata")

func now() time.Time { return time.Date(2026, 2, 3, 4, 5, 6, 0, time.UTC) }

// shelf is a kind with everything that is printed.
func shelf() client.Kind {
	return client.Kind{
		Name: "Shelf", Singular: "shelf", Plural: "shelves", Scope: "NAMESPACED", Group: "example.org", APIVersion: "example.org/v1",
		ShortNames: []string{"sh"}, Verbs: []string{"GET", "LIST"}, Description: "A shelf.",
		Fields: []client.Field{
			{Path: "spec.width", Type: "Int", Description: "Width in mm.", Default: json.RawMessage("900"), Limits: client.Limits{Min: new(1.0), Max: new(5000000.0)}},
			{Path: "spec.code", Type: "String", Required: true, Immutable: true, Limits: client.Limits{MinLength: new(3), MaxLength: new(10), Pattern: "^[A-Z]"}},
			{Path: "spec.type", Type: "String", ManifestAt: "type", Default: json.RawMessage("null")},
			{Path: "spec.secret", Type: "String", WriteOnly: true},
			{Path: "spec.roomRef", Type: "String", Description: "Where it stands."},
			{Path: "spec.extras", Type: "MapEntry", List: true},
			{Path: "spec.boards", Type: "Board", List: true, ListType: "MAP", Keys: []string{"at"}, Limits: client.Limits{MaxItems: new(9)}},
			{Path: "spec.boards.at", Type: "Int", Required: true},
			{Path: "spec.boards.material", Type: "Material", EnumValues: []client.EnumValue{{Name: "OAK", Stored: "OAK"}, {Name: "DARK_OAK", Stored: "dark-oak", Description: "Oak that is dark."}}, DeprecationReason: "use wood"},
			{Path: "status.conditions", Type: "Condition", List: true},
			{Path: "status.conditions.type", Type: "String"},
			{Path: "status.conditions.status", Type: "String"},
		},
		Columns:    []client.Column{{Title: "WIDTH", Path: "spec.width"}, {Title: "BOARDS", Path: "spec.boards.at"}, {Title: "CODE", Path: "spec.code", Wide: true}},
		References: []client.Reference{{Path: "spec.roomRef", Kind: "Room", Guarded: true}},
	}
}

func resource(name string, width string) *client.Resource {
	r := &client.Resource{Kind: "Shelf", ID: "id-" + name}
	ns := "default"
	r.Metadata = client.Metadata{
		Name: name, Namespace: &ns, UID: "uid-" + name, Revision: "7-1", Generation: 2,
		CreatedAt: now().Add(-90 * time.Minute), UpdatedAt: now().Add(-time.Minute),
		Labels: []client.Pair{{Key: "team", Value: "web"}}, Description: "for <books>",
	}
	r.Spec = json.RawMessage(`{"width":` + width + `,"code":"ABC","type":"tall","boards":[{"at":10},{"at":20,"material":"dark-oak"}],"extras":{"colour":"rot\u001b[31m"}}`)
	r.Status = json.RawMessage(`{"load":0.5,"conditions":[{"type":"Available","status":"False","reason":"Waiting","message":"Waiting for Room/a to be created\nWaiting for Room/b to be created","lastTransitionTime":"2026-02-03T04:00:00Z"},{"type":"Progressing","status":"True","reason":"Waiting","message":"still at work"}]}`)
	return r
}

// transcript compares what was written with a file.
func transcript(t *testing.T, name, got string) {
	t.Helper()
	file := filepath.Join("testdata", name+".txt")
	if *update {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}

func TestEveryFormIsWhatItsTranscriptSays(t *testing.T) {
	formats := append([]string{}, "table", "wide", "yaml", "json", "name",
		`jsonpath={range .items[*]}{.metadata.name}{"\t"}{.spec.width}{"\n"}{end}`, `jsonpath={.items[?(@.spec.width>1000)].metadata.name}`,
		"custom-columns=NAME:.metadata.name,BOARDS:.spec.boards[*].at,NONE:.spec.nothing")
	var b strings.Builder
	for _, format := range formats {
		f, err := output.ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		b.WriteString("$ -o " + format + "\n")
		p := output.NewPrinter(&b, f, output.Options{Now: now})
		for _, r := range []*client.Resource{resource("a", "900"), resource("b", "1200")} {
			if err := p.Print(shelf(), r); err != nil {
				t.Fatal(err)
			}
		}
		if err := p.End(); err != nil || p.Count() != 2 {
			t.Fatal(err, p.Count())
		}
		b.WriteString("\n")
	}
	transcript(t, "forms", b.String())
}

func TestOneResourceStandsAlone(t *testing.T) {
	for format, want := range map[string]string{
		"jsonpath={.spec.width}": "900", "jsonpath=.metadata.name": "a", "jsonpath={.spec.nothing}": "", "name": "shelf/a\n",
	} {
		f, err := output.ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		p := output.NewPrinter(&b, f, output.Options{Single: true, Now: now})
		if err := p.Print(shelf(), resource("a", "900")); err != nil {
			t.Fatal(err)
		}
		if err := p.End(); err != nil || b.String() != want {
			t.Errorf("%s: %q %v", format, b.String(), err)
		}
	}
}

func TestChangesAreShownInTheSameTable(t *testing.T) {
	var b strings.Builder
	p := output.NewPrinter(&b, output.Format{Form: output.FormTable}, output.Options{Changes: true, Now: now, Colours: true})
	show := func(kind string, r *client.Resource) {
		if err := p.PrintChange(shelf(), &client.Change{Type: kind, Resource: r, Revision: "7-1", Cursor: "c"}); err != nil {
			t.Fatal(err)
		}
	}
	show("RESET", nil)
	show("SNAPSHOT", resource("a", "900"))
	if b.Len() > 0 {
		t.Error("the state is not written as one table")
	}
	show("IN_SYNC", nil)
	show("MODIFIED", resource("a", "1000"))
	show("DELETED", resource("a", "1000"))
	transcript(t, "changes", b.String())
}

func TestEveryFormOfAWatchShowsTheEvent(t *testing.T) {
	for format, want := range map[string]string{
		"name": "ADDED shelf/a\nMODIFIED shelf/a\n", "custom-columns=W:.spec.width": "EVENT      W\nADDED      900\nMODIFIED   900\n",
	} {
		f, err := output.ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		p := output.NewPrinter(&b, f, output.Options{Changes: true, Now: now})
		for _, event := range []string{"ADDED", "MODIFIED"} {
			if err := p.PrintChange(shelf(), &client.Change{Type: event, Resource: resource("a", "900")}); err != nil {
				t.Fatal(err)
			}
		}
		if b.String() != want {
			t.Errorf("%s: %q, want %q", format, b.String(), want)
		}
	}
}

func TestWhatIsNoFormIsRefused(t *testing.T) {
	for _, text := range []string{"", "xml", "yaml=x", "jsonpath", "jsonpath=", "jsonpath={.a", "custom-columns", "custom-columns=NAME", "custom-columns=NAME:", "custom-columns=NAME:.a,", "custom-columns=A:.a[", "custom-columns=:.a"} {
		if _, err := output.ParseFormat(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}

func TestATerminalGetsNoControlCharacters(t *testing.T) {
	for _, format := range []string{"yaml", "json", "wide", "jsonpath={.items[*].spec.extras.colour}", "custom-columns=C:.spec.extras.colour", "manifest"} {
		f, err := output.ParseFormat(format)
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		p := output.NewPrinter(&b, f, output.Options{Now: now, Terminal: true})
		r := resource("a", "900")
		r.Manifest = "a: \u202e\n"
		r.Metadata.Description = "\u202e|\n second\x7f"
		if err := p.Print(shelf(), r); err != nil {
			t.Fatal(err)
		}
		if err := p.End(); err != nil || strings.ContainsAny(b.String(), "\x1b\u202e\x7f") {
			t.Errorf("%s: %q %v", format, b.String(), err)
		}
	}
}

func TestResourcesAreSortedByNumbersAndTexts(t *testing.T) {
	list := []*client.Resource{resource("w900", "900"), resource("w1000", "1000"), resource("w80", "80"), resource("wnull", "null")}
	for expression, want := range map[string]string{
		".spec.width": "wnull w80 w900 w1000", "{.spec.width}": "wnull w80 w900 w1000", "metadata.name": "w1000 w80 w900 wnull", ".spec.code": "w900 w1000 w80 wnull", ".spec.nothing": "w900 w1000 w80 wnull",
	} {
		path, err := output.ParsePath(expression)
		if err != nil {
			t.Fatal(err)
		}
		sorted := slices.Clone(list)
		found, err := output.Sort(shelf(), sorted, path)
		if err != nil || found != (expression != ".spec.nothing") {
			t.Errorf("%s: %v %v", expression, found, err)
		}
		var got []string
		for _, r := range sorted {
			got = append(got, r.Metadata.Name)
		}
		if strings.Join(got, " ") != want {
			t.Errorf("%s: %v, want %s", expression, got, want)
		}
	}
}

func TestADescriptionShowsWhatTheResourceIsTiedTo(t *testing.T) {
	var b strings.Builder
	if err := output.Describe(&b, output.Description{Kind: shelf(), Resource: resource("a", "900"), Now: now(), Around: &client.Tree{
		Dependencies: []client.TreeNode{{Kind: "Room", Name: "a", Path: "spec.roomRef", Guarded: true, State: "MISSING"}},
		Dependents:   []client.TreeNode{{Kind: "Book", Name: "b", Path: "spec.shelfRef", State: "BOUND"}},
		Truncated:    true,
	}}); err != nil {
		t.Fatal(err)
	}
	transcript(t, "describe", b.String())
}

func TestAnExplanationSaysWhatTheCatalogueSays(t *testing.T) {
	var b strings.Builder
	for _, path := range []string{"", "metadata", "spec", "spec.width", "spec.code", "spec.type", "spec.roomRef", "spec.boards", "spec.boards.material"} {
		b.WriteString("$ explain shelf " + path + "\n")
		if err := output.Explain(&b, shelf(), path, false); err != nil {
			t.Fatal(err)
		}
		b.WriteString("\n")
	}
	b.WriteString("$ explain shelf --recursive\n")
	if err := output.Explain(&b, shelf(), "", true); err != nil {
		t.Fatal(err)
	}
	transcript(t, "explain", b.String())
	for path, says := range map[string]string{
		"spec.widht": `Shelf has no field at "spec.widht"; Shelf.spec has width, code,`, "nothing": "Shelf has metadata, spec, status", "spec.boards.at.x": "Shelf.spec.boards has at, material",
	} {
		if err := output.Explain(&b, shelf(), path, false); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func TestTheMessageOfAWideTableIsTheOneThatTellsMost(t *testing.T) {
	const success, waits, failed = `"reason":"Success","message":"up to date"`, `"reason":"Progressing","message":"waiting"`, `"reason":"InvalidConfiguration","message":"no such flavor"`
	for name, c := range map[string]struct{ available, progressing, want string }{
		"all is well":                        {`"status":"True",` + success, `"status":"False",` + success, "up to date"},
		"it waits":                           {`"status":"False","message":"not ready"`, `"status":"True",` + waits, "waiting"},
		"a change failed":                    {`"status":"True","message":"ready"`, `"status":"False",` + failed, "no such flavor"},
		"done, and not available":            {`"status":"False","message":"no cloud"`, `"status":"False",` + success, "no cloud"},
		"Available says nothing":             {`"status":"True"`, `"status":"False",` + success, "up to date"},
		"Progressing says nothing":           {`"status":"False","message":"no cloud"`, `"status":"Unknown"`, "no cloud"},
		"a report that says nothing of both": {`"status":"True"`, `"status":"False"`, "-"},
	} {
		t.Run(name, func(t *testing.T) {
			f, err := output.ParseFormat("wide")
			if err != nil {
				t.Fatal(err)
			}
			var b strings.Builder
			r := resource("a", "900")
			r.Status = json.RawMessage(`{"conditions":[{"type":"Available",` + c.available + `},{"type":"Progressing",` + c.progressing + `}]}`)
			p := output.NewPrinter(&b, f, output.Options{Now: now})
			if err := p.Print(shelf(), r); err != nil {
				t.Fatal(err)
			}
			if err := p.End(); err != nil || !strings.HasSuffix(b.String(), "   "+c.want+"\n") {
				t.Errorf("%v\n%s", err, b.String())
			}
		})
	}
}
