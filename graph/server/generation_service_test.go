package server_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sluicegw/sluice/graph/server"
)

// This file has resource services of standard methods, which are compared, together with other parts of gateways:
// streams and restarts, reloads, several gateways, kept answers and access control.

func TestGeneration_AStreamOverAComparedServiceTellsEachChangeOnceAcrossARestart(t *testing.T) {
	foos := serveFoos(t)
	store := openMemory(t)
	first, _ := foos.gateway(store, allOfFoo)
	w, _ := first.follow("")
	foos.set("a", "one", 1)
	w.expect("ADDED a one")
	foos.set("a", "two", 1)
	w.expect("MODIFIED a two")
	foos.set("b", "one", 1)
	w.expect("ADDED b one")
	foos.Remove("a")
	cursor := w.expect("DELETED a two")

	first.stop()
	foos.set("b", "three", 2)
	foos.set("c", "new", 3)
	foos.set("gone", "before anybody looks", 4)
	foos.Remove("gone")
	second, _ := foos.gateway(store, allOfFoo)
	w, _ = second.follow(cursor)
	events := []string{w.next().String(), w.next().String()}
	slices.Sort(events)
	if want := []string{"ADDED c new", "MODIFIED b three"}; !slices.Equal(events, want) {
		t.Errorf("after a restart the events are %q, want %q", events, want)
	}
	foos.Remove("c")
	w.expect("DELETED c new")
	again, _ := second.follow(cursor) // a client that has lost the events that it got
	events = []string{again.next().String(), again.next().String()}
	slices.Sort(events)
	if want := []string{"ADDED c new", "MODIFIED b three"}; !slices.Equal(events, want) {
		t.Errorf("once more it tells %q, want %q", events, want)
	}
	again.expect("DELETED c new")
}

func TestGeneration_AServiceThatIsRemovedAndAddedWhileStreamsRun(t *testing.T) {
	foos := serveFoos(t)
	c, _ := foos.gateway(openMemory(t), lessOfFoo)
	w, _ := c.follow("")
	foos.set("a", "one", 1)
	w.expect("ADDED a one")
	c.owners = nil
	c.replace(wide) // which has no Foos
	foos.set("a", "two", 2)
	foos.set("b", "new", 3)
	foos.serve(c, allOfFoo, "")
	events := []string{w.next().String(), w.next().String()}
	slices.Sort(events)
	if want := []string{"ADDED b new", "MODIFIED a two"}; !slices.Equal(events, want) {
		t.Errorf("it tells %q, want %q", events, want)
	}
	const list = `{ foos { nodes { metadata { name } spec { baz } } } }`
	const want = `{"data":{"foos":{"nodes":[` +
		`{"metadata":{"name":"a"},"spec":{"baz":2}},{"metadata":{"name":"b"},"spec":{"baz":3}}]}}}`
	if got := c.post(t, list, nil); got != want {
		t.Errorf("with the new mapping: %s, want %s", got, want)
	}
	foos.Remove("b")
	w.expect("DELETED b new")
}

func TestGeneration_AMappingThatShowsMoreMirrorsItOnce(t *testing.T) {
	foos := serveFoos(t)
	store := openMemory(t)
	first, _ := foos.gateway(store, lessOfFoo)
	w, _ := first.follow("")
	foos.set("a", "one", 7)
	cursor := w.expect("ADDED a one")
	first.stop()
	second, svc := foos.gateway(store, allOfFoo)
	w, _ = second.follow(cursor)
	w.expect("MODIFIED a one")
	if got := second.post(t, `{ foo(name: "a") { spec { baz } } }`, nil); got != `{"data":{"foo":{"spec":{"baz":7}}}}` {
		t.Errorf("it shows %s", got)
	}
	foos.comparedBy(svc)
	foos.set("b", "end", 1)
	w.expect("ADDED b end")
}

