package transport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/transport"
)

// set writes a network.
func (s *store) set(t testing.TB, name string, mtu int, description string) {
	t.Helper()
	_, err := s.Writer.Upsert(administrator(t.Context()), service.UpsertRequest{
		Identity: kind.Identity{Kind: "Network", Name: name},
		Spec: map[string]any{
			"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"},
			"resource":            map[string]any{"mtu": mtu, "description": description},
		},
	})
	if err != nil {
		t.Error(err)
	}
}

// until waits for something that is under way.
func until(t testing.TB, what string, done func() bool) {
	t.Helper()
	for limit := time.Now().Add(patience); !done(); runtime.Gosched() {
		if time.Now().After(limit) {
			t.Fatalf("in vain: %s", what)
		}
	}
}

// allParked waits until so many streams share executions and were told everything.
func (s *store) allParked(t testing.TB, n int) {
	t.Helper()
	until(t, fmt.Sprintf("%d streams share executions", n), func() bool { _, parked := s.exec.Shared(); return parked == n })
}

// payload is that of the next message, which has to be an event of an operation.
func (p *peer) payload(id string) string {
	p.t.Helper()
	text := p.read()
	payload, ok := strings.CutPrefix(text, fmt.Sprintf(`{"id":%q,"type":"next","payload":`, id))
	if !ok {
		p.t.Fatalf("heard %s", text)
	}
	return strings.TrimSuffix(payload, "}")
}

func manyListeners() int {
	if small() {
		return 100
	}
	return 1000
}

// TestEvents_WhoLeavesWithinTheStateLeavesNoMemoryTaken: neither the last of those who share an execution,
// nor one before it.
func TestEvents_WhoLeavesWithinTheStateLeavesNoMemoryTaken(t *testing.T) {
	s := openStoreForAll(t, memory.Config{})
	for i := range 100 {
		s.set(t, fmt.Sprintf("net-%03d", i), 1500, strings.Repeat("x", 200))
	}
	g := s.serveWith(t, transport.Config{Queue: 2})
	defer g.stop()
	for range 3 {
		peers := []*peer{g.open(), g.open()}
		for _, p := range peers {
			p.subscribe("1", `subscription { networkChanges(snapshot: true) { type network { manifest } } }`)
			if got := p.payload("1"); !strings.Contains(got, `"RESET"`) {
				t.Fatalf("the state begins with %s", got)
			}
		}
		for _, p := range peers {
			p.say(`{"id":"1","type":"complete"}`)
			_ = p.Close()
		}
	}
	until(t, "the memory is given back", func() bool { return s.memory.Used() == 0 })
}

func TestEvents_EqualSubscriptionsAreExecutedOnceForEachEvent(t *testing.T) {
	const events = 5
	s := openStore(t, memory.Config{})
	g := s.serve(t)
	defer g.stop()
	peers := make([]*peer, manyListeners())
	for i := range peers {
		peers[i] = g.open()
		defer func() { _ = peers[i].Close() }()
		// Where a client resumed, and the ids of operations, make no difference.
		query := `subscription($after: String) { networkChanges(after: $after) { type cursor network { metadata { name revision } spec { resource { mtu } } } } }`
		payload, _ := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"after": nil}})
		if i%2 == 0 {
			payload, _ = json.Marshal(map[string]any{"query": query})
		}
		peers[i].say(fmt.Sprintf(`{"id":"%d","type":"subscribe","payload":%s}`, i, payload))
		if got := peers[i].payload(fmt.Sprint(i)); !strings.Contains(got, "IN_SYNC") {
			t.Fatal(got)
		}
	}
	sse := g.listen("GET", "/graphql?query="+strings.ReplaceAll(`subscription{networkChanges{type,cursor,network{metadata{name}}}}`, " ", ""), nil, "")
	other := g.listen("GET", "/graphql?query="+strings.ReplaceAll(`subscription{networkChanges{type,cursor,network{metadata{name}}}}`, " ", ""), nil, "")
	sse.next()
	other.next()
	s.allParked(t, len(peers)+2)
	before := s.answered.Load()
	for i := range events {
		s.set(t, "net", 1000+i, "d")
		want := ""
		for id, p := range peers {
			got := p.payload(fmt.Sprint(id))
			if want == "" {
				want = got
			}
			if got != want || !strings.Contains(got, fmt.Sprintf(`"mtu":%d`, 1000+i)) {
				t.Fatalf("event %d: %d hears %s, another one %s", i, id, got, want)
			}
		}
		if a, b := sse.next(), other.next(); a.data != b.data || a.id != b.id || a.id == "" {
			t.Errorf("%+v and %+v", a, b)
		}
	}
	if n := s.answered.Load() - before; n != 2*events { // two documents
		t.Errorf("%d events were executed %d times for %d listeners", events, n, len(peers)+2)
	}
}

