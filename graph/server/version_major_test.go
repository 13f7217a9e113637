package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
)

func TestMajors_HavePathsOfTheirOwn(t *testing.T) {
	c := openMajors(t, openMemory(t))
	for path, names := range map[string]string{
		"/v1/graphql": "price box", "/v1.1/graphql": "price box", "/v1.0/graphql": "price",
		"/v2/graphql": "cost one two ten", "/v2.10/graphql": "cost one two ten", "/v2.2/graphql": "cost one two",
		"/v2.1/graphql": "cost one", "/v2.0/graphql": "cost", "/graphql": "cost one two ten unreleased",
	} {
		got := c.answered(path, `{ spec: __type(name: "ThingSpec") { fields { name } } specification: __type(name: "ThingSpecification") { fields { name } } shelf: __type(name: "ShelfSpec") { fields { name } } }`)
		for _, name := range []string{"price", "box", "cost", "one", "two", "ten", "unreleased"} {
			if has := strings.Contains(got, `"`+name+`"`); has != slices.Contains(strings.Fields(names), name) {
				t.Errorf("%s: %s is there: %v", path, name, has)
			}
		}
	}
	for path, code := range map[string]int{"/v3/graphql": http.StatusNotFound, "/v2.11/graphql": http.StatusNotFound, "/v1.2/graphql": http.StatusNotFound} {
		if got := c.ask(c.Handler, path, "{ __typename }"); got.Code != code || !strings.Contains(got.Body.String(), `"supported":["v1.0","v1.1","v2.0","v2.1","v2.2",`) {
			t.Errorf("%s: %d %s", path, got.Code, got.Body)
		}
	}
	if got := c.get("/versions").Body.String(); !strings.Contains(got, `"newest":"v2.10"`) || !strings.Contains(got, `{"version":"v1.0","path":"/v1.0/graphql","state":"SERVED"}`) {
		t.Error(got)
	}
}