func TestGeneration_GatewaysWithOtherMappingsDoNotUndoEachOther(t *testing.T) {
	foos := serveFoos(t)
	store := openMemory(t)
	older, olderService := foos.gateway(store, lessOfFoo)
	newer, newerService := foos.gateway(store, allOfFoo)
	foos.set("a", "one", 7)
	const show = `{ foo(name: "a") { spec { bar baz } } }`
	soon(t, "all of it is shown", func() bool {
		return newer.post(t, show, nil) == `{"data":{"foo":{"spec":{"bar":"one","baz":7}}}}`
	})
	w, _ := newer.follow("")
	foos.comparedBy(olderService)
	foos.comparedBy(newerService)
	got := older.post(t, `mutation { upsertFoo(input: {name: "a", spec: {bar: "two"}}) { foo { spec { bar } } } }`, nil)
	if got != `{"data":{"upsertFoo":{"foo":{"spec":{"bar":"two"}}}}}` {
		t.Fatalf("a write by the older gateway: %s", got)
	}
	w.expect("MODIFIED a two")
	foos.comparedBy(olderService)
	foos.comparedBy(newerService)
	if got := newer.post(t, show, nil); got != `{"data":{"foo":{"spec":{"bar":"two","baz":7}}}}` || foos.baz("a") != 7 {
		t.Errorf("after a write by the older gateway: %s, the service has %d", got, foos.baz("a"))
	}
	foos.Remove("a")
	w.expect("DELETED a two")
}

func TestGeneration_GatewaysCompareAServiceInEachOthersPlace(t *testing.T) {
	foos := serveFoos(t)
	store := openMemory(t)
	first, _ := foos.gateway(store, allOfFoo)
	second, svc := foos.gateway(store, allOfFoo)
	w, _ := second.follow("")
	const many = 20
	for i := range many {
		foos.set(fmt.Sprintf("a-%02d", i), "x", 1)
	}
	events := map[string]int{}
	for range many {
		events[w.next().String()]++
	}
	if len(events) != many {
		t.Errorf("while both compare it tells %v", events)
	}
	foos.comparedBy(svc)
	first.stop()
	foos.set("b", "alone", 1)
	w.expect("ADDED b alone")
	third, _ := foos.gateway(store, allOfFoo)
	foos.set("b", "with another", 1)
	w.expect("MODIFIED b with another")
	second.stop()
	foos.Remove("b")
	foos.set("c", "by the last one", 1)
	got := []string{w.next().String(), w.next().String()}
	slices.Sort(got)
	if want := []string{"ADDED c by the last one", "DELETED b with another"}; !slices.Equal(got, want) {
		t.Errorf("it tells %q, want %q", got, want)
	}
	soon(t, "the last gateway shows it", func() bool {
		return third.post(t, `{ foos { totalCount } }`, nil) == fmt.Sprintf(`{"data":{"foos":{"totalCount":%d}}}`, many+1)
	})
}

func TestGeneration_KeptAnswersOfAComparedServiceEndWithItsChanges(t *testing.T) {
	foos := serveFoos(t)
	metrics := prometheus.NewRegistry()
	c := openChangingOn(t, openMemory(t), server.Config{Metrics: metrics})
	svc := foos.serve(c, allOfFoo, "")
	const many = 60
	for i := range many {
		foos.set(fmt.Sprintf("a-%02d", i), "x", 1)
	}
	const list = `{ foos(first: 100) { totalCount nodes { id metadata { name revision } spec { bar baz } } } }`
	count := func(n int) func() bool {
		return func() bool { return strings.Contains(c.post(t, list, nil), fmt.Sprintf(`"totalCount":%d,`, n)) }
	}
	soon(t, "all are mirrored", count(many))
	want := c.post(t, list, nil)
	before := outcomes(t, metrics)
	foos.comparedBy(svc)
	if got := c.post(t, list, nil); got != want {
		t.Error("a comparison without a difference has changed the answer")
	}
	after := outcomes(t, metrics)
	if after["hit"] != before["hit"]+1 {
		t.Errorf("the answer was not kept: %v, then %v", before, after)
	}
	foos.set("a-00", "changed", 1)
	soon(t, "the change is shown", func() bool { return strings.Contains(c.post(t, list, nil), `"bar":"changed"`) })
	foos.Remove("a-01")
	soon(t, "the deletion is shown", count(many-1))
}

// namedFoos is a kind of the gateway that refers to Foos.
const namedFoos = `
type App @resource(plural: "apps", group: "example.org", version: "v1", scope: GLOBAL) { spec: AppSpec! }
type AppSpec { fooRef: String! @ref(kind: "Foo", guarded: true, inverse: "apps") }
`

