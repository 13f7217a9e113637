package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"reflect"
	"strconv"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
)

// SeedVariable names the environment variable that replaces the seeds of RunModel.
const SeedVariable = "SLUICE_TEST_SEED"

// modelSteps is the number of steps of a history.
const modelSteps = 1500

// RunModel runs a random history for each seed, on a driver and on backend/memory
// with the same clock and the same epochs. It expects the same answers from both.
func RunModel(t *testing.T, open Opener, seeds ...uint64) {
	if v := os.Getenv(SeedVariable); v != "" {
		seed, err := strconv.ParseUint(v, 10, 64)
		if err != nil {
			t.Fatalf("%s: %v", SeedVariable, err)
		}
		seeds = []uint64{seed}
	}
	for _, seed := range seeds {
		t.Run(fmt.Sprintf("seed %d", seed), func(t *testing.T) {
			t.Parallel()
			defer func() {
				if t.Failed() {
					t.Logf("%s=%d plays this history again", SeedVariable, seed)
				}
			}()
			m := newModel(t, open, seed)
			for m.step = range modelSteps {
				m.play()
			}
			m.compareAll()
			m.reopen()
			m.compareAll()
			m.close()
		})
	}
}

// openMemory is the Opener of the reference.
func openMemory(_ testing.TB, o Options) Instance {
	data := &memory.Data{}
	return Instance{
		Open: func() (Store, error) {
			return memory.Open(memory.Config{
				Data: data, Clock: o.Clock, Rand: o.Rand,
				LogEntries: o.LogEntries, LogAge: o.LogAge, LogBytes: o.LogBytes, PurgeInterval: o.PurgeInterval,
			})
		},
	}
}

// model runs one history. Arrays have the values of the driver at 0, and the
// values of the reference at 1.
type model struct {
	*testing.T
	rnd       *rand.Rand
	clock     *Clock
	in        [2]Instance
	stores    [2]Store
	watchers  [][2]backend.Watcher
	revisions []backend.Revision
	positions []backend.Position
	step      int
}

func newModel(t *testing.T, open Opener, seed uint64) *model {
	m := &model{T: t, rnd: rand.New(rand.NewPCG(seed, 0)), clock: newClock()}
	for i, open := range []Opener{open, openMemory} {
		m.in[i] = open(t, Options{
			Clock: m.clock.Now, Rand: rand.New(rand.NewPCG(seed, 1)),
			LogEntries: 80, LogAge: time.Minute, LogBytes: 40_000,
		})
	}
	m.open()
	return m
}

func (m *model) open() {
	m.Helper()
	for i := range m.stores {
		s, err := m.in[i].Open()
		if err != nil {
			m.Fatalf("step %d: open: %v", m.step, err)
		}
		m.stores[i] = s
	}
	m.notePosition()
}

func (m *model) close() {
	m.Helper()
	if m.in[0].Check != nil {
		if err := m.in[0].Check(m.stores[0]); err != nil {
			m.Fatalf("step %d: the data is inconsistent: %v", m.step, err)
		}
	}
	for _, s := range m.stores {
		if err := s.Close(); err != nil {
			m.Fatalf("step %d: close: %v", m.step, err)
		}
	}
	for _, pair := range m.watchers {
		for _, w := range pair {
			if _, err := w.Next(m.Context()); !errors.Is(err, backend.ErrClosed) &&
				!errors.Is(err, backend.ErrLagged) && !errors.Is(err, backend.ErrPositionExpired) {
				m.Fatalf("step %d: a watcher of a closed store: %v", m.step, err)
			}
		}
	}
	m.watchers = nil
}

func (m *model) reopen() {
	m.Helper()
	m.close()
	m.open()
}

