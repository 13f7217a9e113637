package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/stream"
)

// own is a gateway with the projects p and q, the networks n1 of p and n2, and
// the network bad, which is unreadable.
func own(t *testing.T) (*gateway, *countingStore) {
	t.Helper()
	g, store := counted(t)
	spec := map[string]any{"managementPolicy": "MANAGED", "cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "resource": map[string]any{}}
	inP := map[string]any{"managementPolicy": "MANAGED", "cloudCredentialsRef": spec["cloudCredentialsRef"], "resource": map[string]any{"projectRef": "p"}}
	got := g.do(`mutation($spec: ProjectSpecInput!, $net: NetworkSpecInput!, $inP: NetworkSpecInput!) {
		p: createProject(input: {name: "p", spec: $spec}) { project { id } } q: createProject(input: {name: "q", spec: $spec}) { project { id } }
		n1: createNetwork(input: {name: "n1", spec: $inP}) { network { id } } n2: createNetwork(input: {name: "n2", spec: $net}) { network { id } }
	}`, map[string]any{"spec": spec, "net": spec, "inP": inP})
	if got.Errors != nil {
		t.Fatal(got.Errors)
	}
	g.put("Network", "bad", `{"version":"v1","spec":`)
	store.take()
	return g, store
}

// places are errors by place: path, line, column and message.
func places(list gqlerror.List) string {
	var out []string
	for _, e := range list {
		at := ""
		for _, l := range e.Locations {
			at += fmt.Sprintf(" %d:%d", l.Line, l.Column)
		}
		out = append(out, fmt.Sprintf("%v%s %s", e.Path, at, e.Message))
	}
	slices.Sort(out)
	return strings.Join(out, "; ")
}

const badCursor = `after: not a cursor of this connection; take it from pageInfo or an edge of the same field with the same arguments`

func TestAFieldOfOnesOwnReturnsResources(t *testing.T) {
	g, _ := own(t)
	id := func(of, name string) string {
		return kind.GlobalID(backend.Key{Kind: of, Namespace: "default", Name: name})
	}
	any := fmt.Sprintf("[%q,%q,%q,%q]", id("Project", "p"), id("Network", "n1"), id("Network", "gone"), id("Network", "bad"))
	for _, c := range []struct{ name, query, data, errors string }{
		{"one", `{ ownProject(name: "p") { __typename metadata { name } } }`, `{"ownProject":{"__typename":"Project","metadata":{"name":"p"}}}`, ""},
		{"one that was read", `{ ownRead(name: "p") { networks { nodes { metadata { name } project { metadata { name } } } } } }`,
			`{"ownRead":{"networks":{"nodes":[{"metadata":{"name":"n1"},"project":{"metadata":{"name":"p"}}}]}}}`, ""},
		{"one that is not there", `{ ownProject(name: "gone") { id } ownRead(name: "gone") { id } }`, `{"ownProject":null,"ownRead":null}`, ""},
		{"one that must be there", `{ ownNeeded(name: "gone") { id } }`, `null`, `ownNeeded 1:3 must not be null`},
		{"none where one must be", `{ ownNeeded(name: "null") { id } }`, `null`, `ownNeeded cannot return null for non-null field Query.ownNeeded (Project!): the resolver returned nil`},
		{"one that must be there, beside others", `{ ownNeeded(name: "p") { metadata { name } } network(name: "n2") { metadata { name } } kinds { name @skip(if: true) } }`,
			`{"ownNeeded":{"metadata":{"name":"p"}},"network":{"metadata":{"name":"n2"}},"kinds":[{}` + strings.Repeat(",{}", len(kindstest.Kinds(t))-1) + `]}`, ""},
		{"a list", `{ ownNetworks(names: ["n1", "gone", "bad", "n2", "n1"]) { metadata { name } } }`,
			`{"ownNetworks":[{"metadata":{"name":"n1"}},null,null,{"metadata":{"name":"n2"}},{"metadata":{"name":"n1"}}]}`, ""},
		{"an empty list", `{ ownNetworks(names: []) { id } ownStrict(names: []) { id } }`, `{"ownNetworks":[],"ownStrict":[]}`, ""},
		{"a list without nulls, one is missing", `{ ownStrict(names: ["n1", "gone", "bad"]) { metadata { name } } }`, `{"ownStrict":null}`,
			`ownStrict[1] 1:3 must not be null; ownStrict[2] 1:3 must not be null`},
		{"an error in an element", `{ ownNetworks(names: ["n2", "n1"]) { name: metadata { name } project { networks(after: "x") { nodes { id } } } } }`,
			`{"ownNetworks":[{"name":{"name":"n2"},"project":null},{"name":{"name":"n1"},"project":{"networks":null}}]}`,
			`ownNetworks[1].project.networks 1:72 ` + badCursor},
		{"an error in an element that may be null", `{ ownNetworks(names: ["n1", "gone"]) { subnets(after: "x") { nodes { id } } } }`,
			`{"ownNetworks":[{"subnets":null},null]}`, `ownNetworks[0].subnets 1:40 ` + badCursor},
		{"an error in an element that may not", `{ all: ownStrict(names: ["n1", "n2"]) { list: subnets(after: "x") { nodes { id } } } }`,
			`{"all":[{"list":null},{"list":null}]}`, `all[0].list 1:41 ` + badCursor + `; all[1].list 1:41 ` + badCursor},
		{"a list of lists", `{ ownTable(names: [["n1", "n2"], ["n1", "gone"], []]) { metadata { name } } }`,
			`{"ownTable":[[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}],null,[]]}`, `ownTable[1][1] 1:3 must not be null`},
		{"an interface", `{ ownAny(ids: ` + any + `) { kind ... on Project { p: metadata { name } } ...net ... on Node { id @skip(if: true) } } } fragment net on Network { n: metadata { name } __typename project { kind } }`,
			`{"ownAny":[{"kind":"Project","p":{"name":"p"}},{"kind":"Network","n":{"name":"n1"},"__typename":"Network","project":{"kind":"Project"}},null,null]}`, ""},
		{"a page", `{ ownPage(first: 1, orderBy: {field: NAME, direction: DESC}) { totalCount edges { node { metadata { name } } } nodes { metadata { name } project { id } } pageInfo { hasNextPage } } }`,
			`{"ownPage":{"totalCount":2,"edges":[{"node":{"metadata":{"name":"n2"}}}],"nodes":[{"metadata":{"name":"n2"},"project":null}],"pageInfo":{"hasNextPage":true}}}`, ""},
		{"an error in a page", `{ ownPage { nodes { subnets(after: "x") { totalCount } } } }`, `{"ownPage":{"nodes":[{"subnets":null},{"subnets":null}]}}`,
			`ownPage.nodes[0].subnets 1:21 ` + badCursor + `; ownPage.nodes[1].subnets 1:21 ` + badCursor},
		{"a type of one's own", `{ ownBox(project: "p", networks: ["n1", "n2"]) { __typename name project { metadata { name } } maybe { metadata { name } } networks { metadata { name } } page { totalCount } } }`,
			`{"ownBox":{"__typename":"OwnBox","name":"p","project":{"metadata":{"name":"p"}},"maybe":{"metadata":{"name":"p"}},"networks":[{"metadata":{"name":"n1"}},{"metadata":{"name":"n2"}}],"page":{"totalCount":2}}}`, ""},
		{"null out of a field of it", `{ ownBox(project: "gone") { name maybe { id } project { id } } }`, `{"ownBox":null}`, `ownBox.project 1:47 must not be null`},
		{"a field of it that may be null", `{ ownBox(project: "gone") { name maybe { id } } }`, `{"ownBox":{"name":"gone","maybe":null}}`, ""},
		{"null out of a list in it", `{ ownBox(project: "p", networks: ["n1", "gone"]) { project { id } networks { id } } }`, `{"ownBox":null}`, `ownBox.networks[1] 1:67 must not be null`},
		{"an error in a page in it", `{ ownBox(project: "p") { page { nodes { subnets(after: "x") { totalCount } } } } }`, `{"ownBox":{"page":{"nodes":[{"subnets":null},{"subnets":null}]}}}`,
			`ownBox.page.nodes[0].subnets 1:41 ` + badCursor + `; ownBox.page.nodes[1].subnets 1:41 ` + badCursor},
		{"an error in a resource in it", `{ ownBox(project: "p") { name maybe { networks(after: "x") { nodes { id } } } } }`, `{"ownBox":{"name":"p","maybe":{"networks":null}}}`, `ownBox.maybe.networks 1:39 ` + badCursor},
		{"a list of it", `{ ownBoxes(projects: ["p", "gone", "q"]) { project { metadata { name } } } }`,
			`{"ownBoxes":[{"project":{"metadata":{"name":"p"}}},null,{"project":{"metadata":{"name":"q"}}}]}`, `ownBoxes[1].project 1:44 must not be null`},
		{"a list of it without nulls", `{ ownStrictBoxes(projects: ["p", "gone", "q"]) { project { metadata { name } } } }`, `{"ownStrictBoxes":null}`, `ownStrictBoxes[1].project 1:50 must not be null`},
		{"one in another", `{ ownOuter(project: "gone") { box { name project { kind } } maybe { project { kind } } } }`,
			`{"ownOuter":{"box":{"name":"p","project":{"kind":"Project"}},"maybe":null}}`, `ownOuter.maybe.project 1:69 must not be null`},
		{"null out of two", `{ ownOuter(project: "gone") { box { project { kind } } boxes { project { kind } } } }`,
			`{"ownOuter":null}`, `ownOuter.boxes[1].project 1:64 must not be null`},
		{"aliases and merged fields", `{ a: ownBox(project: "p") { x: project { y: kind } x: project { z: kind } } b: ownBox(project: "q") { x: name } a: ownBox(project: "p") { x: project { z: kind } n: name } }`,
			`{"a":{"x":{"y":"Project","z":"Project"},"n":"p"},"b":{"x":"q"}}`, ""},
		{"fragments", `{ ...root } fragment root on Query { ownBox(project: "p") { ...box ... { name } } } fragment box on OwnBox { project { ...project } ... on OwnBox { maybe { ... on Resource { kind } } } } fragment project on Project { ... on Node { id @include(if: false) } kind }`,
			`{"ownBox":{"project":{"kind":"Project"},"maybe":{"kind":"Project"},"name":"p"}}`, ""},
		{"a union of one's own", `{ ownUnion(projects: ["p", "note", "gone"]) { __typename ... on OwnBox { project { kind } } ... on OwnNote { name other { ... on OwnBox { name project { k: kind } } } } } }`,
			`{"ownUnion":[{"__typename":"OwnBox","project":{"kind":"Project"}},{"__typename":"OwnNote","name":"note","other":{"name":"p","project":{"k":"Project"}}},null]}`, `ownUnion[2].project 1:74 must not be null`},
		{"a fragment on the union itself", `{ ownUnion(projects: ["p"]) { ...thing } } fragment thing on OwnThing { ... on OwnNamed { name } ... on OwnBox { project { kind } } }`,
			`{"ownUnion":[{"name":"p","project":{"kind":"Project"}}]}`, ""},
		{"a union without resources", `{ ownUnion(projects: ["p"]) { __typename ... on OwnNote { name } } }`, `{"ownUnion":[{"__typename":"OwnBox"}]}`, ""},
		{"an interface of one's own", `{ ownInterface(projects: ["p", "note"]) { name ... on OwnBox { project { kind } } } }`,
			`{"ownInterface":[{"name":"p","project":{"kind":"Project"}},{"name":"note"}]}`, ""},
		{"null out of an interface of one's own", `{ ownInterface(projects: ["p", "gone"]) { ... on OwnBox { project { kind } } } }`, `null`, `ownInterface[1].project 1:59 must not be null`},
		{"a value that looks like a mark", `{ ownJSON ownProject(name: "p") { kind } }`, `{"ownJSON":{"$":0},"ownProject":{"kind":"Project"}}`, ""},
		{"a resource of another kind", `{ ownWrong(name: "p") { spec { resource { mtu } } } ownProject(name: "p") { kind } }`, `{"ownWrong":null,"ownProject":{"kind":"Project"}}`,
			`ownWrong 1:3 engine: a resolver returned a Project where Network is wanted`},
		{"a page of another kind", `{ ownWrongPage { nodes { spec { resource { mtu } } } } }`, `{"ownWrongPage":null}`, `ownWrongPage 1:3 engine: a resolver returned a Project where NetworkConnection is wanted`},
		{"a kind that is not there", `{ ownNoKind { id } ownProject(name: "p") { kind } }`, `{"ownNoKind":null,"ownProject":{"kind":"Project"}}`,
			`ownNoKind 1:3 engine: a resolver returned a resource of kind "Nothing", which is not known`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := g.do(c.query, nil)
			if string(got.Data) != c.data {
				t.Errorf("got  %s\nwant %s", got.Data, c.data)
			}
			if errs := places(got.Errors); errs != c.errors {
				t.Errorf("errors %s\nwant   %s", errs, c.errors)
			}
		})
	}
}

