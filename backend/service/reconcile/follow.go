package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

const (
	// othersDelay is how long another gateway has to handle its own change,
	// and othersJitter what of it is random, so that not all gateways try at once.
	othersDelay  = 500 * time.Millisecond
	othersJitter = 250 * time.Millisecond
	// gatherTime is how much later a change may be due that joins a group of others.
	gatherTime = 50 * time.Millisecond
	// maxDelayed bounds the resources that delayed changes are about: beyond it the oldest
	// changes are handled early.
	maxDelayed = 8192
	// idlePause is how long the follower waits for a change before it looks at what waits.
	idlePause = time.Second
)

// follower handles the changes of a shard.
type follower struct {
	r     *Reconciler
	shard int
	// ahead are the resources whose dependents were judged before the change that made them
	// ready was read, with the revision of that change.
	ahead map[backend.Key]backend.Revision
	// delayed are changes of other gateways, the oldest first, and waiting how many resources
	// they are about.
	delayed []delayed
	waiting int
	// rebinds says that references taken by other declarations may be replaced, if this
	// gateway's catalogue is the newest: the record has forgotten what they were judged by
	// before. A rebind has no log entry; a gateway whose catalogue is the newest afterwards
	// scans the kinds that the record has forgotten.
	rebinds atomic.Bool

	mu sync.Mutex // guards what follows
	// handled is up to where all changes were handled; zero for nowhere.
	handled backend.Position
	// lost says that changes are gone from the log: all kinds are to be scanned.
	lost bool
}

// delayed is a group of changes that are handled when they are due.
type delayed struct {
	due time.Time
	// before is the position before the first of them.
	before backend.Position
	of     consequences
}

// run follows the shard from where the record says that all changes were handled.
func (f *follower) run(ctx context.Context) error {
	rec, _, err := f.r.read(ctx, f.shard)
	if err != nil {
		return err
	}
	at, err := backend.ParsePosition(rec.Position)
	if err != nil || rec.Position == "" {
		at = backend.Position{}
	}
	f.delayed, f.waiting = nil, 0
	for {
		if at.IsZero() {
			if at, err = f.r.cfg.Store.Position(ctx); err != nil {
				return err
			}
			f.note(at, true)
		}
		at, err = f.follow(ctx, at)
		switch {
		case errors.Is(err, backend.ErrPositionExpired):
			f.r.log.Info("changes are gone from the log before they were handled: all kinds are scanned", zap.Int("shard", f.shard))
			at, f.delayed, f.waiting = backend.Position{}, nil, 0
		case errors.Is(err, backend.ErrLagged):
		default:
			return err
		}
	}
}

// note notes up to where all changes were handled.
func (f *follower) note(at backend.Position, lost bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled, f.lost = at, f.lost || lost
}

// follow handles the changes after a position, and returns the place
// that it came to.
func (f *follower) follow(ctx context.Context, at backend.Position) (backend.Position, error) {
	w, err := f.r.cfg.Hub.Watch(ctx, hub.Watch{From: at, Covers: f.covers})
	if err != nil {
		return at, err
	}
	defer w.Close()
	for {
		d, err := w.NextBefore(ctx, f.wakeAt())
		if err != nil && !errors.Is(err, hub.ErrIdle) {
			return at, err
		}
		now := consequences{}
		before := at
		if err != nil {
			at = w.Position()
		} else {
			at = d.Position
			f.route(d.Events, before, &now)
		}
		if err := f.r.retry(ctx, f.shard, "handling a change", func() error { return f.handle(ctx, now) }); err != nil {
			return at, err
		}
		if err := f.handleDue(ctx); err != nil {
			return at, err
		}
		f.note(f.begin(at), false)
	}
}

// begin is the position from which to go on: before what waits, or at.
func (f *follower) begin(at backend.Position) backend.Position {
	if len(f.delayed) > 0 {
		return f.delayed[0].before
	}
	return at
}

// wakeAt is when to look at what waits, if there is no change until then.
func (f *follower) wakeAt() time.Time {
	at := time.Now().Add(idlePause)
	if len(f.delayed) > 0 && f.delayed[0].due.Before(at) {
		return f.delayed[0].due
	}
	return at
}

// route sorts changes into those that are handled now and those that are delayed.
func (f *follower) route(events []backend.Event, before backend.Position, now *consequences) {
	for i := range events {
		e := &events[i]
		k, err := f.r.cfg.Kinds.Find(e.Resource.Kind)
		if err != nil {
			continue
		}
		age := f.r.cfg.Clock().Sub(e.Time)
		if strings.HasPrefix(e.RequestID, f.r.cfg.Tag) || age >= othersDelay || e.Resource.Declared != k.Declared {
			now.add(k, e, f.wasAhead(e))
			continue
		}
		due := time.Now().Add(othersDelay - max(age, 0))
		if n := len(f.delayed); n == 0 || due.Sub(f.delayed[n-1].due) > gatherTime {
			f.delayed = append(f.delayed, delayed{due: due.Add(rand.N(othersJitter)), before: before})
		}
		of := &f.delayed[len(f.delayed)-1].of
		was := of.len()
		of.add(k, e, f.wasAhead(e))
		of.drop()
		f.waiting += of.len() - was
	}
}

// handleDue handles the delayed changes that are due.
func (f *follower) handleDue(ctx context.Context) error {
	for len(f.delayed) > 0 && (f.waiting > maxDelayed || !f.delayed[0].due.After(time.Now())) {
		first := f.delayed[0].of
		err := f.r.retry(ctx, f.shard, "handling a change", func() error {
			of := first
			if err := f.load(ctx, &of); err != nil {
				return err
			}
			return f.handle(ctx, of)
		})
		if err != nil {
			return err
		}
		f.waiting -= first.len()
		f.delayed = f.delayed[1:]
	}
	return nil
}

// covers reports whether a change is of this shard and of a kind that is known.
func (f *follower) covers(key backend.Key) bool {
	if s, ok := f.r.cfg.Store.(backend.Sharder); ok && s.Shard(key.Namespace) != f.shard {
		return false
	}
	_, err := f.r.cfg.Kinds.Find(key.Kind)
	return err == nil
}
