package server_test

import (
	"bufio"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/server"
)

// changes listens to a subscription by server-sent events.
func changes(t *testing.T, at, query string) (next func() limitAnswer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, at+"/graphql?query="+url.QueryEscape(query), nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Accept", "text/event-stream")
	res, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = res.Body.Close() })
	lines := bufio.NewScanner(res.Body)
	return func() (out limitAnswer) {
		t.Helper()
		for lines.Scan() {
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				if err := json.Unmarshal([]byte(data), &out); err != nil {
					t.Fatal(err)
				}
				return out
			}
		}
		t.Fatalf("the stream ended: %v", lines.Err())
		return out
	}
}

func TestEachEventHasABudgetOfItsOwn(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Objects: 100}}) // of which an event has ten
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	topology(t, e, 1, 11, 0)
	var begin struct {
		Data struct{ Networks struct{ ChangeCursor string } }
	}
	if err := json.Unmarshal([]byte(e.post(t, `{ networks { changeCursor } }`, nil)), &begin); err != nil {
		t.Fatal(err)
	}
	mtu := 1400
	change := func(name string) {
		mtu++
		got := e.post(t, fmt.Sprintf(`mutation { upsertNetwork(input: {name: %q, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: %d}}}) { created } }`, name, mtu), nil)
		if strings.Contains(got, `"errors"`) {
			t.Fatal(got)
		}
	}
	const all = `{ networkChanges(after: %q) { type cursor network { metadata { name } subnets { nodes { id } } } } }`
	for _, name := range []string{"other", "other", "net-0", "other"} {
		change(name)
	}
	next := changes(t, srv.URL, "subscription "+fmt.Sprintf(all, begin.Data.Networks.ChangeCursor))
	for range 2 {
		if got := next(); len(got.Errors) > 0 || !strings.Contains(string(got.Data), `"other"`) {
			t.Fatalf("%s %+v", got.Data, got.Errors)
		}
	}
	got := next()
	if len(got.Errors) != 1 || got.Data != nil {
		t.Fatalf("%s %+v", got.Data, got.Errors)
	}
	ended := got.Errors[0].Extensions
	if ended.Code != "LIMIT_EXCEEDED" || ended.Setting != "limit-objects" || ended.Selection != "networkChanges.network.subnets.nodes" || fmt.Sprint(ended.Limit) != "10" || ended.Cursor == "" {
		t.Errorf("%+v", ended)
	}
	next = changes(t, srv.URL, "subscription "+fmt.Sprintf(all, ended.Cursor))
	if got := next(); len(got.Errors) > 0 || !strings.Contains(string(got.Data), `"other"`) {
		t.Errorf("behind the event: %s %+v", got.Data, got.Errors)
	}
}

// lastOf reads events until the stream ends, and returns the last one.
func lastOf(next func() limitAnswer) (n int, last limitAnswer) {
	for {
		if last = next(); len(last.Errors) > 0 {
			return n, last
		}
		n++
	}
}

// TestDearEventsShareAnAllowance since a thousand subscriptions may wait for one
// change. Streams whose events need little go on.
func TestDearEventsShareAnAllowance(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Events: 200_000}}) // of which a connection has 50,000
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	topology(t, e, 1, 1, 400)
	const dear = `subscription { networkChanges { type network { ports(first: 1000) { nodes { id } } } } }`
	const small = `subscription { networkChanges { type network { ports(first: 20) { nodes { id } } } } }`
	streams := make([]func() limitAnswer, 10)
	for i := range streams {
		streams[i] = changes(t, srv.URL, dear)
		streams[i]() // IN_SYNC
	}
	cheap := changes(t, srv.URL, small)
	cheap()
	write := func(mtu int) {
		got := e.post(t, fmt.Sprintf(`mutation { upsertNetwork(input: {name: "net-0", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: %d}}}) { created } }`, mtu), nil)
		if strings.Contains(got, `"errors"`) {
			t.Fatal(got)
		}
	}
	for i := range 8 {
		write(1400 + i)
	}
	events := 0
	for _, next := range streams {
		n, last := lastOf(next)
		events += n
		if x := last.Errors[0].Extensions; x.Code != "LIMIT_EXCEEDED" || x.Setting != "limit-events" || x.Cursor == "" || !strings.HasPrefix(x.Selection, "networkChanges") {
			t.Errorf("%+v", last.Errors)
		}
	}
	if events == 0 || events > 40 { // of some 10,000 steps each beyond what is free
		t.Errorf("%d dear events were sent", events)
	}
	for range 8 {
		if got := cheap(); len(got.Errors) > 0 {
			t.Fatalf("a small event: %+v", got.Errors)
		}
	}
}

// TestASnapshotThatMatchesNothingLooksAtNoMoreThanAQueryMay although it has no event
// to charge.
func TestASnapshotThatMatchesNothingLooksAtNoMoreThanAQueryMay(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Rows: 300}})
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	for i := range 600 {
		if got := e.post(t, create, map[string]any{"name": fmt.Sprintf("net-%d", i), "mtu": 1500}); strings.Contains(got, `"errors"`) {
			t.Fatal(got)
		}
	}
	_, last := lastOf(changes(t, srv.URL, `subscription { networkChanges(snapshot: true, filter: {spec: {resource: {mtu: {eq: 9000}}}}) { type } }`))
	if x := last.Errors[0].Extensions; x.Code != "LIMIT_EXCEEDED" || x.Setting != "limit-rows" {
		t.Errorf("%+v", last.Errors)
	}
	all := changes(t, srv.URL, `subscription { networkChanges(snapshot: true) { type } }`)
	for range 602 { // RESET, the state, IN_SYNC
		if got := all(); len(got.Errors) > 0 {
			t.Fatalf("%+v", got.Errors)
		}
	}
}

func TestSlowEventsAreLogged(t *testing.T) {
	e := newEdge(t, plain, server.Config{SlowLog: 1})
	srv := httptest.NewServer(e)
	t.Cleanup(srv.Close)
	next := changes(t, srv.URL, `subscription Listening { networkChanges { type network { metadata { name } } } }`)
	next()
	e.post(t, create, map[string]any{"name": "net", "mtu": 1500})
	next()
	next = nil
	lines := e.log.FilterMessage("slow operation").FilterField(zap.String("operationName", "Listening")).All()
	if len(lines) == 0 || !strings.Contains(fmt.Sprint(lines[0].ContextMap()), "subscription") {
		t.Errorf("%d lines", len(lines))
	}
	for _, line := range lines {
		if took, _ := line.ContextMap()["durationSeconds"].(float64); took > 1 {
			t.Errorf("%v: the time until the event came is not its own", took)
		}
	}
}
