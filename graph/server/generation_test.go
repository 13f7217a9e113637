package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"
	"weak"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/heaptest"
)

const deep = `{ shelves(filter: {spec: {width: {gte: 1}}}) { nodes { spec { depth } } } boxes { totalCount } }`

func TestNewOperationsUseTheNewestCatalogue(t *testing.T) {
	c := newChangingForAll(t, server.Config{})
	w := c.dial()
	c.put("a", 1)
	if got := c.post(t, deep, nil); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
		t.Errorf("before: %s", got)
	}
	for range 2 { // what was refused once is not remembered
		c.replace(wide)
		want := `{"data":{"shelves":{"nodes":[{"spec":{"depth":null}}]},"boxes":{"totalCount":0}}}`
		if got := c.post(t, deep, nil); got != want {
			t.Errorf("after: %s", got)
		}
		w.begin("1", deep, nil) // on a socket that was open before
		if m := w.read(); string(m.Payload) != want {
			t.Errorf("on an open socket: %s", m.Payload)
		}
		if m := w.read(); m.Type != "complete" {
			t.Errorf("heard %v", m)
		}
		if got := c.post(t, `{ kinds { name } }`, nil); got != `{"data":{"kinds":[{"name":"Box"},{"name":"Shelf"}]}}` {
			t.Errorf("the list of kinds: %s", got)
		}
		if got := c.at(http.MethodGet, "/console/data").Body.String(); !strings.Contains(got, "boxes") {
			t.Error("the page has no example of the new kind")
		}
		c.replace(narrow)
		if got := c.post(t, deep, nil); !strings.Contains(got, "GRAPHQL_VALIDATION_FAILED") {
			t.Errorf("and back: %s", got)
		}
	}
}

func TestAGatewaySaysWhichCatalogueItServes(t *testing.T) {
	c := newChanging(t, server.Config{})
	w := c.dial()
	w.begin("1", shelfChanges, nil)
	w.read()
	first, _ := c.catalogue(narrow)
	second, _ := c.catalogue(wide)
	if got := c.at(http.MethodGet, "/readyz").Body.String(); got != "ok\n" {
		t.Errorf("readyz: %s", got)
	}
	if got := c.at(http.MethodGet, "/readyz?verbose").Body.String(); got != "ok\ncatalogue hash-of-1 files "+first.Files+"\n" {
		t.Errorf("readyz: %s", got)
	}
	c.replace(wide)
	if got := c.at(http.MethodGet, "/readyz?verbose").Body.String(); got != "ok\ncatalogue hash-of-2 files "+second.Files+"\nolder catalogue hash-of-1 files "+first.Files+": 1 streams\n" {
		t.Errorf("readyz: %s", got)
	}
	metrics := c.at(http.MethodGet, "/metrics").Body.String()
	if !strings.Contains(metrics, `sluice_catalogue_info{files="`+second.Files+`",hash="hash-of-2"} 1`) || strings.Contains(metrics, "hash-of-1") || !strings.Contains(metrics, "sluice_catalogue_older_streams 1\n") {
		t.Errorf("metrics: %s", metrics)
	}
}

// clock calls what is due when a test says so.
type clock struct {
	mu  sync.Mutex
	due []*alarm
}

type alarm struct {
	after   time.Duration
	f       func()
	stopped bool
}

func (c *clock) afterFunc(d time.Duration, f func()) func() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	a := &alarm{after: d, f: f}
	c.due = append(c.due, a)
	return func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		was := a.stopped
		a.stopped = true
		return !was
	}
}

// pass calls what is due within d.
func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	due := c.due
	c.mu.Unlock()
	for _, a := range due {
		if a.after -= d; a.after <= 0 && !a.stopped {
			a.f()
		}
	}
}

