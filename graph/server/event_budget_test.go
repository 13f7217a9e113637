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

	"github.com/sluicegw/sluice/graph/server"
)

// changes listens to a subscription by server-sent events.
func changes(t *testing.T, at, query string) (next func() told) {
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
	return func() (out told) {
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
	if ended.Code != "LIMIT_EXCEEDED" || ended.Key != "limit-objects" || ended.Field != "networkChanges.network.subnets.nodes" || fmt.Sprint(ended.Limit) != "10" || ended.Cursor == "" {
		t.Errorf("%+v", ended)
	}
	next = changes(t, srv.URL, "subscription "+fmt.Sprintf(all, ended.Cursor))
	if got := next(); len(got.Errors) > 0 || !strings.Contains(string(got.Data), `"other"`) {
		t.Errorf("behind the event: %s %+v", got.Data, got.Errors)
	}
}
