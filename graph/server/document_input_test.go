package server_test

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestWhatIsWrongWithAValueIsTheClientsToMend(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for name, c := range map[string]struct {
		query     string
		variables map[string]any
		says      string
	}{
		"a date for a time":           {`{ networks(filter: {createdAt: {gt: "2026-01-01"}}) { totalCount } }`, nil, "RFC 3339"},
		"a list for a time":           {`{ networks(filter: {createdAt: {gt: []}}) { totalCount } }`, nil, "a list is no Time"},
		"a variable that is no time":  {`query($t: Time) { networks(filter: {createdAt: {gt: $t}}) { totalCount } }`, map[string]any{"t": "yesterday"}, `"yesterday" is no Time`},
		"an object for a list of ids": {`{ nodes(ids: {a: 1}) { id } }`, nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := e.post(t, c.query, c.variables)
			if !strings.Contains(got, `"code":"BAD_USER_INPUT"`) && !strings.Contains(got, `"code":"GRAPHQL_VALIDATION_FAILED"`) || !strings.Contains(strings.ReplaceAll(got, `\"`, `"`), c.says) {
				t.Errorf("%s", got)
			}
		})
	}
}

func TestASubscriptionHasOneRootField(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for query, n := range map[string]int{
		`subscription { networkChanges { type } portChanges { type } }`:                                                                                  2,
		`subscription { a: networkChanges { type } b: networkChanges { type } }`:                                                                         2,
		`subscription { networkChanges @skip(if: true) { type } }`:                                                                                       0,
		`subscription { ...F } fragment F on Subscription { a: networkChanges { type } ...G } fragment G on Subscription { b: networkChanges { type } }`: 2,
	} {
		w := e.do(got("query="+url.QueryEscape(query), "Accept", "text/event-stream"))
		if !strings.Contains(w.Body.String(), `"code":"GRAPHQL_VALIDATION_FAILED"`) {
			t.Errorf("%d root fields: %s", n, w.Body)
		}
	}
	w := e.do(got("query="+url.QueryEscape(`subscription { networkChanges(after: "x") { type } networkChanges(after: "x") { cursor } }`), "Accept", "text/event-stream"))
	if !strings.Contains(w.Body.String(), "CURSOR_INVALID") {
		t.Errorf("one field, selected twice: %s", w.Body)
	}
}

func TestWhatIsNoTextIsRefused(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for name, r := range map[string]httpRequest{
		"a byte that is no UTF-8":          posted("{\"query\":\"{ network(name: \\\"a\xffb\\\") { id } }\"}"),
		"such a byte in a variable":        posted("{\"query\":\"query($n: String!) { network(name: $n) { id } }\",\"variables\":{\"n\":\"a\xff\"}}"),
		"such a byte in a query string":    got("query=%7B__typename%7D&variables=%7B%22a%22:%22%FF%22%7D"),
		"half a character in a variable":   posted(`{"query":"query($n: String!) { network(name: $n) { id } }","variables":{"n":"\ud83d"}}`),
		"the halves the wrong way round":   posted(`{"query":"{ __typename }","variables":{"n":"\ude00\ud83d"}}`),
		"half a character in a GET":        got(`query=%7B__typename%7D&variables={"a":"\udc00"}`),
		"half a character as a key":        posted(`{"query":"{ __typename }","variables":{"\ud83dx":1}}`),
		"half a character in the document": posted(`{"query":"{ network(name: \"\\ud83d\") { id } }"}`),
		"two first halves in the document": posted(`{"query":"{ network(name: \"\\ud83d\\ud83d\") { id } }"}`),
	} {
		w := e.do(r)
		if !strings.Contains(w.Body.String(), `"errors"`) || strings.Contains(w.Body.String(), `"data"`) || !strings.Contains(name, "document") && w.Code != http.StatusBadRequest {
			t.Errorf("%s: %d %s", name, w.Code, w.Body)
		}
	}
}