func TestEvents_SubscriptionsThatDifferInAFilterValueAreExecutedWhereItMatches(t *testing.T) {
	s := openStore(t, memory.Config{})
	g := s.serve(t)
	defer g.stop()
	peers := make([]*peer, manyListeners())
	for i := range peers {
		peers[i] = g.open()
		defer func() { _ = peers[i].Close() }()
		payload, _ := json.Marshal(map[string]any{
			"query":     `subscription($mtu: Int!) { networkChanges(filter: {spec: {resource: {mtu: {eq: $mtu}}}}) { type network { metadata { name } } } }`,
			"variables": map[string]any{"mtu": 1000 + i},
		})
		peers[i].say(fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload))
		peers[i].payload("1")
	}
	s.allParked(t, len(peers))
	before := s.answered.Load()
	steps := []int{1005, 1006, 1006, 1090, 8000}
	for i, mtu := range steps {
		s.set(t, "net", mtu, fmt.Sprint(i))
	}
	for at, want := range map[int][]string{5: {"ADDED", "DELETED"}, 6: {"ADDED", "MODIFIED", "DELETED"}, 90: {"ADDED", "DELETED"}} {
		for _, w := range want {
			if got := peers[at].payload("1"); !strings.Contains(got, w) {
				t.Errorf("%d hears %s, want %s", 1000+at, got, w)
			}
		}
	}
	s.allParked(t, len(peers))
	if n := s.answered.Load() - before; n != 7 {
		t.Errorf("%d changes were executed %d times", len(steps), n)
	}
}

func TestEvents_ASlowListenerSlowsNobodyAndIsToldWhereToResume(t *testing.T) {
	const events = 1500
	s := openStore(t, memory.Config{LogEntries: 10_000})
	g := s.serveWith(t, transport.Config{Queue: 4, WriteTimeout: time.Minute})
	defer g.stop()
	l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = g.server.Serve(l) }()
	dial := g.dial
	g.dial = l.dial // nothing between the two keeps what is not read
	const query = `subscription($after: String) { networkChanges(after: $after) { type cursor network { metadata { name } } } }`
	slow := g.open()
	g.dial = dial
	quick := g.open()
	defer func() { _ = slow.Close(); _ = quick.Close() }()
	for _, p := range []*peer{slow, quick} {
		p.subscribe("1", query)
		p.payload("1")
	}
	s.allParked(t, 2)
	for i := range events {
		s.create(t, fmt.Sprintf("net-%04d", i))
		if got := quick.payload("1"); !strings.Contains(got, fmt.Sprintf("net-%04d", i)) {
			t.Fatalf("event %d: %s", i, got)
		}
	}
	n := 0
	text := slow.read()
	for ; strings.Contains(text, `"type":"next"`); n++ {
		if !strings.Contains(text, fmt.Sprintf("net-%04d", n)) {
			t.Fatalf("event %d: %s", n, text)
		}
		text = slow.read()
	}
	var end struct {
		Payload []struct{ Extensions struct{ Code, Cursor string } }
	}
	if err := json.Unmarshal([]byte(text), &end); err != nil || len(end.Payload) != 1 || end.Payload[0].Extensions.Code != "LAGGED" {
		t.Fatalf("after %d events: %s", n, text)
	}
	if n > 100 || n == 0 {
		t.Errorf("it was told %d events before", n)
	}
	again := g.open()
	defer func() { _ = again.Close() }()
	payload, _ := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"after": end.Payload[0].Extensions.Cursor}})
	again.say(fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload))
	if got := again.payload("1"); !strings.Contains(got, fmt.Sprintf("net-%04d", n)) {
		t.Errorf("it goes on with %s after %d events", got, n)
	}
}

