package server_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/graph/server"
)

// TestVersion_AKindOfAStandardServiceHasTwoVersions: the released one shows less of a Foo than the newest one.
func TestVersion_AKindOfAStandardServiceHasTwoVersions(t *testing.T) {
	foos := serveFoos(t)
	c := openChangingOn(t, openMemory(t), server.Config{})
	foos.serve(c, allOfFoo, "")
	owners := c.owners
	c.owners = map[string]owner.Service{"foos": owners["foos"]}
	next, svc := c.withFolders(foos.pull(allOfFoo).SDL, "", map[string]string{"v1.0": foos.pull(lessOfFoo).SDL})
	g, err := c.server.Prepare(next)
	if err != nil {
		t.Fatal(err)
	}
	c.server.Replace(g)
	c.run(svc)
	const older, newest = "/v1.0/graphql", "/graphql"
	foos.set("a", "one", 7)
	soon(t, "it is mirrored", func() bool {
		return strings.Contains(c.ask(c.Handler, newest, `{ foo(name: "a") { spec { baz } } }`).Body.String(), `"baz":7`)
	})
	w := c.dialAt(older)
	w.begin("1", fooChanges, nil)
	w.inSync()
	for _, one := range []struct{ path, query, want string }{
		{older, `{ foo(name: "a") { spec { bar } } }`, `{"data":{"foo":{"spec":{"bar":"one"}}}}`},
		{
			older, `mutation { upsertFoo(input: {name: "a", spec: {bar: "two"}}) { foo { spec { bar } } } }`,
			`{"data":{"upsertFoo":{"foo":{"spec":{"bar":"two"}}}}}`,
		},
		{newest, `{ foo(name: "a") { spec { bar baz } } }`, `{"data":{"foo":{"spec":{"bar":"two","baz":7}}}}`},
		{
			older, `mutation { createFoo(input: {name: "b", spec: {bar: "new"}}) { foo { spec { bar } } } }`,
			`{"data":{"createFoo":{"foo":{"spec":{"bar":"new"}}}}}`,
		},
		{
			newest, `mutation { upsertFoo(input: {name: "b", spec: {bar: "new", baz: 8}}) { foo { spec { bar baz } } } }`,
			`{"data":{"upsertFoo":{"foo":{"spec":{"bar":"new","baz":8}}}}}`,
		},
	} {
		if got := c.ask(c.Handler, one.path, one.query).Body.String(); got != one.want {
			t.Errorf("%s %s: %s, want %s", one.path, one.query, got, one.want)
		}
	}
	hidden := c.ask(c.Handler, older, `{ foo(name: "a") { spec { baz } } }`).Body.String()
	if !strings.Contains(hidden, "errors") {
		t.Errorf("the older version shows %s", hidden)
	}
	if foos.baz("a") != 7 || foos.baz("b") != 8 {
		t.Errorf("the service has %d and %d", foos.baz("a"), foos.baz("b"))
	}
	w.expect("MODIFIED a two", "ADDED b new")
	foos.set("b", "three", 9)
	for e := w.next(); e.String() != "MODIFIED b three"; e = w.next() { // the change of what it does not show may be told
		if e.String() != "MODIFIED b new" {
			t.Fatalf("it tells %s", e)
		}
	}
	foos.Remove("b")
	w.expect("DELETED b three")
}
