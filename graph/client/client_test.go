package client_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

func serve(t *testing.T, h http.HandlerFunc) *client.Client {
	t.Helper()
	srv := httptest.NewServer(h)
	t.Cleanup(srv.Close)
	c, err := client.New(client.Config{Server: srv.URL + "/"})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestClient_ErrorsOfTheAPIKeepTheirExtensions(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/v1/graphql" {
			t.Errorf("path %s", r.URL.Path)
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"data":null,"errors":[{"message":"one","extensions":{"code":"CONFLICT","currentRevision":"1-2"}},{"message":"two","extensions":{"limit":5000}}]}`)
	})
	err := c.Do(context.Background(), "{ a }", nil, nil)
	var one *client.Error
	if !errors.As(err, &one) || one.Extensions.Code != "CONFLICT" || one.Extensions.CurrentRevision != "1-2" {
		t.Errorf("%+v", err)
	}
	if err.Error() != "one\ntwo" {
		t.Errorf("text %q", err)
	}
}

// TestClient_SeveralMutationsOfWhichOneFails: the document is sent once, and what the others were answered is there.
func TestClient_SeveralMutationsOfWhichOneFails(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{
			"data": {"a": {"state": "DELETED"}, "b": null, "c": {"state": "PENDING"}},
			"errors": [{"message": "internal error", "path": ["b"], "extensions": {"code": "INTERNAL", "outcome": "APPLIED"}}]
		}`)
	})
	type deletion struct{ State string }
	var out struct{ A, B, C *deletion }
	err := c.Do(t.Context(), `mutation { a: x { state } b: x { state } c: x { state } }`, nil, &out)
	var e *client.Error
	if !errors.As(err, &e) || e.Extensions.Outcome != "APPLIED" || fmt.Sprint(e.Path) != "[b]" {
		t.Errorf("the error is %+v", err)
	}
	if out.A == nil || out.A.State != "DELETED" || out.B != nil || out.C == nil || out.C.State != "PENDING" {
		t.Errorf("the answers are %+v", out)
	}
	if requests != 1 {
		t.Errorf("it was sent %d times", requests)
	}
}

func TestClient_WhatIsNoGatewayIsSaidInOneLine(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "<html>secret</html>", http.StatusBadGateway)
	})
	if err := c.Do(context.Background(), "{ a }", nil, nil); err == nil || !strings.Contains(err.Error(), "is a gateway there?") || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
	for _, server := range []string{"localhost:8080", "ftp://x", "http://", ":"} {
		if _, err := client.New(client.Config{Server: server}); err == nil {
			t.Errorf("%q is accepted", server)
		}
	}
}

func TestClient_AnAnswerWithoutDataIsAnError(t *testing.T) {
	for _, answer := range []string{`{"data":null}`, `{}`} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, answer)
		})
		var unanswered *client.UnansweredError
		if _, err := c.Apply(t.Context(), client.ApplyRequest{}); !errors.As(err, &unanswered) || !unanswered.Sent || !strings.Contains(err.Error(), "neither data nor errors") {
			t.Errorf("%s: %v", answer, err)
		}
	}
}

// nobody is a server that does not listen: a port that was free a moment ago may be somebody else's by now.
const nobody = "http://127.0.0.1:1"

func TestClient_WhyNobodyAnswersIsSaidInWords(t *testing.T) {
	plain := httptest.NewServer(http.NotFoundHandler())
	defer plain.Close()
	closes := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer closes.Close()
	for server, why := range map[string]string{
		nobody: "nothing listens there",
		strings.Replace(plain.URL, "http:", "https:", 1): "it does not speak TLS; is it http instead of https?",
		closes.URL: "it closed the connection",
	} {
		c, err := client.New(client.Config{Server: server})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "{ a }", nil, nil); err == nil || err.Error() != "no answer from "+server+"/v1/graphql: "+why {
			t.Errorf("%v", err)
		}
	}
}

