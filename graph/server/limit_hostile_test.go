package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"runtime"
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
	spreads := func(last string) string { // every spread is two of the next
		s := "{ __schema { types { ...A0 } } }"
		for i := range 60 {
			s += fmt.Sprintf(" fragment A%d on __Type { ...A%d ...A%d }", i, i+1, i+1)
		}
		return s + " fragment A60 on __Type { " + last + " }"
	}
	inline := func(levels, fields int) string {
		return "{ " + strings.Repeat(strings.Repeat("__typename ", fields)+"... { ", levels) + "__typename" + strings.Repeat(" }", levels+1)
	}
	filters := func(levels int) string {
		return "{ networks(filter: " + strings.Repeat("{and: [", levels) + `{labels: {eq: 99999999999999999999999}}` + strings.Repeat("]}", levels) + ") { totalCount } }"
	}
	arguments := "networks(" + repeat(400, "a%d: 1 ") + ") { totalCount }"
	return []struct{ name, key, query string }{
		{"200 KiB of one field", "limit-tokens", "{ " + strings.Repeat("__typename ", 200<<10/11) + "}"},
		{"20,000 aliases", "limit-tokens", "{ " + repeat(20_000, "a%d: __typename ") + "}"},
		{"1,000 aliases", "limit-aliases", "{ " + repeat(1000, "a%d: __typename ") + "}"},
		{"1,000 fragments", "limit-tokens", "{ " + repeat(1000, "...F%d ") + "} " + repeat(1000, "fragment F%d on Query { __typename } ")},
		{"400 fragments", "limit-fragments", "{ " + repeat(400, "...F%d ") + "} " + repeat(400, "fragment F%d on Query { __typename } ")},
		{"200 fragments", "", "{ " + repeat(200, "...F%d ") + "} " + repeat(200, "fragment F%d on Query { __typename } ")},
		{"depth of 500", "limit-depth", strings.Repeat("{ a ", 500) + strings.Repeat("}", 500)},
		{"a billion laughs", "limit-fields", laughs},
		{"spreads that lead to a fragment that is not defined", "limit-fields", spreads("...Nothing")},
		{"fields of one name in inline fragments within each other", "limit-validation", inline(90, 19)},
		{"inline fragments within each other, 900 deep", "limit-validation", inline(900, 1)},
		{"the same, within the limit", "", inline(14, 19)},
		{"many arguments compared with each other", "limit-validation", "{ " + arguments + " ...F } fragment F on Query { " + arguments + " }"},
		{"values within each other", "limit-depth", filters(20)},
		{"a name of 300 KiB", "limit-text", "{ " + strings.Repeat("x", 300<<10) + " }"},
		{"a string of 300 KiB", "limit-text", `{ node(id: "` + strings.Repeat("x", 300<<10) + `") { id } }`},
		{"a literal of a filter of 3 MB", "limit-text", `{ networks(filter: {name: {eq: "` + strings.Repeat("x", 3_000_000) + `"}}) { nodes { id } } }`},
		{"a name of 200 KiB", "", "{ " + strings.Repeat("x", 200<<10) + " }"},
		{"190 types that do not exist", "", "{ " + repeat(190, "...F%d ") + "} " + repeat(190, "fragment F%d on NetworkConnectio { id } ")},
		{"800 fields that do not exist", "", "mutation { " + repeat(800, "createNetwor%d { id } ") + "}"},
		{"5,000 comments", "limit-tokens", "{ __typename }" + strings.Repeat("#\n", 5000)},
		{"160 operations of one fragment", "", repeat(160, "query Q%d { ...F } ") + "fragment F on Query { kinds { name } }"},
		{"one field 21 times", "limit-repeats", "{ " + strings.Repeat("__typename ", 21) + "}"},
		{"1,000 unknown directives", "", "{ __typename " + repeat(1000, "@d%d ") + "}"},
		{"a list of 1,000 values", "", "{ nodes(ids: [" + strings.Repeat(`"a" `, 1000) + "]) { id } }"},
		{"a hundred aliases of twenty fields", "", "{ " + repeat(95, "a%d: networks { totalCount pageInfo { hasNextPage hasPreviousPage __typename } } ") + "}"},
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
		if !strings.Contains(got, `"code":"LIMIT_EXCEEDED"`) || !strings.Contains(got, "("+c.key+")") || strings.Contains(got, `"data"`) || len(got) > 1000 {
			t.Errorf("%s: %.300s", c.name, got)
		}
	}
	if got := e.post(t, "{ __typename }", nil); got != `{"data":{"__typename":"Query"}}` {
		t.Errorf("the next client: %s", got)
	}
}

// TestCyclesOfFragmentsAreRefusedBeforeValidation would not end if they were not.
func TestCyclesOfFragmentsAreRefusedBeforeValidation(t *testing.T) {
	wide := "{ __schema { types { ...A0 } } }"
	for i := range 60 {
		wide += fmt.Sprintf(" fragment A%d on __Type { ...A%d ...A%d }", i, i+1, i+1)
	}
	e := newEdge(t, plain, server.Config{})
	for query, via := range map[string]string{
		"{ ...A } fragment A on Query { ...A }":                                                          `\"A\" within itself.`,
		"{ ...A } fragment A on Query { ...B } fragment B on Query { ...A }":                             `\"A\" within itself via \"B\".`,
		"{ __typename } fragment A on Query { kinds { ... { ...B } } } fragment B on Kind { name ...A }": `\"A\" within itself via \"B\".`,
		wide + " fragment A60 on __Type { ...A60 }":                                                      `\"A60\" within itself.`,
		wide + " fragment A60 on __Type { kind ...A0 }":                                                  `\"A0\" within itself via`,
	} {
		if got := e.post(t, query, nil); !strings.Contains(got, `"code":"GRAPHQL_VALIDATION_FAILED"`) || !strings.Contains(got, "Cannot spread fragment "+via) {
			t.Errorf("%.100s: %.300s", query, got)
		}
	}
}

// TestWhatIsWithinTheLimitsIsValidatedInAFewSteps counts what validation
// allocates: it does so for each comparison that it makes.
func TestWhatIsWithinTheLimitsIsValidatedInAFewSteps(t *testing.T) {
	const most = 2_000_000
	e := newEdge(t, plain, server.Config{})
	for _, c := range hostile() {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		e.post(t, c.query, nil)
		runtime.ReadMemStats(&after)
		if n := after.Mallocs - before.Mallocs; n > most {
			t.Errorf("%s: %d allocations", c.name, n)
		} else {
			t.Logf("%-60s %d", c.name, n)
		}
	}
}

func TestMessagesOfErrorsAreShort(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	for _, query := range []string{
		`{ networks(orderBy: [{field: "` + strings.Repeat("x", 100<<10) + `"}]) { totalCount } }`,
		"{ " + strings.Repeat("x", 100<<10) + " }",
	} {
		if got := e.post(t, query, nil); len(got) > 4<<10 || !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
			t.Errorf("%d bytes: %.200s", len(got), got)
		}
	}
}

// TestTheTimeOfARequestCoversItsDocument also when the document takes all of it.
func TestTheTimeOfARequestCoversItsDocument(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Time: 1}})
	if got := e.post(t, "{ __typename }", nil); !strings.Contains(got, `"code":"TIMEOUT"`) || strings.Contains(got, `"data"`) {
		t.Error(got)
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
