package query

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

const (
	// scansAtOnce is how many scans of whole kinds a gateway does at a time.
	scansAtOnce = 2
	// scanPatience is how long another one waits to begin.
	scanPatience = 5 * time.Second
)

// slots let few scans of whole kinds run at once. Equal ones that wait are one.
type slots struct {
	free *semaphore.Weighted

	mu      sync.Mutex // guards waiting
	waiting map[string]*turn
}

// turn is a scan that waits to begin, for all that are equal to it.
type turn struct {
	done chan struct{} // closed at its end
	// scan has what was found; nil if nothing was: then each tries by itself.
	scan *scan
}

func newSlots() *slots {
	return &slots{free: semaphore.NewWeighted(scansAtOnce), waiting: map[string]*turn{}}
}

// begin waits for a slot.
func (s *slots) begin(ctx context.Context) (end func(), err error) {
	if !s.free.TryAcquire(1) {
		patient, cancel := context.WithTimeout(ctx, scanPatience)
		defer cancel()
		spent := budget.From(ctx)
		spent.Leave() // it must not keep a turn that who has the slot waits for
		err := s.free.Acquire(patient, 1)
		spent.Return(ctx)
		if err != nil {
			if ctx.Err() != nil {
				return nil, failure.Of(ctx.Err(), backend.Key{})
			}
			return nil, &failure.Error{
				Code: failure.CodeUnavailable, Retryable: true,
				Message: fmt.Sprintf("%d other filters or orders read whole kinds that are not in memory; try again", scansAtOnce),
			}
		}
	}
	return func() { s.free.Release(1) }, nil
}

// share runs a scan, or waits for an equal one that has not begun yet: what it finds is as
// new as this one must be.
func (s *slots) share(ctx context.Context, sc *scan, run func() error) error {
	key := sc.identity()
	s.mu.Lock()
	t := s.waiting[key]
	first := t == nil
	if first {
		t = &turn{done: make(chan struct{})}
		s.waiting[key] = t
	}
	s.mu.Unlock()
	if !first {
		spent := budget.From(ctx)
		spent.Leave()
		select {
		case <-t.done:
		case <-ctx.Done():
		}
		spent.Return(ctx)
		if ctx.Err() != nil {
			return failure.Of(ctx.Err(), backend.Key{})
		}
		if t.scan != nil {
			sc.found, sc.more, sc.count, sc.done = slices.Clone(t.scan.found), t.scan.more, t.scan.count, true
			sc.streams, sc.nearest = t.scan.streams, t.scan.nearest
			return spent.Spend(budget.Rows, len(sc.found))
		}
	}
	end, err := s.begin(ctx)
	if first {
		s.mu.Lock()
		delete(s.waiting, key) // who comes now may have to see more than this one does
		s.mu.Unlock()
		defer close(t.done)
	}
	if err != nil {
		return err
	}
	defer end()
	if err = run(); err == nil && first {
		found := *sc
		found.found = slices.Clone(sc.found)
		t.scan = &found
	}
	return err
}

// identity tells scans apart that do not find the same.
func (sc *scan) identity() string {
	q := sc.query
	return fmt.Sprintf("%s %q %q %q %q %q %q %q %q %t %d %t %t %t", q.kind.Name, q.namespace, q.filter.text, q.reference, q.parent, q.order.text(),
		sc.in.after, sc.in.before, sc.in.from, sc.backward, sc.size, sc.ahead, sc.counting, sc.total)
}

// readsAll says whether a scan looks at whatever the kind has, within bounds of the names.
func (sc *scan) readsAll() bool {
	q := sc.query
	return q.names == nil && !q.refers() && !sc.plain() && !sc.counted()
}

// affordable says which of some scans would read more than they may, before anything is
// read.
func (r *Reader) affordable(ctx context.Context, scans []*scan) error {
	ranges := make([]backend.Range, 0, len(scans))
	for _, sc := range scans {
		all := sc.left
		all.Count = true
		ranges = append(ranges, all)
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan*len(ranges)); err != nil {
		return err
	}
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, ranges)
	spent.Return(ctx)
	if err != nil {
		return failure.Of(err, backend.Key{Kind: ranges[0].Kind})
	}
	for i := range pages {
		if n := pages[i].Count; n > spent.Left(budget.Rows) {
			return r.tooMany(scans[i].query.kind, n, spent.Left(budget.Rows))
		}
	}
	return nil
}

// tooMany is what is told of a scan that would look at too much, and what would help.
func (r *Reader) tooMany(k *kind.Kind, n, most int) error {
	help := "the kind's author keeps it out of memory"
	if r.index != nil && !k.OutOfMemory {
		help = fmt.Sprintf("with about %d bytes it would be (configuration key index-memory)", r.index.Needs(k.Name, n))
	}
	return &failure.Error{Code: failure.CodeLimitExceeded, Kind: k.Name, Limit: most, Message: fmt.Sprintf(
		"a filter or an order of %s looks at all of its %d resources, since the kind is not in memory, and the operation may look at %d (configuration key limit-rows); %s", k.Name, n, most, help)}
}