func TestEscapesOfCharactersAreRead(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	const create = `mutation($t: String!) { createNetwork(input: {name: "n%d", description: %s, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { network { metadata { description } } } }`
	for i, c := range []struct{ literal, want string }{
		{`"\ud83d\ude00 \u00e9 \\ud83d \\\ud83d\ude00"`, `😀 é \ud83d \😀`},
		{`"\"\ud83d\ude00\"" # \ud83d " \ud83d` + "\n", `"😀"`},
		{`"""block \ud83d"""`, `block \ud83d`},
		{`"😀"`, `😀`},
	} {
		query := fmt.Sprintf(strings.Replace(create, "($t: String!)", "", 1), i, c.literal)
		got := e.post(t, query, nil)
		if want := fmt.Sprintf(`{"data":{"createNetwork":{"network":{"metadata":{"description":%q}}}}}`, c.want); got != want {
			t.Errorf("%s: %s", c.literal, got)
		}
	}
	w := e.do(posted(`{"query":"query($n: String!) { network(name: $n) { id } }","variables":{"n":"a\ud83d\ude00\\ud83d"}}`))
	if w.Code != http.StatusOK || strings.Contains(w.Body.String(), "half a character") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestACompressedBodyIsRefused(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	w := e.do(posted("\x1f\x8b", "Content-Encoding", "gzip"))
	if w.Code != http.StatusUnsupportedMediaType || w.Header().Get("Accept-Encoding") != "identity" || !strings.Contains(w.Body.String(), "Content-Encoding") {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	if w := e.do(posted(`{"query":"{ __typename }"}`, "Content-Encoding", "identity")); w.Code != http.StatusOK {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

func TestOtherMethodsAreRefusedByWhatIsAccepted(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, path := range []string{"/", "/console/plain", "/healthz", "/readyz", "/metrics"} {
		if w := e.at(http.MethodPost, path); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
			t.Errorf("POST %s: %d %v", path, w.Code, w.Header())
		}
	}
	if w := e.at(http.MethodHead, "/healthz"); w.Code != http.StatusOK {
		t.Errorf("HEAD /healthz: %d", w.Code)
	}
	if w := e.at(http.MethodPost, "/nothing"); w.Code != http.StatusNotFound {
		t.Errorf("POST /nothing: %d", w.Code)
	}
}

func TestHostsAndOriginsMatchInAnyCase(t *testing.T) {
	e := newEdge(t, plain, server.Config{AllowedHosts: []string{"Gateway.Example.com"}, AllowedOrigins: []string{"HTTPS://App.example.com"}})
	for _, host := range []string{"gateway.example.com", "GATEWAY.example.com:8443", "gateway.example.com."} {
		r := httptest.NewRequest(http.MethodGet, "http://"+host+"/graphql?query=%7B__typename%7D", nil)
		r.Header.Set("Origin", "https://app.example.com")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != http.StatusOK || w.Header().Get("Access-Control-Allow-Origin") != "https://app.example.com" {
			t.Errorf("%s: %d %v %s", host, w.Code, w.Header(), w.Body)
		}
	}
	for _, c := range []struct{ host, origin string }{{"other.example.com", ""}, {"gateway.example.com", "https://other.example.com"}} {
		r := httptest.NewRequest(http.MethodGet, "http://"+c.host+"/graphql?query=%7B__typename%7D", nil)
		r.Header.Set("Origin", c.origin)
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		if w.Code != http.StatusForbidden || !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`) {
			t.Errorf("%+v: %d %s", c, w.Code, w.Body)
		}
	}
}

func TestARequestHasOneHostAndAtMostOneOriginOfTheSameScheme(t *testing.T) {
	e := newEdge(t, plain, server.Config{AllowedOrigins: []string{"https://app.example.com"}})
	const own = "localhost:8080"
	for name, c := range map[string]struct {
		host    string
		origins []string
		site    string
		status  int
	}{
		"a host":                              {own, nil, "", http.StatusOK},
		"no host, as HTTP/1.0 allows":         {"", nil, "", http.StatusForbidden},
		"no host and an origin without one":   {"", []string{"http://"}, "", http.StatusForbidden},
		"the own origin":                      {own, []string{"http://localhost:8080"}, "", http.StatusOK},
		"an empty origin":                     {own, []string{""}, "", http.StatusForbidden},
		"the own origin twice":                {own, []string{"http://localhost:8080", "http://localhost:8080"}, "", http.StatusForbidden},
		"an allowed origin and another":       {own, []string{"https://app.example.com", "http://evil.example.com"}, "", http.StatusForbidden},
		"another host by https":               {own, []string{"https://localhost"}, "", http.StatusForbidden},
		"a WebSocket behind a proxy with TLS": {own, []string{"https://localhost:8080"}, "", http.StatusOK},
		"the own host by https, of elsewhere": {own, []string{"https://localhost:8080"}, "cross-site", http.StatusForbidden},
		"a page behind a proxy with TLS":      {own, []string{"https://localhost:8080"}, "same-origin", http.StatusOK},
		"a file":                              {own, []string{"file://localhost:8080"}, "same-origin", http.StatusForbidden},
		"a scheme of an extension":            {own, []string{"chrome-extension://localhost:8080"}, "", http.StatusForbidden},
		"by TLS: the own origin":              {"", []string{"https://localhost:8080"}, "", http.StatusOK},
		"by TLS: the own host by http":        {"", []string{"http://localhost:8080"}, "same-origin", http.StatusForbidden},
	} {
		for _, path := range []string{"/healthz", "/graphql?query=%7B__typename%7D"} {
			r := httptest.NewRequest(http.MethodGet, path, nil)
			r.Host = c.host
			if strings.HasPrefix(name, "by TLS") {
				r.Host, r.TLS = own, &tls.ConnectionState{}
			}
			r.Header["Origin"] = c.origins
			if c.site != "" {
				r.Header.Set("Sec-Fetch-Site", c.site)
			}
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			if w.Code != c.status || w.Code != http.StatusOK && !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`) {
				t.Errorf("%s: %s: %d %s, want %d", name, path, w.Code, w.Body, c.status)
			}
		}
	}
}
