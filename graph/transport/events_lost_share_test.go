package transport_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/engine/enginetest"
	"github.com/sluicegw/sluice/graph/stream"
)

// losing is a store whose watches end as if its log had been trimmed away.
type losing struct {
	backend.Store
	left context.Context // when the watches end that were begun
	// state keeps the pages of a state back once the place is lost, until it is closed.
	state chan struct{}
}

func (l *losing) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == "Network" && r.Limit == pageOfState && l.left.Err() != nil {
		<-l.state
	}
	return l.Store.Range(ctx, r)
}

type losingWatcher struct {
	backend.Watcher
	lost context.Context
}

func (l *losing) Watch(ctx context.Context, w backend.Watch) (backend.Watcher, error) {
	if l.left.Err() != nil {
		return l.Store.Watch(ctx, w)
	}
	watcher, err := l.Store.Watch(ctx, w)
	return losingWatcher{watcher, l.left}, err
}

func (w losingWatcher) Next(ctx context.Context) (backend.Delivery, error) {
	either, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(w.lost, cancel)()
	d, err := w.Watcher.Next(either)
	if w.lost.Err() != nil && ctx.Err() == nil {
		return backend.Delivery{}, backend.ErrPositionExpired
	}
	return d, err
}

// TestEvents_AllWhoShareAnExecutionAreToldWhenTheGatewayLosesItsPlace in the log: who asked for
// the state gets it anew, read and executed once for all of them, and the others an error.
func TestEvents_AllWhoShareAnExecutionAreToldWhenTheGatewayLosesItsPlace(t *testing.T) {
	const listeners, networks = 50, 20
	state := make(chan struct{})
	publish := sync.OnceFunc(func() { close(state) })
	lost, lose := context.WithCancel(t.Context())
	defer lose()
	s := openStoreBehind(t, memory.Config{}, func(m backend.Store) backend.Store { return &losing{Store: m, left: lost, state: state} })
	for i := range networks {
		s.create(t, fmt.Sprintf("net-%04d", i))
	}
	g := s.serve(t)
	defer g.stop()
	defer publish()
	with, without := make([]*peer, listeners), make([]*peer, listeners)
	for i := range listeners {
		with[i], without[i] = g.open(), g.open()
		defer func() { _ = with[i].Close(); _ = without[i].Close() }()
		with[i].subscribe("1", `subscription { networkChanges(snapshot: true) { type cursor network { metadata { name } } } }`)
		without[i].subscribe("1", `subscription { networkChanges { type cursor network { metadata { name } } } }`)
	}
	read := func(p *peer, end string) (names int) {
		t.Helper()
		if got := p.payload("1"); !strings.Contains(got, `"RESET"`) {
			t.Fatalf("the state begins with %s", got)
		}
		for text := p.payload("1"); !strings.Contains(text, end); text = p.payload("1") {
			if !strings.Contains(text, `"SNAPSHOT"`) {
				t.Fatalf("in the state, behind %d, is %s", names, text)
			}
			names++
		}
		return names
	}
	for i := range listeners {
		if n := read(with[i], "IN_SYNC"); n != networks {
			t.Fatalf("%d in the state", n)
		}
		if got := without[i].payload("1"); !strings.Contains(got, `"IN_SYNC"`) {
			t.Fatal(got)
		}
	}
	s.allParked(t, 2*listeners)
	before := s.answered.Load()
	lose()
	until(t, "all who asked for the state have asked again", func() bool { return s.exec.ReadingState() == listeners })
	publish()
	for i := range listeners {
		if n := read(with[i], "IN_SYNC"); n != networks {
			t.Errorf("%d in the new state", n)
		}
		if got := without[i].read(); !strings.Contains(got, "POSITION_EXPIRED") {
			t.Errorf("who did not ask for the state is told %s", got)
		}
	}
	if n := s.answered.Load() - before; n > networks+2+2*listeners {
		t.Errorf("%d events were executed for one new state", n)
	}
	s.create(t, "last")
	for _, p := range with {
		if got := p.payload("1"); !strings.Contains(got, `"last"`) {
			t.Errorf("after it comes %s", got)
		}
	}
}

// unshared is an engine that begins no shared execution.
type unshared struct{ *engine.Engine }

func (unshared) Lead(context.Context, stream.Execution) stream.Execution { return nil }

func TestEvents_SubscriptionsWhoseSharedExecutionDoesNotBeginGoOnAlone(t *testing.T) {
	s := openStore(t, memory.Config{})
	s.create(t, "first")
	s.exec = executorOf(t, unshared{enginetest.New(t, nil, s.Service)}, s.memory)
	g := s.serve(t)
	defer g.stop()
	peers := []*peer{g.open(), g.open()}
	for _, p := range peers {
		defer func() { _ = p.Close() }()
		p.subscribe("1", `subscription { networkChanges(snapshot: true) { type network { metadata { name } } } }`)
		for _, want := range []string{"RESET", "first", "IN_SYNC"} {
			if got := p.payload("1"); !strings.Contains(got, want) {
				t.Fatalf("%s, want %s", got, want)
			}
		}
	}
	s.create(t, "last")
	for _, p := range peers {
		if got := p.payload("1"); !strings.Contains(got, "last") {
			t.Error(got)
		}
	}
	if n, _ := s.exec.Shared(); n != 0 {
		t.Errorf("%d share an execution", n)
	}
}
