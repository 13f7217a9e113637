package server_test

import (
	"bufio"
	"encoding/json"
	"flag"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/server"
)

// update writes the transcripts anew: go test ./graph/server -run Transcript -update
var update = flag.Bool("update", false, "write the transcripts anew")

// teller is a client that speaks to a server over HTTP and writes down what is said.
type teller struct {
	*story
	t   testing.TB
	url string
	// store is what the server keeps its resources in; each request is a minute later by its clock.
	store *memory.Store
	now   *atomic.Int64
	// last is the operation that was sent last.
	last string
}

// stage is what a story plays on.
type stage struct {
	// wrap is around the store; nil for nothing.
	wrap  func(backend.Store) backend.Store
	store memory.Config
	cfg   server.Config
	// grown takes a catalogue that has more than the embedded one and has released that: then the same is said.
	grown bool
}

// newStory begins the transcript of that path below testdata/transcripts.
func newStory(t testing.TB, path, title string) *story {
	t.Helper()
	return beginStory(t, storyConfig{
		Path: filepath.Join("testdata", "transcripts", path), Title: title,
		Command: "go test ./graph/server -run Transcript -update", Update: *update,
		Volatile: map[string]string{
			"revision": "revision", "expectedRevision": "revision", "currentRevision": "revision",
			"cursor": "cursor", "changeCursor": "cursor", "after": "cursor",
			"uid": "uid", "requestId": "request",
		},
		Fields: map[string]string{"id": "cursor", "Last-Event-ID": "cursor"},
	})
}

// tell begins a transcript of what is said to a server of its own.
func tell(t testing.TB, path, title string, on stage) *teller {
	t.Helper()
	c := &teller{story: newStory(t, path, title), t: t, now: new(atomic.Int64)}
	on.store.Clock = func() time.Time {
		return time.Date(2026, 1, 2, 3, 4, 5, 678e6, time.UTC).Add(time.Duration(c.now.Load()))
	}
	var err error
	if c.store, err = memory.Open(on.store); err != nil {
		t.Fatal(err)
	}
	if on.wrap == nil {
		on.wrap = plain
	}
	if on.grown {
		on.cfg.Catalogue = grownCatalogue(t, on.wrap(c.store))
	} else {
		svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: on.wrap(c.store)})
		if err != nil {
			t.Fatal(err)
		}
		on.cfg.Catalogue = server.Single(svc, kindstest.API(t))
	}
	s, err := server.New(on.cfg)
	if err != nil {
		t.Fatal(err)
	}
	web := httptest.NewServer(s.Handler())
	c.url = web.URL
	t.Cleanup(func() {
		web.CloseClientConnections()
		web.Close()
		_ = c.store.Close()
	})
	return c
}

// ask sends an operation, writes it and the answer down, and returns the answer.
func (c *teller) ask(query string, variables map[string]any, header ...string) string {
	c.t.Helper()
	c.Sent("POST /v1/graphql")
	for i := 0; i < len(header); i += 2 {
		c.Sent(header[i] + ": " + header[i+1])
	}
	if query == c.last {
		c.Sent("(the operation above)")
	} else {
		c.Sent(query)
	}
	c.last = query
	if variables != nil {
		c.Sent(asJSON(c.t, variables))
	}
	return c.answered(c.send(query, variables, header...))
}

// send sends an operation and tells nobody.
func (c *teller) send(query string, variables map[string]any, header ...string) *http.Response {
	c.t.Helper()
	c.now.Add(int64(time.Minute))
	body := asJSON(c.t, map[string]any{"query": query, "variables": variables})
	req, err := http.NewRequestWithContext(c.t.Context(), http.MethodPost, c.url+"/v1/graphql", strings.NewReader(body))
	if err != nil {
		c.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", "application/graphql-response+json")
	for i := 0; i < len(header); i += 2 {
		req.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		c.t.Fatal(err)
	}
	return res
}

// must sends an operation that is no part of the story.
func (c *teller) must(query string, variables map[string]any) string {
	c.t.Helper()
	body := read(c.t, c.send(query, variables))
	if strings.Contains(body, `"errors"`) {
		c.t.Fatal(body)
	}
	return body
}

// answered writes an answer down.
func (c *teller) answered(res *http.Response) string {
	c.t.Helper()
	body := read(c.t, res)
	c.Received(res.Status)
	c.Received(body)
	return body
}

func read(t testing.TB, res *http.Response) string {
	t.Helper()
	defer func() { _ = res.Body.Close() }()
	body, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// revisionIn is the last revision in an answer.
func revisionIn(t testing.TB, answer string) string { return textIn(t, answer, "revision") }

// textIn is the last text of that name in an answer.
func textIn(t testing.TB, answer, name string) string {
	t.Helper()
	_, rest, ok := last(answer, `"`+name+`":"`)
	value, _, closed := strings.Cut(rest, `"`)
	if !ok || !closed {
		t.Fatalf("no %s in %s", name, answer)
	}
	return value
}

// last cuts at the last separator.
func last(s, sep string) (before, after string, ok bool) {
	i := strings.LastIndex(s, sep)
	if i < 0 {
		return s, "", false
	}
	return s[:i], s[i+len(sep):], true
}

// wantFiles compares a folder of transcripts with those that there should be. An
// update removes the others.
func wantFiles(t *testing.T, folder string, want map[string]bool) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join("testdata", "transcripts", folder))
	if err != nil {
		t.Fatal(err)
	}
	there := map[string]bool{}
	for _, e := range entries {
		there[e.Name()] = true
		if path := filepath.Join("testdata", "transcripts", folder, e.Name()); *update && !want[e.Name()] && os.Remove(path) != nil {
			t.Error(path)
		}
	}
	if *update {
		return
	}
	if diff := cmp.Diff(want, there); diff != "" {
		t.Errorf("transcripts in %s (-want +there):\n%s", folder, diff)
	}
}

// listen subscribes by server-sent events and writes down all that comes.
func (c *teller) listen(query string, variables map[string]any) {
	c.t.Helper()
	c.listenWhile(query, variables, nil)
}

// listenWhile does so, and calls a function after the first event.
func (c *teller) listenWhile(query string, variables map[string]any, then func()) {
	c.t.Helper()
	c.Sent("POST /v1/graphql")
	c.Sent("Accept: text/event-stream")
	c.Sent(query)
	if variables != nil {
		c.Sent(asJSON(c.t, variables))
	}
	res := c.send(query, variables, "Accept", "text/event-stream")
	body, lines := "", bufio.NewReader(res.Body)
	for then != nil && !strings.Contains(body, "\ndata:") {
		line, err := lines.ReadString('\n')
		if err != nil {
			c.t.Fatal(err)
		}
		body += line
	}
	if then != nil {
		then()
	}
	res.Body = struct {
		io.Reader
		io.Closer
	}{lines, res.Body}
	body += read(c.t, res)
	c.Received(res.Status)
	c.Received(retry.ReplaceAllString(body, "retry: <milliseconds>"))
}

// retry is when a client of server-sent events is to come again, each another time.
var retry = regexp.MustCompile(`retry: \d+`)