func TestMajors_ClientsOfBothWriteInTurns(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(t *testing.T) backend.Store) {
		c := openMajors(t, open(t))
		c.answered("/v1/graphql", `mutation { createThing(input: {name: "a", spec: {price: 1, colour: RED, note: "n", box: {label: "l", code: "c"}, parts: [{size: 1}], slots: [{name: "x", size: 1}]}}) { thing { spec { price } } } }`)
		old := c.dialAt("/v1.0/graphql")
		old.begin("1", `subscription { event: thingChanges { type thing { spec { price colour note weight } } } }`, nil)
		recent := c.dialAt("/v2/graphql")
		recent.begin("1", `subscription { event: thingChanges { type thing { spec { cost shade weight note case { label hiddenLabel } } } } }`, nil)
		for _, w := range []*wire{old, recent} {
			if m := w.read(); !strings.Contains(string(m.Payload), "IN_SYNC") {
				t.Fatalf("%s %s", m.Type, m.Payload)
			}
		}
		for i, turn := range []struct {
			path, write string
			old, recent string
			whole       string
		}{
			{"/v2/graphql", `updateThing(input: {name: "a", expectedRevision: "R", spec: {cost: 2, shade: CRIMSON, note: 5, case: {label: "m", hiddenLabel: "h"}, parts: [{size: 1, hiddenSize: 2}], slots: [{name: "x", size: 2, hiddenSize: 3}]}}) { thing { spec { cost } } }`,
				`{"price":2,"colour":"RED","note":"n","weight":null}`, `{"cost":2,"shade":"CRIMSON","weight":3,"note":5,"case":{"label":"m","hiddenLabel":"h"}}`,
				`{"box":{"code":"c","label":"m"},"colour":"RED","note":"n","parts":[{"size":1}],"price":2,"slots":[{"name":"x","size":2}]}`},
			{"/v1/graphql", `updateThing(input: {name: "a", expectedRevision: "R", spec: {price: 3, colour: GREEN, note: "o", box: {label: "k"}, parts: [{size: 1}], slots: [{name: "x", size: 4}]}}) { thing { spec { price } } }`,
				`{"price":3,"colour":"GREEN","note":"o","weight":null}`, `{"cost":3,"shade":"GREEN","weight":3,"note":5,"case":{"label":"k","hiddenLabel":"h"}}`,
				`{"box":{"label":"k"},"colour":"GREEN","note":"o","parts":[{"size":1}],"price":3,"slots":[{"name":"x","size":4}]}`},
			{"/v2.0/graphql", `patchThing(input: {name: "a", expectedRevision: "R", spec: {cost: 4, weight: 9, hiddenText: "h"}}) { thing { spec { cost } } }`,
				`{"price":4,"colour":"GREEN","note":"o","weight":9}`, `{"cost":4,"shade":"GREEN","weight":9,"note":5,"case":{"label":"k","hiddenLabel":"h"}}`,
				`{"box":{"label":"k"},"colour":"GREEN","note":"o","parts":[{"size":1}],"price":4,"slots":[{"name":"x","size":4}],"weight":9}`},
			{"/v1.0/graphql", `patchThing(input: {name: "a", expectedRevision: "R", spec: {price: 5, note: null, weight: null}}) { thing { spec { price } } }`,
				`{"price":5,"colour":"GREEN","note":null,"weight":null}`, `{"cost":5,"shade":"GREEN","weight":3,"note":5,"case":{"label":"k","hiddenLabel":"h"}}`,
				`{"box":{"label":"k"},"colour":"GREEN","parts":[{"size":1}],"price":5,"slots":[{"name":"x","size":4}]}`},
			{"/graphql", `applyManifest(input: {manifest: "apiVersion: example.org/v2\nkind: Thing\nmetadata: {name: a}\nspec: {price: 6, colour: RED, box: {label: l}}"}) { outcome }`,
				`{"price":6,"colour":"RED","note":null,"weight":null}`, `{"cost":6,"shade":"CRIMSON","weight":3,"note":null,"case":{"label":"l","hiddenLabel":null}}`,
				`{"box":{"label":"l"},"colour":"RED","price":6}`},
			{"/v1/graphql", `applyManifest(input: {manifest: "apiVersion: example.org/v1\nkind: Thing\nmetadata: {name: a}\nspec: {price: 8, colour: BLUE, note: p}"}) { outcome }`,
				`{"price":8,"colour":"BLUE","note":"p","weight":null}`, `{"cost":8,"shade":"BLUE","weight":3,"note":null,"case":null}`,
				`{"colour":"BLUE","note":"p","price":8}`},
		} {
			before := c.thingRevision("/v1/graphql", "a")
			if other := c.thingRevision("/v2/graphql", "a"); other != before {
				t.Errorf("%d: revisions %s and %s", i, before, other)
			}
			write := "mutation { " + strings.ReplaceAll(turn.write, `"R"`, `"`+before+`"`) + " }"
			c.answered(turn.path, write)
			if strings.Contains(turn.write, `"R"`) {
				for _, path := range []string{"/v1/graphql", "/v2/graphql"} {
					field := map[string]string{"/v1/graphql": "price", "/v2/graphql": "cost"}[path]
					stale := fmt.Sprintf(`mutation { patchThing(input: {name: "a", expectedRevision: %q, spec: {%s: 40}}) { thing { id } } }`, before, field)
					if got := c.ask(c.Handler, path, stale).Body.String(); !strings.Contains(got, `"CONFLICT"`) || !strings.Contains(got, c.thingRevision("/v1/graphql", "a")) {
						t.Errorf("%d: a stale write by %s: %s", i, path, got)
					}
				}
			}
			for w, want := range map[*wire]string{old: turn.old, recent: turn.recent} {
				if got := string(w.read().Payload); !strings.Contains(got, `"MODIFIED"`) || !strings.Contains(got, want) {
					t.Errorf("%d: wanted %s, heard %s", i, want, got)
				}
			}
			if got := c.answered("/v1/graphql", `{ thing(name: "a") { specJSON } }`); !strings.Contains(got, `"specJSON":`+turn.whole) {
				t.Errorf("%d: wanted %s, v1 has %s", i, turn.whole, got)
			}
			if got := c.answered("/v2/graphql", `{ thing(name: "a") { specJSON manifest } }`); strings.Contains(got, `"note":"`) || strings.Contains(got, `"code"`) {
				t.Errorf("%d: v2 shows %s", i, got)
			}
		}
	})
}

