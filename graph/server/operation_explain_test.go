package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestAnAnswerTellsHowItWasRead(t *testing.T) {
	for _, c := range []struct {
		source string
		e      edge
		// by are the reads of the query below, with how many resources were looked at and returned.
		by []string
	}{
		{"index", newIndexedEdge(t), []string{"order of names 2 2", "order of names in spec.resource.networkRef 5 5", "length of the names, 4 rows 0 4", "key 1 1", "order of createdAt 2 2"}},
		{"store", newEdge(t, plain, server.Config{}), []string{"order of names 2 2", "references to Network/default/net-0 5 5", "key 1 1", "all resources 4 2"}},
	} {
		t.Run(c.source, func(t *testing.T) {
			topology(t, c.e, 4, 5, 0)
			query := `{ two: networks(first: 2) { totalCount nodes { subnets { nodes { id } } } } one: network(name: "net-1") { id }
				newest: networks(first: 2, filter: {spec: {resource: {mtu: {eq: 1500}}}}, orderBy: [{field: CREATED_AT, direction: DESC}]) { nodes { id } } }`
			body, _ := json.Marshal(map[string]any{"query": query, "extensions": map[string]any{"explain": true}})
			r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(string(body)))
			r.Host = "localhost"
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			c.e.ServeHTTP(w, r)
			var answer struct {
				Extensions struct {
					Explain []struct {
						Kind, Source, By string
						Looked, Returned int
					}
				}
			}
			if err := json.Unmarshal(w.Body.Bytes(), &answer); err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, read := range answer.Extensions.Explain {
				if read.Source != c.source {
					t.Errorf("%+v", read)
				}
				sum := fmt.Sprint(read.By, " ", read.Looked, " ", read.Returned)
				got[sum]++
			}
			for _, want := range c.by {
				if got[want] == 0 {
					t.Errorf("%q is not among the reads: %v\n%s", want, got, w.Body)
				}
			}
		})
	}
	if answer := newEdge(t, plain, server.Config{}).post(t, "{ networks { totalCount } }", nil); strings.Contains(answer, "explain") {
		t.Errorf("an answer tells what nobody has asked for: %s", answer)
	}
}