func TestClient_ListWalksAllPagesAndStopsWhenAsked(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		requests++
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"data":{"list":{"nodes":[{"metadata":{"name":"n%d"}}],"pageInfo":{"hasNextPage":%v,"endCursor":"c%d"}}}}`, requests, requests < 3, requests)
	})
	kind := client.Kind{Name: "Network", Plural: "networks"}
	got := ""
	for r, err := range c.List(context.Background(), client.ListRequest{Kind: kind, Namespace: "default", Format: client.YAML}) {
		if err != nil {
			t.Fatal(err)
		}
		got += r.Metadata.Name + " "
	}
	if got != "n1 n2 n3 " || requests != 3 {
		t.Errorf("%s in %d requests", got, requests)
	}
	for range c.List(context.Background(), client.ListRequest{Kind: kind, Namespace: "default", Format: client.YAML}) {
		break
	}
	if requests != 4 {
		t.Errorf("%d requests", requests)
	}
}

func TestClient_AnErrorSaysWhetherTheRequestWasSent(t *testing.T) {
	unsent, err := client.New(client.Config{Server: nobody})
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		client *client.Client
		sent   bool
	}{
		"nobody listens":   {unsent, false},
		"it is cut":        {serve(t, func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }), true},
		"a proxy gives up": {serve(t, func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "", http.StatusGatewayTimeout) }), true},
		"no such page":     {serve(t, http.NotFound), false},
		"half an answer": {serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"data": {`)
		}), true},
	} {
		var lost *client.UnansweredError
		if err := c.client.Do(context.Background(), "mutation { a }", nil, nil); !errors.As(err, &lost) || lost.Sent != c.sent {
			t.Errorf("%s: %v, want sent %v", name, err, c.sent)
		}
	}
}

func TestClient_ARequestThatIsRefusedForItsCallersLimitIsSentAgain(t *testing.T) {
	for setting, want := range map[string]int{"limit-caller-steps": 3, "limit-rows": 1} {
		calls := 0
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if calls++; calls < 3 {
				_, _ = fmt.Fprintf(w, `{"errors":[{"message":"too much","extensions":{"code":"LIMIT_EXCEEDED","retryable":true,"retryAfter":1,"setting":%q}}]}`, setting)
				return
			}
			_, _ = fmt.Fprint(w, `{"data":{}}`)
		})
		if err := c.Do(t.Context(), "{ a }", nil, nil); calls != want || (err == nil) != (want == 3) {
			t.Errorf("%s: asked %d times: %v", setting, calls, err)
		}
	}
}

func TestClient_AQueryWaitsWhileTheGatewayIsUnavailable(t *testing.T) {
	for document, c := range map[string]struct {
		extensions string
		calls      int
	}{
		"{ a }":              {`"code":"UNAVAILABLE","retryable":true,"retryAfter":1`, 2},
		"query Q { a }":      {`"code":"UNAVAILABLE","retryable":true`, 1},
		"query R { a }":      {`"code":"UNAVAILABLE","retryable":true,"retryAfter":3600`, 1},
		"query S { a }":      {`"code":"TIMEOUT","retryable":true,"retryAfter":1`, 1},
		"mutation { a { b}}": {`"code":"UNAVAILABLE","retryable":true,"retryAfter":1`, 1},
	} {
		calls := 0
		var first time.Time
		gateway := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			if calls++; calls == 1 {
				first = time.Now()
				_, _ = fmt.Fprintf(w, `{"errors":[{"message":"busy","extensions":{%s}}]}`, c.extensions)
				return
			}
			if waited := time.Since(first); waited < time.Second {
				t.Errorf("%s: sent again after %v", document, waited)
			}
			_, _ = fmt.Fprint(w, `{"data":{}}`)
		})
		if err := gateway.Do(t.Context(), document, nil, nil); calls != c.calls || (err == nil) != (calls == 2) {
			t.Errorf("%s: asked %d times, want %d: %v", document, calls, c.calls, err)
		}
	}
}

func TestNew_AsksTheVersionThatIsConfigured(t *testing.T) {
	var requested string
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requested = r.URL.Path
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"data":{}}`)
	}))
	t.Cleanup(srv.Close)
	for api, path := range map[string]string{
		"": "/below/v1/graphql", "v1": "/below/v1/graphql", "v1.10": "/below/v1.10/graphql", client.Unreleased: "/below/graphql",
	} {
		c, err := client.New(client.Config{Server: srv.URL + "/below", API: api})
		if err == nil {
			err = c.Do(t.Context(), "{ a }", nil, nil)
		}
		if err != nil || requested != path {
			t.Errorf("%q: %s %v", api, requested, err)
		}
	}
	for _, api := range []string{"1.0", "v1.0.0", "v1/../x", "newest"} {
		if _, err := client.New(client.Config{API: api}); err == nil || !strings.HasPrefix(err.Error(), "api: ") {
			t.Errorf("%q: %v", api, err)
		}
	}
}