func TestMajors_JudgeTheWritesOfTheOlderOneByBoth(t *testing.T) {
	c := openMajors(t, openMemory(t))
	for _, of := range []struct{ path, spec, want string }{
		{"/v1/graphql", "{price: 101}", `"field":"input.spec.price"`},
		{"/v1/graphql", "{price: 60}", `"field":"input.spec.price"`},
		{"/v1/graphql", "{price: 13}", "thirteen is unlucky"},
		{"/v1.0/graphql", "{price: 13}", "thirteen is unlucky"},
		{"/v1/graphql", "{price: 7}", "seven is taken"},
		{"/v2/graphql", "{cost: 60}", `"field":"input.spec.cost"`},
		{"/v2/graphql", "{cost: 7}", "seven is taken"},
		{"/v2/graphql", "{cost: 13}", ""},
		{"/v1/graphql", "{price: 50, colour: GREEN}", ""},
		{"/v2/graphql", "{shade: GREEN}", "GRAPHQL_VALIDATION_FAILED"},
	} {
		got := c.ask(c.Handler, of.path, `mutation { createThing(input: {name: "n", dryRun: true, spec: `+of.spec+`}) { preview { specJSON } } }`).Body.String()
		if ok := !strings.Contains(got, `"errors"`); ok != (of.want == "") || !strings.Contains(got, of.want) {
			t.Errorf("%s %s: %s", of.path, of.spec, got)
		}
		if of.path != "/v2/graphql" && strings.Contains(got, "cost:") == (of.spec != "{price: 7}") {
			t.Errorf("%s %s names what it does not have: %s", of.path, of.spec, got)
		}
	}
	c.answered("/v2/graphql", `mutation { createThing(input: {name: "a", spec: {cost: 13, case: {label: "l"}}}) { thing { id } } }`)
	patch := `mutation { patchThing(input: {name: "a", expectedRevision: "` + c.thingRevision("/v1/graphql", "a") + `", spec: {box: {label: "m"}}}) { thing { spec { price box { label } } } } }`
	if got := c.answered("/v1/graphql", patch); !strings.Contains(got, `{"price":13,"box":{"label":"m"}}`) {
		t.Error(got)
	}
}

func TestMajors_IdsAndCursorsCross(t *testing.T) {
	c := openMajors(t, openMemory(t))
	for i, colour := range []string{"RED", "GREEN", "BLUE", "RED", "GREEN"} {
		c.answered("/v1/graphql", fmt.Sprintf(`mutation { createThing(input: {name: "t%d", spec: {price: %d, colour: %s}}) { thing { id } } }`, i, i, colour))
	}
	var page struct {
		Data struct {
			Things struct {
				PageInfo struct{ EndCursor string }
				Nodes    []struct {
					ID       string
					Metadata struct{ Name string }
				}
				ChangeCursor string
			}
		}
	}
	const lists = `{ things(first: 2, after: %s, orderBy: [{field: %s, direction: DESC}]) { pageInfo { endCursor } changeCursor nodes { id metadata { name } } } }`
	var names []string
	after := "null"
	for i := range 3 {
		path, field := "/v1/graphql", "SPEC_PRICE"
		if i%2 == 1 {
			path, field = "/v2/graphql", "SPEC_COST"
		}
		if err := json.Unmarshal([]byte(c.answered(path, fmt.Sprintf(lists, after, field))), &page); err != nil {
			t.Fatal(err)
		}
		after = fmt.Sprintf("%q", page.Data.Things.PageInfo.EndCursor)
		for _, node := range page.Data.Things.Nodes {
			names = append(names, node.Metadata.Name)
			for _, path := range []string{"/v1/graphql", "/v2/graphql"} {
				if got := c.answered(path, fmt.Sprintf(`{ node(id: %q) { id ... on Thing { metadata { name } } } }`, node.ID)); !strings.Contains(got, `"name":"`+node.Metadata.Name+`"`) {
					t.Errorf("%s: %s", path, got)
				}
			}
		}
	}
	if got := strings.Join(names, " "); got != "t4 t3 t2 t1 t0" {
		t.Errorf("page by page: %s", got)
	}
	c.answered("/v2/graphql", `mutation { createThing(input: {name: "late", spec: {cost: 1}}) { thing { id } } }`)
	w := c.dialAt("/v1/graphql")
	w.begin("1", `subscription($after: String) { event: thingChanges(after: $after) { type cursor thing { metadata { name } } } }`, map[string]any{"after": page.Data.Things.ChangeCursor})
	if m := w.read(); !strings.Contains(string(m.Payload), `"name":"late"`) {
		t.Errorf("%s %s", m.Type, m.Payload)
	}
}

