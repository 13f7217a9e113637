package page

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
)

const (
	// scansAtOnce is the maximum number of scans of whole kinds that run at the same time in a gateway.
	scansAtOnce = 2
	// scanPatience is how long a scan waits for a slot.
	scanPatience = 5 * time.Second
)

// slots limits how many scans of whole kinds run at the same time. If several scans with the same result wait at the
// same time, only one of them is run.
type slots struct {
	free *semaphore.Weighted

	mu      sync.Mutex // guards waiting
	waiting map[string]*pending
}

// pending is a scan that waits for a slot. Other scans with the same result wait for its result.
type pending struct {
	done chan struct{} // closed when the scan has ended
	// found is the result of the scan, which is set before done is closed. It is nil if the scan failed. Then each scan
	// that has waited for it runs by itself.
	found *Read
}

// acquire waits for a slot. The caller must call end when it is done.
func (s *slots) acquire(ctx context.Context) (end func(), err error) {
	if !s.free.TryAcquire(1) {
		patient, cancel := context.WithTimeout(ctx, scanPatience)
		defer cancel()
		spent := budget.From(ctx)
		spent.BeginWait() // lends the CPU slot, for which a scan in progress may wait
		err := s.free.Acquire(patient, 1)
		spent.EndWait(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, failure.Of(ctx.Err(), backend.Key{})
		}
		if err != nil {
			return nil, &failure.Error{
				Code: failure.CodeUnavailable, Retryable: true,
				Message: fmt.Sprintf("%d other filters or orders read whole kinds that are not in memory; try again", scansAtOnce),
			}
		}
	}
	return func() { s.free.Release(1) }, nil
}

// share waits for a slot and runs a scan. If a scan with the same result already waits for a slot, share waits for this
// scan and takes its result. The result is new enough, because that scan has not begun yet.
func (s *slots) share(ctx context.Context, sc *scan, run func() error) error {
	key := sc.identity()
	s.mu.Lock()
	p := s.waiting[key]
	first := p == nil
	if first {
		p = &pending{done: make(chan struct{})}
		s.waiting[key] = p
	}
	s.mu.Unlock()
	if !first {
		spent := budget.From(ctx)
		spent.BeginWait()
		select {
		case <-p.done:
		case <-ctx.Done():
		}
		spent.EndWait(ctx)
		if ctx.Err() != nil {
			return failure.Of(ctx.Err(), backend.Key{})
		}
		if p.found != nil {
			sc.Edges = slices.Clone(p.found.Edges)
			sc.More = p.found.More
			sc.Matches = p.found.Matches
			sc.Groups = p.found.Groups
			sc.done = true
			if err := spent.Spend(budget.Rows, len(sc.Edges)); err != nil {
				return err
			}
			return Failure(spent.Hold(ctx, sc.size()), backend.Key{})
		}
	}
	end, err := s.acquire(ctx)
	if first {
		s.mu.Lock()
		delete(s.waiting, key) // later calls may have to see changes that this scan does not
		s.mu.Unlock()
		defer close(p.done)
	}
	if err != nil {
		return err
	}
	defer end()
	if err = run(); err == nil && first {
		found := *sc.Read
		found.Edges = slices.Clone(sc.Edges)
		p.found = &found
	}
	return err
}

// identity returns a text that is equal for scans with the same result.
func (sc *scan) identity() string {
	q := sc.Query
	return fmt.Sprintf(
		"%s %q %q %q %q %q %v %v", q.Kind.Name, q.Namespace, q.ScopeKey(), q.Filter.Text(), q.Reference,
		q.Parent().String(), q.Order, sc.Want,
	)
}
