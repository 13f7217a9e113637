package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/tidwall/gjson"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/stream"
)

// listened is what a stream of projects tells until it ends, if its catalogue is
// replaced after some events: their types, the cursor of the last one, and the error.
func listened(t *testing.T, g *gateway, arguments string, events int) (types []string, cursor string, why *failure.Error) {
	t.Helper()
	group := stream.NewSet()
	e := enginetest.New(t, nil, g.svc, func(c *engine.Config) { c.Streams = group })
	oc, errs := g.prepare(`subscription { projectChanges`+arguments+` { type cursor } }`, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	ctx, leave := context.WithCancel(t.Context())
	defer leave()
	next := subscribe(ctx, e, oc)
	var ended gqlerror.List
	for n := 0; ; n++ {
		if n == events {
			group.End()
		}
		a := next()
		res := a.Response
		if res == nil {
			ended = a.Errors
			break
		}
		if n >= events { // it may show what the next catalogue hides
			t.Errorf("after the end it tells %s", res.Data)
		}
		event := gjson.GetBytes(res.Data, "projectChanges")
		types, cursor = append(types, event.Get("type").Str), event.Get("cursor").Str
	}
	if len(ended) != 1 {
		t.Fatalf("it ended with %v", ended)
	}
	if !errors.As(ended[0], &why) || why.Code != failure.CodeCatalogueChanged || !why.Retryable {
		t.Fatalf("it ended with %v", ended)
	}
	return types, cursor, why
}

// TestAStreamWhoseCatalogueIsReplacedTellsWhereItIs: what its client has seen, not
// what the gateway has.
func TestAStreamWhoseCatalogueIsReplacedTellsWhereItIs(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	project := func(g *gateway, name string) {
		g.do(fmt.Sprintf(`mutation { createProject(input: {name: %q, spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {}}}) { project { id } } }`, name), nil)
	}
	_, begin, why := listened(t, g, "", 1)
	if why.Cursor != begin || begin == "" {
		t.Errorf("after IN_SYNC with %s it ended with %v", begin, why.Cursor)
	}
	project(g, "a")
	project(g, "b")
	after := fmt.Sprintf("(after: %q)", begin)
	if _, _, why := listened(t, g, after, 0); why.Cursor != begin {
		t.Errorf("before its first event it ended with %v; it began after %s", why.Cursor, begin)
	}
	if types, cursor, why := listened(t, g, after, 1); types[0] != "ADDED" || why.Cursor != cursor || cursor == begin {
		t.Errorf("after %v with %s it ended with %v", types, cursor, why.Cursor)
	}
	if _, _, why := listened(t, g, "(snapshot: true)", 2); why.Cursor != "" {
		t.Errorf("within its snapshot it ended with %v", why.Cursor)
	}
	older := newGateway(t, catalogue, nil) // which has not come as far
	lost := fmt.Sprintf("(after: %q, snapshot: true)", end(t, g))
	if types, _, why := listened(t, older, lost, 1); types[0] != "RESET" || why.Cursor != "" {
		t.Errorf("after %v it ended with %v", types, why.Cursor)
	}
}

// end is the cursor of now.
func end(t *testing.T, g *gateway) string {
	_, cursor, _ := listened(t, g, "", 1)
	return cursor
}
