package resolvers_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service"
)

// nets makes networks of different colours.
func (g *gateway) nets() {
	g.t.Helper()
	for name, resource := range map[string]string{
		"a": `mtu: 1500, tags: ["x", "y"], external: true`,
		"b": `mtu: 9000, tags: ["y"], name: "zz"`,
		"c": `name: "aa"`,
	} {
		g.must(`mutation { createNetwork(input: {name: "` + name + `", labels: [{key: "tier", value: "` + name + `"}], spec: {` + credentials + `, resource: {` + resource + `}}}) { warnings } }`)
	}
	g.must(`mutation { createNetwork(input: {namespace: "other", name: "d", spec: {` + credentials + `, managementPolicy: UNMANAGED, import: {id: "123e4567-e89b-12d3-a456-426614174000"}}}) { network { metadata { revision } } } }`)
	revision := g.must(`{ network(name: "c") { metadata { revision } } }`).at("network.metadata.revision")
	g.must(`mutation($r: String!) { updateNetworkStatus(input: {name: "c", expectedRevision: $r, status: {id: "os-c", conditions: [{type: "Available", status: "True"}]}}) { warnings } }`, "r", revision)
}

func (a answer) names(path string) []string {
	out := []string{}
	nodes, _ := a.at(path).([]any)
	for _, n := range nodes {
		out = append(out, n.(map[string]any)["metadata"].(map[string]any)["name"].(string))
	}
	return out
}

func TestAFilterKeepsWhatMatches(t *testing.T) {
	g := open(t)
	g.nets()
	for filter, want := range map[string]string{
		`{}`:                                                                                 "a b c d",
		`{name: {eq: "a"}}`:                                                                  "a",
		`{name: {in: ["a", "d"]}}`:                                                           "a d",
		`{name: {in: []}}`:                                                                   "",
		`{namespace: {ne: "default"}}`:                                                       "d",
		`{name: {gt: "a", lte: "c"}}`:                                                        "b c",
		`{labels: [{key: "tier", eq: "b"}]}`:                                                 "b",
		`{labels: [{key: "tier", exists: false}]}`:                                           "d",
		`{labels: [{key: "tier", in: ["a", "c"]}]}`:                                          "a c",
		`{conditions: [{type: "Available", status: "True"}]}`:                                "c",
		`{conditions: [{type: "Progressing"}]}`:                                              "",
		`{status: {id: {startsWith: "os-"}}}`:                                                "c",
		`{spec: {resource: {mtu: {gte: 1500, lt: 9000}}}}`:                                   "a",
		`{spec: {resource: {tags: {hasAll: ["x", "y"]}}}}`:                                   "a",
		`{spec: {resource: {tags: {hasAny: ["x", "y"]}}}}`:                                   "a b",
		`{spec: {resource: {tags: {hasNone: ["x"]}}}}`:                                       "b c d",
		`{spec: {resource: {external: {eq: true}}}}`:                                         "a",
		`{spec: {managementPolicy: {eq: MANAGED}}}`:                                          "a b c",
		`{spec: {managementPolicy: {in: [UNMANAGED]}}}`:                                      "d",
		`{or: [{name: {eq: "a"}}, {spec: {resource: {name: {contains: "z"}}}}]}`:             "a b",
		`{not: {name: {eq: "a"}}, and: [{namespace: {eq: "default"}}]}`:                      "b c",
		`{createdAt: {gt: "2020-01-01T00:00:00Z"}, updatedAt: {lt: "2020-01-01T00:00:00Z"}}`: "",
		`{name: null, spec: null}`:                                                           "a b c d",
	} {
		a := g.must(`{ networks(filter: ` + filter + `) { nodes { metadata { name } } totalCount } }`)
		got := a.names("networks.nodes")
		slices.Sort(got)
		if diff := cmp.Diff(strings.Fields(want), got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", filter, diff)
		}
		if a.at("networks.totalCount") != float64(len(got)) {
			t.Errorf("%s: totalCount %v", filter, a.at("networks.totalCount"))
		}
	}
}

func TestAnOrderGoesBeforeThatOfTheNames(t *testing.T) {
	g := open(t)
	g.nets()
	for order, want := range map[string]string{
		`[]`:                           "a b c d",
		`[{field: NAME}]`:              "a b c d",
		`[{field: SPEC_RESOURCE_MTU}]`: "c d a b",
		`[{field: SPEC_RESOURCE_MTU, direction: DESC}]`:                        "b a c d",
		`[{field: SPEC_RESOURCE_NAME}, {field: NAME, direction: DESC}]`:        "d a c b",
		`[{field: NAMESPACE, direction: DESC}, {field: NAME, direction: ASC}]`: "d a b c",
	} {
		a := g.must(`{ networks(orderBy: ` + order + `) { nodes { metadata { name } } } }`)
		if diff := cmp.Diff(strings.Fields(want), a.names("networks.nodes")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", order, diff)
		}
	}
}