func TestDirectivesAroundAFieldOfOnesOwn(t *testing.T) {
	g, _ := own(t)
	const query = `query($yes: Boolean!, $no: Boolean!) {
		ownBox(project: "p") @include(if: $yes) {
			name @skip(if: $yes) project @include(if: $no) { id } maybe @skip(if: $no) { kind @include(if: $yes) id @skip(if: $yes) }
			... on OwnBox @include(if: $no) { page { totalCount } } ...box @skip(if: $no)
		}
		ownNeeded(name: "gone") @skip(if: $yes) { id }
	} fragment box on OwnBox { again: project { kind @skip(if: $no) } }`
	got := g.do(query, map[string]any{"yes": true, "no": false})
	if want := `{"ownBox":{"maybe":{"kind":"Project"},"again":{"kind":"Project"}}}`; string(got.Data) != want || got.Errors != nil {
		t.Errorf("got %s %v, want %s", got.Data, got.Errors, want)
	}
	got = g.do(query, map[string]any{"yes": false, "no": false})
	if string(got.Data) != "null" || places(got.Errors) != "ownNeeded 6:3 must not be null" {
		t.Errorf("got %s %v", got.Data, places(got.Errors))
	}
}

func TestWhatFieldsOfOnesOwnLeaveToTheEngineIsReadTogether(t *testing.T) {
	g, store := own(t)
	for _, c := range []struct{ name, query, calls string }{
		{"a list is one call", `{ ownNetworks(names: ["n1", "n2", "gone"]) { id } }`, "get 3 Network"},
		{"several fields are one call", `{ ownNetworks(names: ["n1"]) { id } ownStrict(names: ["n2"]) { id } ownTable(names: [["n1"], ["n2"]]) { id } }`, "get 2 Network"},
		{"two marks share a resource", `{ a: ownProject(name: "p") { networks { nodes { id } } } b: ownProject(name: "p") { kind } }`, "1 ranges Network, get 1 Project"},
		{"two marks of one field share its connections", `{ ownNetworks(names: ["n1", "n1"]) { subnets { nodes { id } } project { kind } } }`, "1 ranges Subnet, get 1 Network, get 1 Project"},
		{"what a resolver has read is not read again", `{ b: ownProject(name: "p") { id } ownRead(name: "p") { kind networks { nodes { project { kind } } } } }`, "1 ranges Network, get 1 Project"},
		{"the next level is one call", `{ ownNetworks(names: ["n1", "n2"]) { project { kind } } ownStrict(names: ["n1"]) { project { id } } }`, "get 1 Project, get 2 Network"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for range 2 { // the first time the service asks whether the index serves
				store.take()
				if got := g.do(c.query, nil); got.Errors != nil {
					t.Error(got.Errors)
				}
			}
			if calls := store.take(); calls != c.calls {
				t.Errorf("calls %s, want %s", calls, c.calls)
			}
		})
	}
}