func TestMajors_FilterOrderAndCountInTheirOwnTerms(t *testing.T) {
	c := openMajors(t, openMemory(t))
	for i, colour := range []string{"RED", "GREEN", "BLUE", "RED"} {
		c.answered("/v1/graphql", fmt.Sprintf(`mutation { createThing(input: {name: "t%d", spec: {price: %d, colour: %s, note: "n%d"}}) { thing { id } } }`, i, i, colour, i))
	}
	for _, of := range []struct{ path, query, want string }{
		{"/v1/graphql", `{ things(filter: {spec: {colour: {eq: GREEN}}}) { nodes { metadata { name } } } }`, `[{"metadata":{"name":"t1"}}]`},
		{"/v2/graphql", `{ things(filter: {spec: {shade: {eq: CRIMSON}}}) { totalCount } }`, `"totalCount":2`},
		{"/v1/graphql", `{ things(filter: {spec: {note: {eq: "n2"}}}) { totalCount } }`, `"totalCount":1`},
		{"/v1/graphql", `{ thingsSummary(by: ["spec.colour"]) { groups { keys { path value } count } } }`, `{"keys":[{"path":"spec.colour","value":"RED"}],"count":2}`},
		{"/v2/graphql", `{ thingsSummary(by: ["spec.shade"]) { groups { keys { path value } count } } }`, `{"keys":[{"path":"spec.shade","value":"CRIMSON"}],"count":2}`},
		{"/v2/graphql", `{ thingsSummary(by: ["spec.shade"]) { groups { keys { path value } count } } }`, `{"keys":[{"path":"spec.shade","value":"GREEN"}],"count":1}`},
		{"/v2/graphql", `{ things(filter: {spec: {cost: {gte: 2}}}, orderBy: [{field: SPEC_COST, direction: DESC}]) { nodes { metadata { name } } } }`, `[{"metadata":{"name":"t3"}},{"metadata":{"name":"t2"}}]`},
	} {
		if got := c.answered(of.path, of.query); !strings.Contains(got, of.want) {
			t.Errorf("%s %s: %s", of.path, of.query, got)
		}
	}
	for path, query := range map[string]string{
		"/v2/graphql": `{ thingsSummary(by: ["spec.note"]) { groups { count } } }`,
		"/v1/graphql": `{ thingsSummary(by: ["spec.hiddenText"]) { groups { count } } }`,
	} {
		if got := c.ask(c.Handler, path, query).Body.String(); !strings.Contains(got, "BAD_USER_INPUT") {
			t.Errorf("%s: %s", path, got)
		}
	}
}