func TestTheLimitsOfFiltersAndOrdersAreTheServices(t *testing.T) {
	g := open(t)
	deep := `{not: {not: {not: {not: {not: {name: {eq: "a"}}}}}}}`
	order := strings.Repeat(`{field: NAME} `, 6)
	many := strings.Repeat(`"a" `, 101)
	for _, arguments := range []string{`filter: ` + deep, `orderBy: [` + order + `]`, `filter: {name: {in: [` + many + `]}}`} {
		if a := g.do(`{ networks(` + arguments + `) { totalCount } }`); a.code(0) != service.CodeLimitExceeded && a.code(0) != service.CodeBadUserInput {
			t.Errorf("%.60s: %v", arguments, a.errors)
		}
	}
	for _, arguments := range []string{`filter: {spec: {resource: {dnsDomain: {eq: "a"}}}}`, `orderBy: [{field: SPEC_RESOURCE_TAGS}]`, `filter: {spec: {managementPolicy: {eq: managed}}}`} {
		if a := g.do(`{ networks(` + arguments + `) { totalCount } }`); len(a.errors) == 0 {
			t.Errorf("%s was accepted", arguments)
		}
	}
}

func TestAStreamFromTheChangeCursorOfAPageMissesNothing(t *testing.T) {
	g := open(t)
	g.create("default", "before")
	a := g.must(`{ networks { changeCursor } resources(kind: "network") { changeCursor nodes { id } } plain: networks { nodes { id } } }`)
	g.create("default", "after")
	for _, cursor := range []any{a.at("networks.changeCursor"), a.at("resources.changeCursor")} {
		if cursor == nil {
			t.Fatalf("no cursor: %v", a.data)
		}
		next := g.start(t.Context(), changes, map[string]any{"after": cursor})
		for _, want := range []string{"ADDED", "IN_SYNC"} {
			if e := next(); e.at("networkChanges.type") != want {
				t.Errorf("%v %v, want %s", e.data, e.errors, want)
			}
		}
	}
}

func TestAChangeCursorIsTakenOnlyWhenItIsSelected(t *testing.T) {
	g := open(t)
	before := g.store.positions.Load()
	g.must(`{ networks { nodes { id } } network(name: "x") { subnets { nodes { id } } } }`)
	if n := g.store.positions.Load() - before; n != 0 {
		t.Errorf("the position was read %d times", n)
	}
	g.must(`query($yes: Boolean! = true) { networks { ...page } } fragment page on NetworkConnection { changeCursor @include(if: $yes) }`)
	if n := g.store.positions.Load() - before; n != 1 {
		t.Errorf("the position was read %d times, want once", n)
	}
}

func TestAFilteredStreamTellsWhatComesToMatchAndWhatNoLongerDoes(t *testing.T) {
	g := open(t)
	g.nets()
	next := g.start(t.Context(), `subscription { networkChanges(snapshot: true, filter: {spec: {resource: {mtu: {gt: 1000}}}}) { type network { metadata { name revision } } } }`, nil)
	var got []string
	read := func() *answer {
		t.Helper()
		a := next()
		if a == nil || len(a.errors) > 0 {
			t.Fatalf("after %v: %v", got, a)
		}
		name, _ := a.at("networkChanges.network.metadata.name").(string)
		got = append(got, strings.TrimSpace(a.at("networkChanges.type").(string)+" "+name))
		return a
	}
	read()
	revision := read().at("networkChanges.network.metadata.revision")
	read()
	read()
	g.must(`mutation($r: String!) { patchNetwork(input: {name: "a", expectedRevision: $r, spec: {resource: {mtu: null}}}) { warnings } }`, "r", revision)
	g.create("default", "unseen")
	revision = g.must(`{ network(name: "c") { metadata { revision } } }`).at("network.metadata.revision")
	g.must(`mutation($r: String!) { patchNetwork(input: {name: "c", expectedRevision: $r, spec: {resource: {mtu: 2000}}}) { warnings } }`, "r", revision)
	read()
	read()
	if diff := cmp.Diff([]string{"RESET", "SNAPSHOT a", "SNAPSHOT b", "IN_SYNC", "DELETED a", "ADDED c"}, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