func TestGeneration_CallersWithoutRightsSeeNothingOfAComparedService(t *testing.T) {
	foos := serveFoos(t)
	text, identities := token(t)
	c := openChangingOn(t, openMemory(t), server.Config{Identities: identities})
	c.token = text
	svc := foos.serve(c, allOfFoo, namedFoos)
	c.bind(svc, "admin")
	foos.set("hidden", "secret", 1)
	soon(t, "it is mirrored", func() bool { return strings.Contains(c.post(t, `{ foos { totalCount } }`, nil), ":1}") })
	var id string
	if _, rest, is := strings.Cut(c.post(t, `{ foo(name: "hidden") { id } }`, nil), `"id":"`); is {
		id, _, _ = strings.Cut(rest, `"`)
	}
	c.role(svc, "apps", []any{"App"}, []any{"*"})
	c.bind(svc, "apps")
	soon(t, "the rights are fewer", func() bool {
		return strings.Contains(c.post(t, `{ foos { totalCount } }`, nil), "FORBIDDEN")
	})
	refused := func(query string) string {
		t.Helper()
		got := masked(c.post(t, query, nil))
		if strings.Contains(got, "secret") || strings.Contains(got, strings.TrimPrefix(foos.address, "http://")) {
			t.Errorf("%s shows %s", query, got)
		}
		return got
	}
	for _, query := range []string{
		`{ foos { totalCount nodes { metadata { name } spec { bar } } } }`,
		`{ foo(name: "NAME") { spec { bar } } }`,
		`{ resource(kind: "Foo", name: "NAME") { metadata { name } } }`,
		`mutation { createFoo(input: {name: "NAME", spec: {bar: "x"}}) { foo { id } } }`,
		`mutation { patchFoo(input: {name: "NAME", expectedRevision: "1-1", spec: {bar: "x"}}) { foo { id } } }`,
		`mutation { upsertFoo(input: {name: "NAME", spec: {bar: "x"}}) { foo { id } } }`,
		`mutation { deleteFoo(input: {name: "NAME"}) { state } }`,
		`mutation { createApp(input: {name: "x-NAME", spec: {fooRef: "NAME"}, dryRun: true}) {
			app { foo { spec { bar } } } } }`,
	} {
		there := refused(strings.ReplaceAll(query, "NAME", "hidden"))
		absent := refused(strings.ReplaceAll(query, "NAME", "absent"))
		forbidden := strings.Contains(there, `"code":"FORBIDDEN"`)
		if !forbidden && !strings.Contains(there, `"app":null`) {
			t.Errorf("%s: %s", query, there)
		}
		if strings.ReplaceAll(there, "hidden", "absent") != absent {
			t.Errorf("%s tells whether it is there:\n%s\n%s", query, there, absent)
		}
	}
	byID := refused(`{ node(id: "` + id + `") { id ... on Foo { spec { bar } } } }`)
	if !strings.Contains(byID, "FORBIDDEN") {
		t.Errorf("by its id: %s", byID)
	}
	if got := refused(`{ resources(first: 10) { nodes { metadata { name } } } }`); strings.Contains(got, "hidden") {
		t.Errorf("the list of all kinds shows %s", got)
	}
	w := c.dial()
	w.begin("all", `subscription { event: resourceChanges(snapshot: true) { type resource { metadata { name } } } }`, nil)
	w.begin("foos", fooChanges, nil)
	foos.set("hidden", "secret two", 1)
	foos.set("other", "secret three", 1)
	foos.comparedBy(svc)
	c.answered("/graphql", `mutation { createApp(input: {name: "app", spec: {fooRef: "absent"}}) { app { id } } }`)
	ended := false
	for received := false; !received || !ended; {
		m := w.read()
		payload := string(m.Payload)
		if strings.Contains(payload, "hidden") || strings.Contains(payload, "other") || strings.Contains(payload, "secret") {
			t.Fatalf("a stream shows %s", payload)
		}
		received = received || m.ID == "all" && strings.Contains(payload, `"name":"app"`)
		ended = ended || m.ID == "foos" && m.Type == "error" && strings.Contains(payload, "FORBIDDEN")
	}
}
