package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

// hostile are requests made to cost much. Those that name a key break the limit
// of that name; the others are within all limits, as near as can be.
func hostile() []struct{ name, key, query string } {
	repeat := func(n int, format string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, format, i)
		}
		return b.String()
	}
	laughs := "{ ...F0 }"
	for i := range 30 {
		laughs += fmt.Sprintf(" fragment F%d on Query { ...F%d ...F%d }", i, i+1, i+1)
	}
	laughs += " fragment F30 on Query { __typename }"
	ring := "{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }"
	return []struct{ name, key, query string }{
		{"200 KiB of one field", "limit-tokens", "{ " + strings.Repeat("__typename ", 200<<10/11) + "}"},
		{"20,000 aliases", "limit-tokens", "{ " + repeat(20_000, "a%d: __typename ") + "}"},
		{"1,000 aliases", "limit-aliases", "{ " + repeat(1000, "a%d: __typename ") + "}"},
		{"1,000 fragments", "limit-tokens", "{ " + repeat(1000, "...F%d ") + "} " + repeat(1000, "fragment F%d on Query { __typename } ")},
		{"400 fragments", "limit-fragments", "{ " + repeat(400, "...F%d ") + "} " + repeat(400, "fragment F%d on Query { __typename } ")},
		{"200 fragments", "", "{ " + repeat(200, "...F%d ") + "} " + repeat(200, "fragment F%d on Query { __typename } ")},
		{"depth of 500", "limit-depth", strings.Repeat("{ a ", 500) + strings.Repeat("}", 500)},
		{"a billion laughs", "limit-fields", laughs},
		{"a ring of fragments", "", ring},
		{"one field 21 times", "limit-repeats", "{ " + strings.Repeat("__typename ", 21) + "}"},
		{"introspection three times", "limit-introspections", "{ " + repeat(3, "s%d: __schema { types { name } } ") + "}"},
		{"pages in pages", "limit-objects", "{ networks(first: 1000) { nodes { subnets(first: 1000) { nodes { ports(last: 1000) { totalCount } } } } } }"},
		{"1,000 unknown directives", "", "{ __typename " + repeat(1000, "@d%d ") + "}"},
		{"a list of 1,000 values", "", "{ nodes(ids: [" + strings.Repeat(`"a" `, 1000) + "]) { id } }"},
		{"a hundred aliases of twenty fields", "", "{ " + repeat(95, "a%d: kinds { name plural scope __typename } ") + "}"},
	}
}

func TestHostileDocumentsAreRefusedByTheLimitTheyBreak(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, c := range hostile() {
		got := e.post(t, c.query, nil)
		if c.key == "" {
			if len(got) > 64<<10 {
				t.Errorf("%s: an answer of %d bytes", c.name, len(got))
			}
			continue
		}
		if !strings.Contains(got, `"code":"LIMIT_EXCEEDED"`) || !strings.Contains(got, "configuration key "+c.key) || strings.Contains(got, `"data"`) || len(got) > 1000 {
			t.Errorf("%s: %.300s", c.name, got)
		}
	}
	if got := e.post(t, "{ __typename }", nil); got != `{"data":{"__typename":"Query"}}` {
		t.Errorf("the next client: %s", got)
	}
}

func TestALargeBodyIsRefused(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", bytes.NewReader(make([]byte, 10<<20)))
	r.Header.Set("Content-Type", "application/json")
	w := httptest.NewRecorder()
	e.ServeHTTP(w, r)
	if w.Code != http.StatusRequestEntityTooLarge || !strings.Contains(w.Body.String(), "limit-body") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
}

// BenchmarkHostile measures what refusing costs, or executing what is within
// the limits. Each document is one that was not seen before.
func BenchmarkHostile(b *testing.B) {
	for _, c := range hostile() {
		b.Run(c.name, func(b *testing.B) {
			e := newEdge(b, plain, server.Config{})
			b.ReportAllocs()
			for i := 0; b.Loop(); i++ {
				e.post(b, fmt.Sprint(c.query, "#", i), nil)
			}
		})
	}
	b.Run("10 MiB body", func(b *testing.B) {
		e := newEdge(b, plain, server.Config{})
		body := bytes.Repeat([]byte("x"), 10<<20)
		for b.Loop() {
			r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", bytes.NewReader(body))
			r.Header.Set("Content-Type", "application/json")
			e.ServeHTTP(httptest.NewRecorder(), r)
		}
	})
}