// pageOfState is how many resources a snapshot reads at once.
const pageOfState = 200

// gated is a store whose reads of pages of the state wait, and are counted.
type gated struct {
	backend.Store
	pages atomic.Int64
	// open lets pages be read; each read waits until it is closed.
	open chan struct{}
}

func (g *gated) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == "Network" && r.Limit == pageOfState { // others are the gateway's own
		g.pages.Add(1)
		<-g.open
	}
	return g.Store.Range(ctx, r)
}

func TestEvents_ASnapshotThatManyAskForAtOnceIsReadOnce(t *testing.T) {
	const listeners, networks = 300, 1000
	var pages *gated
	s := openStoreBehind(t, memory.Config{}, func(m backend.Store) backend.Store {
		pages = &gated{Store: m, open: make(chan struct{})}
		return pages
	})
	for i := range networks {
		s.create(t, fmt.Sprintf("net-%04d", i))
	}
	g := s.serve(t)
	defer g.stop()
	peers := make([]*peer, listeners)
	for i := range peers {
		peers[i] = g.open()
		defer func() { _ = peers[i].Close() }()
		peers[i].subscribe("1", `subscription { networkChanges(snapshot: true) { type cursor network { metadata { name } } } }`)
	}
	until(t, "all have joined", func() bool { all, _ := s.exec.Shared(); return all == listeners })
	s.create(t, "net-2000") // before the first page: it is in the state
	close(pages.open)
	var listening sync.WaitGroup
	for _, p := range peers {
		listening.Go(func() {
			for i := range networks + 3 {
				want := fmt.Sprintf("net-%04d", i-1)
				switch i {
				case 0:
					want = "RESET"
				case networks + 1:
					want = "net-2000"
				case networks + 2:
					want = "IN_SYNC"
				}
				if _, data, err := p.ReadMessage(); err != nil || !strings.Contains(string(data), want) {
					t.Errorf("event %d: %s %v, want %s", i, data, err, want)
					return
				}
			}
		})
	}
	listening.Wait()
	if n := pages.pages.Load(); n != networks/pageOfState+1 {
		t.Errorf("%d pages were read", n)
	}
	if n := s.answered.Load(); n != networks+3 {
		t.Errorf("%d events were executed", n)
	}
	s.allParked(t, listeners)
	s.create(t, "last")
	for _, p := range peers {
		if got := p.payload("1"); !strings.Contains(got, `"last"`) {
			t.Fatal(got)
		}
	}
	if n := s.answered.Load(); n != networks+4 {
		t.Errorf("%d events were executed with the one after", n)
	}
}

// TestEvents_WhoJoinsASnapshotHearsOfWhatWasWrittenBefore although its page was read already.
func TestEvents_WhoJoinsASnapshotHearsOfWhatWasWrittenBefore(t *testing.T) {
	var pages *gated
	s := openStoreBehind(t, memory.Config{}, func(m backend.Store) backend.Store {
		pages = &gated{Store: m, open: make(chan struct{}, 10)}
		return pages
	})
	for i := range 300 {
		s.create(t, fmt.Sprintf("net-%04d", i))
	}
	g := s.serve(t)
	defer g.stop()
	const query = `subscription { networkChanges(snapshot: true) { type network { metadata { name } spec { resource { mtu } } } } }`
	first, second := g.open(), g.open()
	defer func() { _ = first.Close(); _ = second.Close() }()
	first.subscribe("1", query)
	pages.open <- struct{}{}
	until(t, "the second page is asked for", func() bool { return pages.pages.Load() == 2 })
	s.set(t, "net-0000", 7777, "d")
	second.subscribe("1", query)
	until(t, "both share", func() bool { all, _ := s.exec.Shared(); return all == 2 })
	pages.open <- struct{}{}
	for i, p := range []*peer{first, second} {
		changed := false
		for text := p.payload("1"); !strings.Contains(text, "IN_SYNC"); text = p.payload("1") {
			changed = changed || strings.Contains(text, "7777")
		}
		if !changed {
			t.Errorf("listener %d is in sync without a change from before it asked", i)
		}
	}
	if n := pages.pages.Load(); n != 2 {
		t.Errorf("%d pages were read", n)
	}
}