func TestAFailedReadIsAnErrorOfEachFieldOfOnesOwn(t *testing.T) {
	g, store := own(t)
	store.fail = backend.ErrUnavailable
	got := g.do(`{ ownNetworks(names: ["n1", "n2"]) { id } a: ownBox(project: "p") { project { id } } b: ownProject(name: "p") { id } }`, nil)
	if want := `{"ownNetworks":[null,null],"a":null,"b":null}`; string(got.Data) != want {
		t.Errorf("got %s, want %s", got.Data, want)
	}
	const down = " the store is not available; try again"
	if errs := places(got.Errors); errs != "a.project 1:69"+down+"; b 1:86"+down+"; ownNetworks[0] 1:3"+down+"; ownNetworks[1] 1:3"+down {
		t.Error(errs)
	}
}

func TestAFieldOfOnesOwnTakesTheInputsOfKinds(t *testing.T) {
	g, _ := own(t)
	for _, c := range []struct {
		name, query  string
		variables    map[string]any
		data, errors string
	}{
		{"absent", `{ ownInputs }`, nil, `{"ownInputs":{"filter":null}}`, ""},
		{"null", `{ ownInputs(filter: null, orders: null, nested: null) }`, nil, `{"ownInputs":{"filter":null}}`, ""},
		{"a literal", `{ ownInputs(filter: {name: {in: "a"}, and: [{spec: {resource: {mtu: {gt: 5}}}}]}) }`, nil,
			`{"ownInputs":{"filter":{"and":[{"spec":{"resource":{"mtu":{"gt":5}}}}],"name":{"in":["a"]}}}}`, ""},
		{"enums in their stored form", `{ ownInputs(filter: {spec: {managementPolicy: {eq: UNMANAGED}}}) }`, nil,
			`{"ownInputs":{"filter":{"spec":{"managementPolicy":{"eq":"unmanaged"}}}}}`, ""},
		{"variables", `query($f: NetworkFilter, $m: Int, $o: [NetworkOrder!]) { ownInputs(filter: $f, orders: $o, nested: {filters: [{spec: {resource: {mtu: {lt: $m}}}}, {}]}) }`,
			map[string]any{"f": map[string]any{"name": map[string]any{"eq": "a"}}, "m": 7, "o": map[string]any{"field": "NAME", "direction": "DESC"}},
			`{"ownInputs":{"filter":{"name":{"eq":"a"}},"nested0":{"spec":{"resource":{"mtu":{"lt":7}}}},"nested1":{},"order0":{"direction":"DESC","field":"NAME"}}}`, ""},
		{"a type that is not there", `{ ownInputs(filter: {}, type: "Nothing") }`, nil, `{"ownInputs":null}`, `ownInputs 1:3 engine: type Nothing is no input and no enum of the API`},
		{"a type that is no input", `{ ownInputs(filter: {}, type: "Network") }`, nil, `{"ownInputs":null}`, `ownInputs 1:3 engine: type Network is no input and no enum of the API`},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := g.do(c.query, c.variables)
			if string(got.Data) != c.data {
				t.Errorf("got  %s\nwant %s", got.Data, c.data)
			}
			if errs := places(got.Errors); errs != c.errors {
				t.Errorf("errors %s\nwant   %s", errs, c.errors)
			}
		})
	}
}

