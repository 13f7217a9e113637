package resolvers_test

import (
	"context"
	"strings"
	"testing"

	"github.com/99designs/gqlgen/client"
	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/handler"
	"github.com/99designs/gqlgen/graphql/handler/transport"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service"
)

const changes = `subscription($ns: String, $name: String, $after: String) {
	networkChanges(namespace: $ns, name: $name, after: $after) { type cursor revision network { metadata { name } } }
}`

func TestAStreamBeginsInSyncAndTellsEveryChange(t *testing.T) {
	g := open(t)
	g.create("default", "before")
	next := g.start(t.Context(), changes, nil)
	if a := next(); a.at("networkChanges.type") != "IN_SYNC" || a.at("networkChanges.network") != nil || a.at("networkChanges.revision") != nil || a.at("networkChanges.cursor") == nil {
		t.Fatalf("first event: %v %v", a.data, a.errors)
	}
	g.create("default", "net-a")
	a := next()
	if a.at("networkChanges.type") != "ADDED" || a.at("networkChanges.network.metadata.name") != "net-a" || a.at("networkChanges.revision") == nil {
		t.Fatalf("second event: %v %v", a.data, a.errors)
	}
	cursor := a.at("networkChanges.cursor")
	g.must(`mutation { deleteNetwork(input: {name: "net-a"}) { state } }`)
	if a := next(); a.at("networkChanges.type") != "DELETED" || a.at("networkChanges.network.metadata.name") != "net-a" {
		t.Fatalf("third event: %v %v", a.data, a.errors)
	}
	resumed := g.start(t.Context(), changes, map[string]any{"after": cursor})
	for i, want := range []string{"DELETED", "IN_SYNC"} {
		if a := resumed(); a.at("networkChanges.type") != want {
			t.Errorf("event %d after the cursor: %v %v, want %s", i, a.data, a.errors, want)
		}
	}
}

func TestAStreamIsNarrowedByNamespaceAndName(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), changes, map[string]any{"ns": "other", "name": "net-a"})
	next()
	g.create("default", "net-a")
	g.create("other", "net-b")
	g.create("other", "net-a")
	if a := next(); a.at("networkChanges.network.metadata.name") != "net-a" {
		t.Errorf("event: %v %v", a.data, a.errors)
	}
}

func TestNothingIsDecodedThatIsNotSelected(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), `subscription { resourceChanges { type revision } }`, nil)
	full := g.start(t.Context(), `subscription { resourceChanges(kinds: ["Network"]) { resource { id kind } } }`, nil)
	next()
	full()
	g.create("default", "net-a")
	before := g.decoded.Load()
	if a := next(); a.at("resourceChanges.type") != "ADDED" {
		t.Fatalf("event: %v", a.data)
	}
	if n := g.decoded.Load() - before; n != 0 {
		t.Errorf("%d resources decoded for a listener that selects none", n)
	}
	if a := full(); a.at("resourceChanges.resource.kind") != "Network" || g.decoded.Load() == before {
		t.Errorf("event: %v", a.data)
	}
}

func TestAStreamEndsWithItsContext(t *testing.T) {
	g := open(t)
	ctx, cancel := context.WithCancel(t.Context())
	next := g.start(ctx, changes, nil)
	next()
	cancel()
	if a := next(); a != nil {
		t.Errorf("an event after the end: %v %v", a.data, a.errors)
	}
}

func TestAStreamThatCannotBeginSaysWhy(t *testing.T) {
	g := open(t)
	kinds := make([]any, 101)
	for i := range kinds {
		kinds[i] = "Network"
	}
	for name, c := range map[string]struct {
		query     string
		variables map[string]any
		want      service.Code
	}{
		"a cursor that is none": {changes, map[string]any{"after": "nonsense"}, service.CodeCursorInvalid},
		"a kind that is none":   {`subscription { resourceChanges(kinds: ["Widget"]) { type } }`, nil, service.CodeBadUserInput},
		"too many kinds":        {`subscription($k: [String!]) { resourceChanges(kinds: $k) { type } }`, map[string]any{"k": kinds}, service.CodeValidationFailed},
		"a name that is none":   {changes, map[string]any{"name": "No!"}, service.CodeValidationFailed},
	} {
		t.Run(name, func(t *testing.T) {
			a := g.start(t.Context(), c.query, c.variables)()
			if a == nil || a.code(0) != c.want {
				t.Errorf("%v, want %s", a, c.want)
			}
		})
	}
}

func TestAStreamWhoseStoreClosesEndsWithoutACrash(t *testing.T) {
	g := open(t)
	next := g.start(t.Context(), changes, nil)
	next()
	if err := g.close(); err != nil {
		t.Fatal(err)
	}
	for a := next(); a != nil; a = next() {
		if len(a.errors) == 0 {
			t.Errorf("an event after the store was closed: %v", a.data)
		}
	}
}

func TestAListenerThatLagsIsToldByTheServersPresenter(t *testing.T) {
	g := open(t)
	g.store.lag = make(chan struct{})
	srv := handler.New(g.schema)
	srv.AddTransport(transport.Websocket{})
	srv.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		e := graphql.DefaultErrorPresenter(ctx, err)
		if known, ok := e.Err.(*service.Error); ok {
			e.Extensions = map[string]any{"code": known.Code, "cursor": known.Cursor}
		}
		return e
	})
	sub := client.New(srv).Websocket(`subscription { networkChanges { type } }`)
	defer func() { _ = sub.Close() }()
	var event map[string]any
	if err := sub.Next(&event); err != nil {
		t.Fatal(err)
	}
	close(g.store.lag)
	err := sub.Next(&event)
	if err == nil || !strings.Contains(err.Error(), `"code":"LAGGED"`) || !strings.Contains(err.Error(), `"cursor":"`) {
		t.Errorf("%v", err)
	}
}

func TestAListenerThatLagsOnAnotherTransportIsCutOff(t *testing.T) {
	g := open(t)
	g.store.lag = make(chan struct{})
	next := g.start(t.Context(), changes, nil)
	next()
	close(g.store.lag)
	if a := next(); a != nil {
		t.Errorf("an event after the end: %v %v", a.data, a.errors)
	}
}
