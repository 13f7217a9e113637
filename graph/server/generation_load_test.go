package server_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
	"weak"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// The load: writers of one resource each, spread over namespaces; streams of one
// namespace each, on a few sockets; and reloads.
const (
	loadWriters    = 64
	loadNamespaces = 8
	loadStreams    = 200
	loadSockets    = 10
	loadReloads    = 30
	// loadPerReload is how many writes all writers make between two reloads.
	loadPerReload = 128
)

// load counts what happens while catalogues are replaced.
type load struct {
	*changing
	writes, refused, resumed atomic.Int64
	// last is the last width of each writer's resource, final the last of all.
	last, final [loadWriters]atomic.Int64
	// due has a token for each reload that is to come.
	due chan struct{}
}

func (l *load) namespace(writer int) string { return fmt.Sprintf("ns-%d", writer%loadNamespaces) }

// write counts one resource up, now and then by a document that names what one of
// the catalogues does not have: then validation may refuse it, and nothing else may.
func (l *load) write(writer int) error {
	n := l.last[writer].Load() + 1
	spec, names := fmt.Sprintf("{width: %d}", n), ""
	switch n % 4 {
	case 1:
		spec = fmt.Sprintf("{width: %d, depth: 1}", n)
	case 2:
		if got := l.post(l.T, deep, nil); strings.Contains(got, "errors") {
			names = got
		}
	}
	query := fmt.Sprintf(`mutation { upsertShelf(input: {namespace: %q, name: "s-%d", spec: %s}) { shelf { spec { width } } } }`, l.namespace(writer), writer, spec)
	got := l.post(l.T, query, nil)
	if strings.Contains(got, "errors") && n%4 == 1 {
		names = got
		got = l.post(l.T, strings.Replace(query, ", depth: 1", "", 1), nil)
	}
	if names != "" {
		l.refused.Add(1)
		if !strings.Contains(names, `"code":"GRAPHQL_VALIDATION_FAILED"`) || strings.Contains(names, `"data"`) {
			return fmt.Errorf("what names what vanished: %s", names)
		}
	}
	if want := fmt.Sprintf(`{"data":{"upsertShelf":{"shelf":{"spec":{"width":%d}}}}}`, n); got != want {
		return fmt.Errorf("%s: %s", query, got)
	}
	l.last[writer].Store(n)
	if l.writes.Add(1)%loadPerReload == 0 {
		l.due <- struct{}{}
	}
	return nil
}

// follower is one stream: what it has seen of each resource of its namespace.
type follower struct {
	namespace string
	seen      map[string]int
}

// listen runs streams on one socket until all have seen everything. A stream that
// ends is begun again after its cursor, on the same socket.
func (l *load) listen(w *wire, streams map[string]*follower, began func(), done <-chan struct{}) error {
	finished := func(f *follower) bool {
		select {
		case <-done:
		default:
			return false
		}
		for writer := range loadWriters {
			if l.namespace(writer) == f.namespace && f.seen[fmt.Sprintf("s-%d", writer)] != int(l.final[writer].Load()) {
				return false
			}
		}
		return true
	}
	open := len(streams)
	for open > 0 {
		var m heard
		if err := w.conn.ReadJSON(&m); err != nil {
			return fmt.Errorf("a socket: %w", err)
		}
		f := streams[m.ID]
		switch m.Type {
		case "error":
			var why ending
			if err := json.Unmarshal(m.Payload, &why); err != nil || len(why) != 1 || why[0].Extensions.Code != string(failure.CodeCatalogueChanged) || why[0].Extensions.Cursor == "" {
				return fmt.Errorf("a stream ended with %s", m.Payload)
			}
			l.resumed.Add(1)
			w.begin(m.ID, shelfChanges, map[string]any{"namespace": f.namespace, "after": why[0].Extensions.Cursor})
		case "next":
			var e event
			if err := json.Unmarshal(m.Payload, &e); err != nil || strings.Contains(string(m.Payload), "errors") {
				return fmt.Errorf("an event: %s", m.Payload)
			}
			s := e.Data.Event.Shelf
			switch {
			case e.Data.Event.Type == "IN_SYNC" && f.seen == nil:
				f.seen = map[string]int{}
				began()
			case s.Metadata.Name == "":
			case s.Spec.Width != f.seen[s.Metadata.Name]+1:
				return fmt.Errorf("after width %d of %s came %d", f.seen[s.Metadata.Name], s.Metadata.Name, s.Spec.Width)
			default:
				f.seen[s.Metadata.Name]++
			}
			if finished(f) {
				open--
			}
		default:
			return fmt.Errorf("heard %s %s", m.Type, m.Payload)
		}
	}
	return nil
}