// play makes one random step.
func (m *model) play() {
	m.Helper()
	switch n := m.rnd.IntN(100); {
	case n < 45:
		m.apply()
	case n < 52:
		m.clock.Advance(time.Duration(m.rnd.IntN(5000)) * time.Millisecond)
	case n < 56:
		both(m, "purge", func(s Store) (int, error) { return s.Purge(m.Context()) })
		m.notePosition()
	case n < 64:
		m.compareGet(m.randomKeys())
	case n < 78:
		m.compareRange(m.randomRange())
	case n < 84:
		m.compareRanges()
	case n < 90:
		m.compareReplay(m.positions[m.rnd.IntN(len(m.positions))])
	case n < 94:
		m.watch()
	case n < 99:
		m.drain()
	default:
		m.reopen()
	}
}

// both calls the driver and the reference and expects the same answer.
func both[T any](m *model, call string, run func(Store) (T, error)) (T, error) {
	m.Helper()
	got, err1 := run(m.stores[0])
	want, err2 := run(m.stores[1])
	if d := cmp.Diff(causes(err2), causes(err1)); d != "" {
		m.Fatalf("step %d: %s: error %v, want %v:\n%s", m.step, call, err1, err2, d)
	}
	if reflect.DeepEqual(want, got) { // much faster than cmp
		return got, err1
	}
	if d := cmp.Diff(want, got); d != "" {
		m.Fatalf("step %d: %s: want -, got +:\n%s", m.step, call, d)
	}
	return got, err1
}

// cause is the part of an error that must be the same on both.
type cause struct {
	Sentinels []string
	Action    int
	Key       backend.Key
	Current   *backend.Resource
	Lagged    backend.Position
}

func causes(err error) cause {
	var c cause
	for _, s := range []error{
		backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrDeleting, backend.ErrNotDeleting, backend.ErrReferenced, backend.ErrFinalized, backend.ErrInvalid, backend.ErrTooLarge,
		backend.ErrDeadline, backend.ErrUnknown, backend.ErrPositionExpired, backend.ErrLagged, backend.ErrUnavailable, backend.ErrClosed,
		backend.ErrUnreadable, context.Canceled,
	} {
		if errors.Is(err, s) {
			c.Sentinels = append(c.Sentinels, s.Error())
		}
	}
	if err != nil && c.Sentinels == nil {
		c.Sentinels = []string{err.Error()}
	}
	var ce *backend.ConditionError
	if errors.As(err, &ce) {
		c.Action = ce.Action
		c.Key = ce.Key
		c.Current = ce.Current
	}
	var lagged *backend.LaggedError
	if errors.As(err, &lagged) {
		c.Lagged = lagged.Position
	}
	return c
}

func (m *model) notePosition() {
	m.Helper()
	p, _ := both(m, "position", func(s Store) (backend.Position, error) { return s.Position(m.Context()) })
	m.positions = append(m.positions, p)
}

func (m *model) apply() {
	m.Helper()
	b := m.batch()
	res, err := both(
		m, fmt.Sprintf("apply %+v", b), func(s Store) (backend.Result, error) { return s.Apply(m.Context(), b) },
	)
	if err == nil {
		m.positions = append(m.positions, res.Position)
		m.revisions = append(m.revisions, res.Revisions...)
	}
}

// compareGet compares the results of Get and GetBare.
func (m *model) compareGet(keys []backend.Key) {
	m.Helper()
	both(
		m, fmt.Sprintf("get %q", keys),
		func(s Store) ([]*backend.Resource, error) { return s.Get(m.Context(), keys...) },
	)
	both(m, fmt.Sprintf("get bare %q", keys), func(s Store) ([]*backend.Resource, error) {
		got, err := backend.GetBare(m.Context(), s, keys...)
		if err != nil {
			return nil, err
		}
		return stripped(got), nil
	})
}

func (m *model) compareRange(r backend.Range) {
	m.Helper()
	both(m, fmt.Sprintf("range %+v", r), func(s Store) (backend.Page, error) {
		page, err := s.Range(m.Context(), r)
		return shown(page, r), err
	})
}