func TestStreamsOfAnOlderCatalogueGoOnForTenMinutesAndResume(t *testing.T) {
	clock := &clock{}
	c := newChanging(t, server.Config{AfterFunc: clock.afterFunc})
	w := c.dial()
	w.begin("1", shelfChanges, nil)
	w.read() // IN_SYNC
	c.replace(wide)
	c.put("a", 1)
	if e := w.read().event(t); e.Data.Event.Shelf.Spec.Width != 1 {
		t.Errorf("it goes on with %v", e)
	}
	clock.pass(9 * time.Minute)
	c.put("a", 2)
	last := w.read().event(t).Data.Event
	if last.Shelf.Spec.Width != 2 {
		t.Errorf("after nine minutes %v", last)
	}
	clock.pass(time.Minute)
	end := w.read().ending(t)[0].Extensions
	if end.Code != string(failure.CodeCatalogueChanged) || !end.Retryable || end.Cursor != last.Cursor {
		t.Errorf("it ended with %v; the last cursor was %s", end, last.Cursor)
	}
	c.put("a", 3)
	w.begin("1", shelfChanges, map[string]any{"after": end.Cursor})
	if e := w.read().event(t); e.Data.Event.Shelf.Spec.Width != 3 {
		t.Errorf("it resumes with %v", e)
	}
}

// TestStreamsOfAnOlderCatalogueFollowRights that change after their catalogue was replaced.
func TestStreamsOfAnOlderCatalogueFollowRights(t *testing.T) {
	c := newChanging(t, server.Config{})
	idle, w := c.dial(), c.dial()
	idle.begin("1", `subscription { event: shelfChanges(snapshot: true) { type cursor shelf { metadata { name } spec { width } } } }`, nil)
	if e := idle.read().event(t).Data.Event; e.Type != "RESET" {
		t.Fatalf("it begins with %v", e)
	}
	if e := idle.read().event(t).Data.Event; e.Type != "IN_SYNC" {
		t.Fatalf("it begins with %v", e)
	}
	w.begin("1", shelfChanges, nil)
	w.read() // IN_SYNC
	svc := c.replace(wide)
	c.put("a", 1)
	for _, one := range []*wire{idle, w} {
		if e := one.read().event(t).Data.Event; e.Shelf.Spec.Width != 1 {
			t.Errorf("before the rights change: %v", e)
		}
	}
	c.bind(svc, "viewer") // who may see the same
	if got := c.post(t, `mutation { upsertShelf(input: {name: "a", spec: {width: 2}}) { created } }`, nil); !strings.Contains(got, `"code":"FORBIDDEN"`) {
		t.Errorf("a viewer wrote: %s", got)
	}
	c.bind(svc, "editor")
	c.put("a", 3)
	for _, one := range []*wire{idle, w} {
		e := one.read().event(t).Data.Event
		for e.Type == "BOOKMARK" {
			e = one.read().event(t).Data.Event
		}
		if e.Shelf.Spec.Width != 3 {
			t.Errorf("after the rights have changed: %v", e)
		}
	}
	c.bind(svc, "nothing") // a role that does not exist
	for {                  // the one that asked for the state begins anew with what it may see: nothing
		m := idle.read()
		if e := m.event(t).Data.Event; e.Type == "DELETED" || e.Type == "RESET" {
			break
		}
	}
	for m := w.read(); m.Type != "error"; m = w.read() {
		if e := m.event(t).Data.Event; e.Type == "DELETED" {
			break
		}
	}
}

func TestAThirdReplacementEndsTheOldestStreamsEarly(t *testing.T) {
	c := newChanging(t, server.Config{})
	var wires []*wire
	for _, next := range []string{wide, narrow} {
		w := c.dial()
		w.begin("1", shelfChanges, nil)
		w.read()
		wires = append(wires, w)
		c.replace(next)
	}
	c.put("a", 1)
	for _, w := range wires {
		if e := w.read().event(t); e.Data.Event.Shelf.Spec.Width != 1 {
			t.Errorf("both go on: %v", e)
		}
	}
	c.replace(wide)
	if end := wires[0].read().ending(t); end[0].Extensions.Code != string(failure.CodeCatalogueChanged) {
		t.Errorf("the oldest ended with %v", end)
	}
	c.put("a", 2)
	if e := wires[1].read().event(t); e.Data.Event.Shelf.Spec.Width != 2 {
		t.Errorf("the other goes on with %v", e)
	}
}