// TestReloadUnderLoad: only operations that name what vanished fail, by validation;
// streams lose nothing and repeat nothing; what the catalogues took is given back.
func TestReloadUnderLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	c := newChanging(t, server.Config{})
	l := &load{changing: c, due: make(chan struct{}, 2*loadReloads)}
	before, heap := runtime.NumGoroutine(), heaptest.InUse()
	var old []weak.Pointer[service.Service]
	sockets := make([]*wire, loadSockets)
	for i := range sockets {
		sockets[i] = c.dial()
		_ = sockets[i].conn.SetReadDeadline(time.Now().Add(5 * time.Minute))
	}
	var listeners, began, writers sync.WaitGroup
	done, halt := make(chan struct{}), make(chan struct{})
	fail := sync.OnceFunc(func() { close(halt) })
	for i, w := range sockets {
		streams := map[string]*follower{}
		for n := i; n < loadStreams; n += loadSockets {
			id := fmt.Sprint("s", n)
			streams[id] = &follower{namespace: fmt.Sprintf("ns-%d", n%loadNamespaces)}
			began.Add(1)
			w.begin(id, shelfChanges, map[string]any{"namespace": streams[id].namespace})
		}
		listeners.Go(func() {
			if err := l.listen(w, streams, began.Done, done); err != nil {
				t.Error(err)
				fail()
			}
		})
	}
	began.Wait()
	for writer := range loadWriters {
		writers.Go(func() {
			for l.writes.Load() < loadPerReload*(loadReloads+1) {
				if err := l.write(writer); err != nil {
					t.Error(err)
					fail()
					return
				}
				select {
				case <-halt:
					return
				default:
				}
			}
		})
	}
	next := []string{wide, narrow}
	for i := range loadReloads {
		select {
		case <-l.due:
		case <-halt:
		}
		old = append(old, weak.Make(c.replace(next[i%2])))
	}
	writers.Wait()
	// One more write to each, so that every stream hears something after the end.
	for writer := range loadWriters {
		l.final[writer].Store(l.last[writer].Load() + 1)
	}
	close(done)
	for writer := range loadWriters {
		if err := l.write(writer); err != nil {
			t.Fatal(err)
		}
	}
	listeners.Wait()
	t.Logf("%d writes, %d documents refused by validation, %d streams resumed", l.writes.Load(), l.refused.Load(), l.resumed.Load())
	if l.refused.Load() == 0 || l.resumed.Load() == 0 {
		t.Error("nothing vanished under an operation, or no stream was ended")
	}
	for _, w := range sockets {
		_ = w.conn.Close()
	}
	l.returned(before, heap, old[:len(old)-1])
}

// returned waits until goroutines and older catalogues are gone. Each of thirty
// would hold some megabyte.
func (l *load) returned(goroutines int, heap int64, old []weak.Pointer[service.Service]) {
	var held int
	var now int64
	for range 600 {
		now, held = heaptest.InUse(), 0
		for _, one := range old {
			if one.Value() != nil {
				held++
			}
		}
		if held == 0 && runtime.NumGoroutine() <= goroutines+5 && now < heap+16<<20 {
			l.Logf("heap %d KiB before, %d KiB after; %d goroutines, then %d", heap>>10, now>>10, goroutines, runtime.NumGoroutine())
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	l.Errorf("heap %d KiB before, %d KiB after; %d goroutines, then %d; %d older services are held", heap>>10, now>>10, goroutines, runtime.NumGoroutine(), held)
}