func (m *model) compareRanges() {
	m.Helper()
	rs := make([]backend.Range, m.rnd.IntN(5))
	for i := range rs {
		rs[i] = m.randomRange()
	}
	both(m, fmt.Sprintf("ranges %+v", rs), func(s Store) ([]backend.Page, error) {
		pages, err := s.(backend.Ranger).Ranges(m.Context(), rs)
		for i := range pages {
			pages[i] = shown(pages[i], rs[i])
		}
		return pages, err
	})
}

// shown returns the page of a range without the fields in which stores may differ.
func shown(page backend.Page, r backend.Range) backend.Page {
	if r.Bare && page.Resources != nil {
		page.Resources = stripped(page.Resources)
	}
	return page
}

// replay has what a new watch delivers until it has caught up.
type replay struct {
	Events []backend.Event
	End    backend.Position
}

func (m *model) compareReplay(from backend.Position) {
	m.Helper()
	both(m, fmt.Sprintf("replay from %v", from.Shard(0)), func(s Store) (replay, error) {
		w, err := s.Watch(m.Context(), backend.Watch{From: from})
		if err != nil {
			return replay{}, err
		}
		defer w.Close()
		var out replay
		for {
			d, err := w.Next(m.Context())
			if err != nil {
				return replay{}, err
			}
			out.Events, out.End = append(out.Events, d.Events...), d.Position
			if d.CaughtUp {
				return out, nil
			}
		}
	})
}

// watch begins a watch that stays open during the history.
func (m *model) watch() {
	m.Helper()
	w := backend.Watch{MaxLag: 1 + m.rnd.IntN(30)}
	if m.rnd.IntN(2) == 0 {
		w.From = m.positions[len(m.positions)-1-m.rnd.IntN(min(len(m.positions), 20))]
	}
	var pair [2]backend.Watcher
	i := 0
	_, err := both(m, fmt.Sprintf("watch %+v", w), func(s Store) (struct{}, error) {
		var err error
		pair[i], err = s.Watch(m.Context(), w)
		i++
		return struct{}{}, err
	})
	if err == nil {
		m.watchers = append(m.watchers, pair)
	}
}

// drain makes a change and reads one of the open watches up to it.
func (m *model) drain() {
	m.Helper()
	if len(m.watchers) == 0 {
		return
	}
	mark := backend.Batch{RequestID: "mark", Deadline: m.clock.Now(), Actions: []backend.Action{put(key("mark"), "1")}}
	res, _ := both(m, "apply the mark", func(s Store) (backend.Result, error) { return s.Apply(m.Context(), mark) })
	n := m.rnd.IntN(len(m.watchers))
	i := 0
	_, err := both(m, "next", func(Store) (replay, error) {
		w := m.watchers[n][i]
		i++
		var out replay
		for out.End.Shard(0).Compare(res.Position.Shard(0)) < 0 {
			d, err := w.Next(m.Context())
			if err != nil {
				return out, err
			}
			out.Events, out.End = append(out.Events, d.Events...), d.Position
		}
		return out, nil
	})
	if err != nil {
		m.watchers = append(m.watchers[:n], m.watchers[n+1:]...)
	}
}

// compareAll compares everything that can be read.
func (m *model) compareAll() {
	m.Helper()
	for _, kind := range modelKinds() {
		for _, deleting := range []bool{false, true} {
			for _, r := range []backend.Range{{}, {Reverse: true}, {Count: true}} {
				r.Kind = kind
				r.Deleting = deleting
				r.Limit = backend.MaxLimit
				m.compareRange(r)
			}
		}
	}
	for _, k := range modelKeys() {
		for _, r := range []backend.Range{{}, {Count: true}, {BoundOnly: true}} {
			r.Referenced, r.Limit = &k, backend.MaxLimit
			m.compareRange(r)
		}
	}
	for _, p := range m.positions {
		m.compareReplay(p)
	}
}