// TestAFieldOfOnesOwnIsNotExecutedWithARefusedValue: a value is coerced before anything is executed, here as in fields of
// kinds.
func TestAFieldOfOnesOwnIsNotExecutedWithARefusedValue(t *testing.T) {
	g, _ := own(t)
	for _, query := range []string{
		`query($t: Time) { a: ownInputs(filter: {createdAt: {gt: $t}}) }`,
		`query($t: Time) { ownInputs(nested: {filters: [{}, {and: [{createdAt: {gt: $t}}]}]}) }`,
	} {
		_, errs := g.prepare(query, map[string]any{"t": "noon"})
		if len(errs) != 1 || !strings.Contains(errs[0].Message, "noon") || errs[0].Path.String() != "variable.t" {
			t.Errorf("%s: %v", query, errs)
		}
	}
}

func TestAMutationOfOnesOwnIsSeenByTheNext(t *testing.T) {
	g, _ := own(t)
	got := g.do(`mutation {
		a: ownCreate(input: {name: "n3", spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {projectRef: "p"}}}) { number network { metadata { name } project { networks { totalCount } } } }
		b: ownCreate(input: {name: "n4", spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {projectRef: "p"}}}) { network { project { networks { totalCount } } } }
		c: deleteNetwork(input: {name: "n3"}) { state }
		d: ownCreate(input: {name: "n3", spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {projectRef: "p"}}}) { network { project { networks { totalCount } } } }
	}`, nil)
	want := `{"a":{"number":1,"network":{"metadata":{"name":"n3"},"project":{"networks":{"totalCount":2}}}},"b":{"network":{"project":{"networks":{"totalCount":3}}}},"c":{"state":"DELETED"},"d":{"network":{"project":{"networks":{"totalCount":3}}}}}`
	if string(got.Data) != want || got.Errors != nil {
		t.Errorf("got  %s %v\nwant %s", got.Data, got.Errors, want)
	}
}

