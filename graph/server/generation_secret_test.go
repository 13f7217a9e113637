package server_test

import (
	"bufio"
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/server"
)

// Catalogues whose shelves show a label, hide it, or have none.
const (
	labelled = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int!
  label: String @constraint(maxLength: 20) }
`
	secretive = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int!
  label: String @constraint(maxLength: 20) @writeOnly }
`
)

const labels = `subscription($after: String) { event: shelfChanges(after: $after) { type cursor shelf { spec { label } } } }`

// TestNoStreamShowsWhatIsHiddenSince: neither one of the catalogue before, nor one
// of the catalogue before that.
func TestNoStreamShowsWhatIsHiddenSince(t *testing.T) {
	for name, between := range map[string][]string{"at once": nil, "the label was gone meanwhile": {narrow}} {
		t.Run(name, func(t *testing.T) {
			c := newChanging(t, server.Config{})
			c.replace(labelled)
			w := c.dial()
			w.begin("1", labels, nil)
			w.read() // IN_SYNC
			req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/graphql?query=subscription%7BshelfChanges%7Bcursor%20shelf%7Bspec%7Blabel%7D%7D%7D%7D", nil)
			req.Header.Set("Accept", "text/event-stream")
			res, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = res.Body.Close() }()
			for _, sdl := range between {
				c.replace(sdl)
			}
			c.put("before", 1)
			if m := w.read(); m.Type != "next" {
				t.Fatalf("heard %s %s", m.Type, m.Payload)
			}
			c.replace(secretive)
			if got := c.post(t, `mutation { createShelf(input: {name: "s", spec: {width: 1, label: "SECRET"}}) { shelf { id } } }`, nil); strings.Contains(got, "errors") {
				t.Fatal(got)
			}
			end := w.read().ending(t)[0].Extensions
			if end.Code != string(failure.CodeCatalogueChanged) || !end.Retryable || end.Cursor == "" {
				t.Errorf("it ended with %v", end)
			}
			lines := bufio.NewScanner(res.Body)
			for lines.Scan() {
				if strings.Contains(lines.Text(), "SECRET") {
					t.Errorf("server-sent events show %s", lines.Text())
				}
			}
			w.begin("1", shelfChanges, map[string]any{"after": end.Cursor})
			if e := w.read().event(t); e.Data.Event.Shelf.Metadata.Name != "s" {
				t.Errorf("it resumes with %v", e)
			}
		})
	}
}

// TestAStreamOfEveryKindMissesNothingOfANewOne: one of the catalogue before that too.
// A stream of one kind goes on.
func TestAStreamOfEveryKindMissesNothingOfANewOne(t *testing.T) {
	c := newChanging(t, server.Config{})
	w := c.dial()
	const every = `subscription($after: String) { event: resourceChanges(after: $after) { cursor resource { kind metadata { name } } } }`
	w.begin("1", every, nil)
	w.read() // IN_SYNC
	c.replace(labelled)
	c.put("a", 1)
	if m := w.read(); m.Type != "next" {
		t.Fatalf("heard %s %s", m.Type, m.Payload)
	}
	one := c.dial()
	one.begin("1", `subscription { event: resourceChanges(kinds: ["Shelf"]) { cursor } }`, nil)
	one.read()
	c.replace(wide)
	if got := c.post(t, `mutation { createBox(input: {name: "b", spec: {size: 1}}) { box { id } } }`, nil); strings.Contains(got, "errors") {
		t.Fatal(got)
	}
	c.put("c", 1)
	end := w.read().ending(t)[0].Extensions
	if end.Code != string(failure.CodeCatalogueChanged) || end.Cursor == "" {
		t.Errorf("it ended with %v", end)
	}
	w.begin("1", every, map[string]any{"after": end.Cursor})
	if m := w.read(); !strings.Contains(string(m.Payload), `"kind":"Box"`) {
		t.Errorf("it resumes with %s", m.Payload)
	}
	if m := one.read(); m.Type != "next" {
		t.Errorf("the stream of one kind: %s %s", m.Type, m.Payload)
	}
}

// TestAStreamBesideWhatIsHiddenGoesOn: a field that was hidden before ends nothing.
func TestAStreamBesideWhatIsHiddenGoesOn(t *testing.T) {
	c := newChanging(t, server.Config{})
	c.replace(secretive)
	w := c.dial()
	w.begin("1", shelfChanges, nil)
	w.read()
	c.replace(strings.Replace(secretive, "width: Int!", "width: Int! @filterable", 1))
	c.put("a", 1)
	if e := w.read().event(t); e.Data.Event.Shelf.Spec.Width != 1 {
		t.Errorf("it goes on with %v", e)
	}
}

// TestAVariableOfAWriteOnlyFieldIsNeverQuoted: neither a value, nor the key of a map.
func TestAVariableOfAWriteOnlyFieldIsNeverQuoted(t *testing.T) {
	c := newChanging(t, server.Config{})
	c.replace(`type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int!
  env: [MapEntry!] @writeOnly @map @constraint(maxProperties: 3, maxLength: 20, keyMaxLength: 20)
  key: ShelfKey @writeOnly }
type ShelfKey { number: Int }
`)
	const create = `mutation($s: ShelfSpecInput!) { createShelf(input: {name: "a", spec: $s}) { shelf { id } } }`
	for value, at := range map[string]string{
		`{"env": {"SECRET": "x"}}`:                 "env",
		`{"env": [{"key": "a", "SECRET": "x"}]}`:   "env",
		`{"env": [{"key": {"SECRET": 1}}]}`:        "env",
		`{"key": {"SECRET": 1}}`:                   "key",
		`{"key": {"number": "SECRET"}}`:            "key",
		`{"key": "SECRET"}`:                        "key",
		`{"width": 1, "env": "SECRET", "key": {}}`: "env",
	} {
		var spec map[string]any
		if err := json.Unmarshal([]byte(value), &spec); err != nil {
			t.Fatal(err)
		}
		got := c.post(t, create, map[string]any{"s": spec})
		if strings.Contains(got, "SECRET") || !strings.Contains(got, `"field":"s.`+strings.ReplaceAll(at, `","`, ".")+`"`) || !strings.Contains(got, "the value of a write-only field does not have its type") {
			t.Errorf("%s: %s", value, got)
		}
	}
	for _, spec := range []map[string]any{{"width": 1, "key": map[string]any{"number": 1}}, {"width": 1, "env": []any{map[string]any{"key": "a", "value": "x"}}}} {
		if got := c.post(t, `mutation($s: ShelfSpecInput!) { upsertShelf(input: {name: "a", spec: $s}) { shelf { id } } }`, map[string]any{"s": spec}); strings.Contains(got, "errors") {
			t.Errorf("%v: %s", spec, got)
		}
	}
}

func TestADefaultOfAVariableOfAWriteOnlyFieldIsNeverQuoted(t *testing.T) {
	c := newChanging(t, server.Config{})
	c.replace(`type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { width: Int
  secret: String @writeOnly @constraint(maxLength: 20) }
`)
	got := c.post(t, `mutation($s: String = 5555555, $w: Int = "wide") { createShelf(input: {name: "a", spec: {secret: $s, width: $w}}) { shelf { id } } }`, nil)
	if strings.Contains(got, "5555555") || !strings.Contains(got, kinds.Concealed) || !strings.Contains(got, `\"wide\"`) {
		t.Error(got)
	}
}