func TestServerSentEventsOfAnOlderCatalogueCompleteWithTheCursor(t *testing.T) {
	clock := &clock{}
	c := newChanging(t, server.Config{AfterFunc: clock.afterFunc})
	req, _ := http.NewRequestWithContext(t.Context(), http.MethodGet, c.url+"/graphql?query=subscription%7BshelfChanges%7Btype%20cursor%7D%7D", nil)
	req.Header.Set("Accept", "text/event-stream")
	c.identify(req.Header)
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	c.replace(wide)
	clock.pass(time.Hour)
	all, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	events := strings.Split(strings.TrimSpace(string(all)), "\n\n")
	last := events[len(events)-2:]
	if !strings.Contains(last[0], `"code":"CATALOGUE_CHANGED"`) || last[1] != "event: complete\ndata:" {
		t.Errorf("it ended with %q", last)
	}
	_, id, _ := strings.Cut(string(all), "id: ")
	if id, _, _ = strings.Cut(id, "\n"); id == "" || !strings.Contains(last[0], `"cursor":"`+id+`"`) {
		t.Errorf("the cursor of the last event is %q; it ended with %s", id, last[0])
	}
}

// endless is a store whose lists do not come, but for those of roles and bindings.
type endless struct{ backend.Store }

func (e endless) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == access.RoleKind || r.Kind == access.BindingKind {
		return e.Store.Range(ctx, r)
	}
	<-ctx.Done()
	return backend.Page{}, ctx.Err()
}

func TestAStreamThatEndsWithinItsSnapshotHasNoCursor(t *testing.T) {
	clock := &clock{}
	c := newChangingOver(t, func(s backend.Store) backend.Store { return endless{s} }, server.Config{AfterFunc: clock.afterFunc})
	w := c.dial()
	w.begin("1", `subscription { event: shelfChanges(snapshot: true) { type cursor } }`, nil)
	if e := w.read().event(t); e.Data.Event.Type != "RESET" {
		t.Errorf("it begins with %v", e)
	}
	c.replace(wide)
	clock.pass(time.Hour)
	if end := w.read().ending(t)[0].Extensions; end.Code != string(failure.CodeCatalogueChanged) || end.Cursor != "" || !end.Retryable {
		t.Errorf("it ended with %v", end)
	}
}

func TestACatalogueWithoutStreamsGoesAtOnce(t *testing.T) {
	c := newChanging(t, server.Config{})
	c.put("a", 1)
	old := func() weak.Pointer[service.Service] { return weak.Make(c.replace(wide)) }()
	if got := c.post(t, deep, nil); strings.Contains(got, "errors") {
		t.Error(got)
	}
	c.replace(narrow)
	if got := c.post(t, `{ shelves { totalCount } }`, nil); strings.Contains(got, "errors") {
		t.Error(got)
	}
	runtime.GC()
	runtime.GC()
	if old.Value() != nil {
		t.Error("its service is still held")
	}
}

// TestDocumentsOfAnOlderCatalogueAreForgotten although its streams go on.
func TestDocumentsOfAnOlderCatalogueAreForgotten(t *testing.T) {
	c := newChanging(t, server.Config{})
	w := c.dial()
	w.begin("1", shelfChanges, nil)
	w.read()
	for n := range 180 {
		query := fmt.Sprintf("query Q%d {", n)
		for alias := range 90 {
			query += fmt.Sprintf(" a%d: shelf(name: %q) { id }", alias, "x")
		}
		if got := c.post(t, query+"}", nil); strings.Contains(got, "errors") {
			t.Fatal(got)
		}
	}
	before := heaptest.InUse()
	c.replace(wide)
	if after := heaptest.InUse(); after+8<<20 > before {
		t.Errorf("heap %d KiB before, %d KiB after", before>>10, after>>10)
	}
	c.put("a", 1)
	if e := w.read().event(t); e.Data.Event.Shelf.Spec.Width != 1 {
		t.Errorf("the stream goes on with %v", e)
	}
}

func TestACatalogueThatCannotBePreparedChangesNothing(t *testing.T) {
	c := newChanging(t, server.Config{})
	if _, err := c.server.Prepare(server.Catalogue{}); err == nil || !strings.Contains(err.Error(), "the newest API wants service and schema") {
		t.Errorf("it says %v", err)
	}
	if got := c.post(t, `{ shelves { totalCount } }`, nil); strings.Contains(got, "errors") {
		t.Error(got)
	}
}