// TestEvents_WhoReadsASnapshotTooSlowlyReadsItByItself from where it is, and misses nothing.
func TestEvents_WhoReadsASnapshotTooSlowlyReadsItByItself(t *testing.T) {
	const networks = 5000
	s := openStore(t, memory.Config{LogEntries: 3 * networks})
	for i := range networks {
		s.set(t, fmt.Sprintf("net-%04d", i), 1500, strings.Repeat("d", 250))
	}
	g := s.serveWith(t, transport.Config{Queue: 4, WriteTimeout: time.Minute})
	defer g.stop()
	l := &pipes{accept: make(chan net.Conn), closed: make(chan struct{})}
	go func() { _ = g.server.Serve(l) }()
	const query = `subscription { networkChanges(snapshot: true) { type network { metadata { name } spec { resource { a: description b: description c: description d: description e: description } } } } }`
	quick := g.open()
	g.dial = l.dial
	slow := g.open()
	defer func() { _ = slow.Close(); _ = quick.Close() }()
	slow.subscribe("1", query)
	quick.subscribe("1", query)
	for text := quick.payload("1"); !strings.Contains(text, "IN_SYNC"); text = quick.payload("1") {
	}
	names, resets := map[string]bool{}, 0
	for text := slow.payload("1"); !strings.Contains(text, "IN_SYNC"); text = slow.payload("1") {
		if strings.Contains(text, "RESET") {
			resets++
			continue
		}
		names[parseChange(t, []byte(text)).Network.Metadata.Name] = true
	}
	if len(names) != networks || resets != 1 {
		t.Errorf("it was told of %d networks after %d resets", len(names), resets)
	}
	if n := s.answered.Load(); n < networks+100 {
		t.Errorf("%d events were executed: nobody read by itself", n)
	}
}

func TestEvents_VariablesThatAreUsedElsewhereTellSubscriptionsApart(t *testing.T) {
	for name, query := range map[string]string{
		"declared with a blank": `subscription($ s: Boolean!) { networkChanges(snapshot: $s) { type network { metadata { name } spec @include(if: $s) { resource { mtu } } } } }`,
		"used with a comment":   "subscription($s: Boolean!) { networkChanges(snapshot: $s) { type network { metadata { name } spec @include(if: $ # a\n s) { resource { mtu } } } } }",
	} {
		t.Run(name, func(t *testing.T) {
			s := openStore(t, memory.Config{})
			g := s.serve(t)
			defer g.stop()
			peers := []*peer{g.open(), g.open()}
			for i, p := range peers {
				defer func() { _ = p.Close() }()
				payload, _ := json.Marshal(map[string]any{"query": query, "variables": map[string]any{"s": i == 0}})
				p.say(fmt.Sprintf(`{"id":"1","type":"subscribe","payload":%s}`, payload))
			}
			for _, p := range peers {
				for !strings.Contains(p.payload("1"), "IN_SYNC") {
				}
			}
			s.allParked(t, 2)
			s.set(t, "net", 1000, "d")
			if all, none := peers[0].payload("1"), peers[1].payload("1"); !strings.Contains(all, `"spec"`) || strings.Contains(none, `"spec"`) {
				t.Errorf("who asked for the spec is told %s, and who did not %s", all, none)
			}
		})
	}
}
