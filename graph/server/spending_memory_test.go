package server_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/server"
)

// ask sends a query by POST and returns the whole answer.
func (e edge) ask(w http.ResponseWriter, query string) {
	body, _ := json.Marshal(map[string]string{"query": query})
	r := httptest.NewRequest(http.MethodPost, "http://localhost/graphql", strings.NewReader(string(body)))
	r.Header.Set("Content-Type", "application/json")
	e.ServeHTTP(w, r)
}

// TestAnOperationThatFindsNoMemoryIsToldWhenToTryAgain while one that needs little is
// answered, and the answer that has the memory is sent.
func TestAnOperationThatFindsNoMemoryIsToldWhenToTryAgain(t *testing.T) {
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Body: 64 << 10, Memory: 1 << 20, Time: time.Second}})
	topology(t, e, 1, 1, 300)
	large := "{ ports(first: 300) { " + aliases(20, "nodes { id metadata { uid } }") + "} }"
	var slow [2]unread // one has the room of answers, the other one stays where it was executed
	var answered sync.WaitGroup
	for i := range slow {
		slow[i] = unread{httptest.NewRecorder(), make(chan struct{}, 1), make(chan struct{})}
		answered.Go(func() { e.ask(slow[i], large) })
		<-slow[i].begun
	}
	late := httptest.NewRecorder()
	e.ask(late, large)
	var got limitAnswer
	if err := json.Unmarshal(late.Body.Bytes(), &got); err != nil || len(got.Errors) != 1 || string(got.Data) != "null" {
		t.Fatalf("%d %.300s", late.Code, late.Body)
	}
	if x := got.Errors[0].Extensions; late.Code != http.StatusServiceUnavailable || late.Header().Get("Retry-After") != "1" || x.Code != "UNAVAILABLE" || x.Setting != "limit-memory" || !x.Retryable || x.RetryAfter != 1 || x.Limit == nil {
		t.Errorf("%d %+v", late.Code, got.Errors[0])
	}
	if got := e.post(t, "{ ports(first: 2) { nodes { id } } }", nil); !strings.Contains(got, `"data":{"ports"`) {
		t.Errorf("one that needs little: %.300s", got)
	}
	for i := range slow {
		close(slow[i].end)
	}
	answered.Wait()
	for i := range slow {
		if slow[i].Code != http.StatusOK || strings.Contains(slow[i].Body.String(), `"errors"`) {
			t.Error("one that ran was not answered")
		}
	}
	again := httptest.NewRecorder()
	if e.ask(again, large); again.Code != http.StatusOK || strings.Contains(again.Body.String(), `"errors"`) {
		t.Errorf("tried again: %d %.300s", again.Code, again.Body)
	}
	if used := e.metric(t, "sluice_request_bytes"); used != 0 {
		t.Errorf("%v bytes are taken when all is over", used)
	}
}

// TestManyLargePagesAtOnceShareTheMemory is 60 pages of 1 MB resources, a twentieth
// of the size.
func TestManyLargePagesAtOnceShareTheMemory(t *testing.T) {
	const memory, held, whole = 2 << 20, 1 << 20, 1 << 20
	e := newEdge(t, plain, server.Config{Limits: server.Limits{Body: 256 << 10, Memory: memory, Held: held, Answer: whole}})
	for i := range 40 {
		annotation := strings.Repeat(fmt.Sprintf("%010d", i), 5000)
		got := e.post(t, `mutation($name: String!, $text: String!) { createNetwork(input: {name: $name, annotations: [{key: "a", value: $text}], spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {}}}) { network { id } } }`, map[string]any{"name": fmt.Sprint("n", i), "text": annotation})
		if strings.Contains(got, `"errors"`) {
			t.Fatalf("%.300s", got)
		}
	}
	for _, c := range []struct{ query, want string }{
		{`{ networks(first: 1000) { nodes { id } } }`, "limit-held"},
		{`{ networks(first: 14) { nodes { metadata { annotations { value } } } } }`, `"data":{"networks"`},
	} {
		var mu sync.Mutex
		var all sync.WaitGroup
		met, busy := 0, 0
		for range 60 {
			all.Go(func() {
				w := httptest.NewRecorder()
				e.ask(w, c.query)
				mu.Lock()
				defer mu.Unlock()
				switch text := w.Body.String(); {
				case strings.Contains(text, "limit-memory") && w.Code == http.StatusServiceUnavailable:
					busy++
				case strings.Contains(text, c.want):
					met++
				default:
					t.Errorf("%d %.300s", w.Code, text)
				}
			})
		}
		all.Wait()
		if met == 0 {
			t.Errorf("%s: nobody gets %s, %d must try again", c.query, c.want, busy)
		}
		if used := e.metric(t, "sluice_request_bytes"); used != 0 {
			t.Errorf("%v bytes are taken when all is over", used)
		}
	}
}