func TestASubscriptionOfOnesOwnReturnsResources(t *testing.T) {
	g, store := own(t)
	for _, c := range []struct {
		name, query string
		events      []string
		errors      string
	}{
		{"a kind", `subscription { ownStream(projects: ["p", "q"]) { __typename metadata { name } networks { nodes { metadata { name } } } } }`, []string{
			`{"ownStream":{"__typename":"Project","metadata":{"name":"p"},"networks":{"nodes":[{"metadata":{"name":"n1"}}]}}}`,
			`{"ownStream":{"__typename":"Project","metadata":{"name":"q"},"networks":{"nodes":[]}}}`,
		}, ""},
		{"a kind that is missing where it must not", `subscription { again: ownStream(projects: ["p", "gone", "q"]) { kind } }`,
			[]string{`{"again":{"kind":"Project"}}`, `null`, `{"again":{"kind":"Project"}}`}, `again 1:16 must not be null`},
		{"a type of one's own", `subscription { x: ownEvents(projects: ["p", "gone", "null", "q"]) { n: name project { metadata { name } } ...page } } fragment page on OwnBox { page { totalCount } }`,
			[]string{
				`{"x":{"n":"p","project":{"metadata":{"name":"p"}},"page":{"totalCount":2}}}`, `{"x":null}`, `{"x":null}`,
				`{"x":{"n":"q","project":{"metadata":{"name":"q"}},"page":{"totalCount":2}}}`,
			}, `x.project 1:77 must not be null`},
		{"an input", `subscription { ownEvents(projects: ["p"], filter: {name: {eq: "a"}}) { name } }`, []string{`{"ownEvents":{"name":"p"}}`}, ""},
		{"what is wrong below", `subscription { ownEvents(projects: ["p"]) { maybe { networks(after: "x") { nodes { id } } } } }`, []string{`{"ownEvents":{"maybe":{"networks":null}}}`}, `ownEvents.maybe.networks 1:53 ` + badCursor},
		{"none", `subscription { ownNoStream { id } }`, nil, `ownNoStream 1:16 there is no stream`},
	} {
		t.Run(c.name, func(t *testing.T) {
			oc, errs := g.prepare(c.query, nil)
			if errs != nil {
				t.Fatal(errs)
			}
			next := subscribe(t.Context(), g.engine, oc)
			var got []string
			var all gqlerror.List
			for {
				a := next()
				all = append(all, a.Errors...)
				if a.Response == nil {
					break
				}
				all = append(all, a.Response.Errors...)
				got = append(got, string(a.Response.Data))
			}
			if !slices.Equal(got, c.events) || places(all) != c.errors {
				t.Errorf("got  %q %s\nwant %q %s", got, places(all), c.events, c.errors)
			}
		})
	}
	t.Run("each event reads what is there now", func(t *testing.T) {
		oc, errs := g.prepare(`subscription { ownStream(projects: ["p", "p"]) { networks { totalCount } } }`, nil)
		if errs != nil {
			t.Fatal(errs)
		}
		next := subscribe(t.Context(), g.engine, oc)
		first := string(next().Response.Data)
		store.take()
		g.do(`mutation { ownCreate(input: {name: "n9", spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {projectRef: "p"}}}) { number } }`, nil)
		store.take()
		second := string(next().Response.Data)
		if first != `{"ownStream":{"networks":{"totalCount":1}}}` || second != `{"ownStream":{"networks":{"totalCount":2}}}` || !strings.Contains(store.take(), "get 1 Project") {
			t.Errorf("%s, then %s", first, second)
		}
	})
}

func TestAStreamOfOnesOwnEndsWithItsCatalogue(t *testing.T) {
	g, _ := own(t)
	for _, query := range []string{`subscription { ownStream(projects: ["p", "q"]) { kind } }`, `subscription { ownEvents(projects: ["p", "q"]) { name } }`} {
		oc, errs := g.prepare(query, nil)
		if errs != nil {
			t.Fatal(errs)
		}
		group := stream.NewSet()
		e := enginetest.New(t, nil, g.svc, func(c *engine.Config) { c.Streams = group })
		ctx, leave := context.WithCancel(t.Context())
		next := subscribe(ctx, e, oc)
		if a := next(); a.Response == nil || a.Response.Errors != nil {
			t.Fatalf("%s: %v", query, a)
		}
		group.End()
		if a := next(); a.Response != nil || !strings.Contains(places(a.Errors), "the kinds of the gateway were replaced since the stream began; begin it again") {
			t.Errorf("%s: %v, %s", query, a, places(a.Errors))
		}
		leave()
	}
}