func TestMajors_ReloadFromOneToBothKeepsStreams(t *testing.T) {
	c := openChangingOn(t, openMemory(t), server.Config{})
	serve := func(sdl string, versions map[string]string) {
		t.Helper()
		catalogue, svc := c.withFolders(sdl, "", versions)
		g, err := c.server.Prepare(catalogue)
		if err != nil {
			t.Fatal(err)
		}
		c.server.Replace(g)
		c.run(svc)
	}
	all := majors()
	serve(major1, map[string]string{"v1.0": all["v1.0"], "v1.1": all["v1.1"]})
	// The rack is first: a thing that waited for it would be changed once more, when the reconciler finds it.
	c.answered("/v1/graphql", `mutation { createRack(input: {name: "r", spec: {height: 2, parts: [{size: 7}]}}) { rack { id } } createThing(input: {name: "a", spec: {price: 1, note: "n", rackRef: "r", parts: [{size: 5}]}}) { thing { id } } }`)
	w := c.dialAt("/v1/graphql")
	w.begin("1", `subscription { event: thingChanges { type thing { spec { price note } } } }`, nil)
	if m := w.read(); !strings.Contains(string(m.Payload), "IN_SYNC") {
		t.Fatalf("%s %s", m.Type, m.Payload)
	}
	serve(major2, map[string]string{"v1.0": all["v1.0"], "v1.1": all["v1.1"], "v2.0": all["v2.0"]})
	if got := c.answered("/v2/graphql", `{ thing(name: "a") { spec { cost weight } } }`); !strings.Contains(got, `{"cost":1,"weight":3}`) {
		t.Error(got)
	}
	if got := c.answered("/v1/graphql", `{ thing(name: "a") { spec { note parts { size } } rack { spec { height parts { size } } } } }`); !strings.Contains(got, `{"spec":{"note":"n","parts":[{"size":5}]},"rack":{"spec":{"height":2,"parts":[{"size":7}]}}}`) {
		t.Error(got)
	}
	c.answered("/v2/graphql", `mutation { patchThing(input: {name: "a", expectedRevision: "`+c.thingRevision("/v1/graphql", "a")+`", spec: {cost: 2}}) { thing { id } } }`)
	if m := w.read(); !strings.Contains(string(m.Payload), `{"price":2,"note":"n"}`) {
		t.Errorf("the stream from before: %s %s", m.Type, m.Payload)
	}
	w.begin("2", `subscription { event: thingChanges { type thing { spec { price note } } } }`, nil)
	if m := w.read(); !strings.Contains(string(m.Payload), "IN_SYNC") {
		t.Errorf("another stream on the same socket: %s %s", m.Type, m.Payload)
	}
	if got := c.answered("/v1/graphql", `mutation { deleteRack(input: {name: "r"}) { state } }`); !strings.Contains(got, "PENDING") {
		t.Errorf("a field that is gone in v2 does not guard any more: %s", got)
	}
}

// TestMajors_TwoGatewaysOnOneStore: one has the catalogue before the second major was released.
func TestMajors_TwoGatewaysOnOneStore(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(t *testing.T) backend.Store) {
		store := open(t)
		newer := openMajors(t, store)
		older := openChangingOn(t, store, server.Config{})
		all := majors()
		catalogue, svc := older.withFolders(major1, "", map[string]string{"v1.0": all["v1.0"], "v1.1": all["v1.1"]})
		g, err := older.server.Prepare(catalogue)
		if err != nil {
			t.Fatal(err)
		}
		older.server.Replace(g)
		older.run(svc)
		newer.answered("/v2/graphql", `mutation { createThing(input: {name: "a", spec: {cost: 1, hiddenText: "h", weight: 4, case: {label: "l", hiddenLabel: "h"}}}) { thing { id } } }`)
		for i, by := range []struct {
			c           *changing
			path, write string
		}{
			{older, "/graphql", `updateThing(input: {name: "a", expectedRevision: "R", spec: {price: 2, note: "n", box: {label: "m", code: "c"}}}) { thing { spec { price } } }`},
			{newer, "/v2/graphql", `patchThing(input: {name: "a", expectedRevision: "R", spec: {cost: 3, case: {label: "k"}}}) { thing { spec { cost } } }`},
			{older, "/v1.0/graphql", `patchThing(input: {name: "a", expectedRevision: "R", spec: {price: 4}}) { thing { spec { price } } }`},
			{newer, "/v1/graphql", `patchThing(input: {name: "a", expectedRevision: "R", spec: {price: 5, box: {label: "j"}}}) { thing { spec { price } } }`},
		} {
			revision := by.c.thingRevision(by.path, "a")
			by.c.answered(by.path, "mutation { "+strings.ReplaceAll(by.write, `"R"`, `"`+revision+`"`)+" }")
			both := newer.answered("/v1/graphql", `{ thing(name: "a") { spec { price note box { label code } } } }`)
			if got := older.answered("/graphql", `{ thing(name: "a") { spec { price note box { label code } } } }`); got != both {
				t.Errorf("%d: the older gateway has %s, the newer one %s", i, got, both)
			}
			if !strings.Contains(both, `"note":"n"`) || !strings.Contains(both, `"code":"c"`) {
				t.Errorf("%d: what v2 does not have is lost: %s", i, both)
			}
			if got := newer.answered("/v2/graphql", `{ thing(name: "a") { spec { hiddenText case { hiddenLabel } } } }`); !strings.Contains(got, `{"hiddenText":"h","case":{"hiddenLabel":"h"}}`) {
				t.Errorf("%d: what v1 does not have is lost: %s", i, got)
			}
		}
	})
}
