package reconcile

import (
	"context"
	"errors"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/trace"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/span"
)

const (
	// takeoverDelay is the approximate time that a gateway has to handle its own change before
	// others do. A group may be handled up to gatherTime earlier for its last change.
	takeoverDelay = 500 * time.Millisecond
	// takeoverJitter is the random part added to it, so that not all others try at once.
	takeoverJitter = 250 * time.Millisecond
	// gatherTime is the span of changes that are handled as one group.
	gatherTime = 50 * time.Millisecond
	// maxDelayed limits the resources in delayed changes. Beyond it the oldest group is
	// handled early.
	maxDelayed = 8192
	// idlePause is how long the follower waits for a change before it checks the delayed
	// ones.
	idlePause = time.Second
)

// follower handles the changes of a shard. The goroutine of run owns woken and
// delayed; maintain runs beside it and owns waiting.
type follower struct {
	r     *Reconciler
	shard int
	// woken has resources whose dependents this gateway re-evaluated right after it made the
	// resource ready, with the revision of that write: the event of the write is skipped.
	woken map[backend.Key]backend.Revision
	// delayed are groups of changes of other gateways, the oldest first.
	delayed []delayedGroup
	// mayRebind is set once the record no longer has fingerprints other than this gateway's.
	// Until then foreign references stay: a rebind has no log entry, so a gateway whose
	// catalogue is the newest later finds it only by a scan, and it scans the kinds that are
	// not in the record.
	mayRebind atomic.Bool
	// waiting is the time since which scans wait for the index; zero if none waits.
	waiting time.Time

	mu sync.Mutex // guards all below
	// handled is the position up to which all changes were handled; zero for none.
	handled backend.Position
	// scanAll is set when changes are gone from the log: all kinds have to be scanned.
	scanAll bool
	// left are the kinds with foreign resources that were not changed because mayRebind was not
	// set. They have to be scanned once it is.
	left map[string]bool
}

// leave records that a foreign resource of a kind was not changed, so the kind no longer counts as
// scanned.
func (f *follower) leave(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.r.scanned.set(f.shard, false)
	if f.left == nil {
		f.left = map[string]bool{}
	}
	f.left[kind] = true
}

// delayedGroup is a group of changes that are handled when they are due.
type delayedGroup struct {
	due time.Time
	// before is the position before the first change of the group.
	before backend.Position
	of     effects
}

// run follows the shard from the position of its record.
func (f *follower) run(ctx context.Context) error {
	rec, _, err := f.r.read(ctx, f.shard)
	if err != nil {
		return err
	}
	at, err := backend.ParsePosition(rec.Position)
	if err != nil || rec.Position == "" {
		at = backend.Position{}
	}
	f.forget()
	for {
		if at.IsZero() {
			if at, err = f.r.cfg.Store.Position(ctx); err != nil {
				return err
			}
			f.setHandled(at, true)
		}
		at, err = f.follow(ctx, at)
		switch {
		case errors.Is(err, backend.ErrPositionExpired):
			f.r.log.Info("changes are gone from the log before they were handled: all kinds are scanned", zap.Int("shard", f.shard))
			at = backend.Position{}
			f.forget()
		case errors.Is(err, backend.ErrLagged):
		default:
			return err
		}
	}
}

// forget drops the remembered changes.
func (f *follower) forget() {
	f.delayed, f.woken = nil, map[backend.Key]backend.Revision{}
}

func (f *follower) setHandled(at backend.Position, scanAll bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled, f.scanAll = at, f.scanAll || scanAll
}

// follow handles the changes after a position, and returns how far it got.
func (f *follower) follow(ctx context.Context, at backend.Position) (backend.Position, error) {
	w, err := f.r.cfg.Hub.Watch(ctx, hub.Watch{From: at, Covers: f.covers})
	if err != nil {
		return at, err
	}
	defer w.Close()
	for {
		d, err := w.NextBefore(ctx, f.nextDeadline())
		idle := errors.Is(err, hub.ErrIdle)
		if err != nil && !idle {
			return at, err
		}
		now := effects{}
		before := at
		if idle {
			at = w.Position()
		} else {
			at = d.Position
			f.route(d.Events, before, &now)
		}
		within, traced := f.trace(ctx, d.Events, &now)
		err = f.r.retry(within, f.shard, "handling a change", func() error { return f.handle(within, now) })
		traced.End()
		if err != nil {
			return at, err
		}
		if err := f.handleDue(ctx); err != nil {
			return at, err
		}
		resume := at
		if len(f.delayed) > 0 {
			resume = f.delayed[0].before
		}
		f.setHandled(resume, false)
	}
}

// maxCauses is the most changes to which the span of what follows from them has links.
const maxCauses = 16

// trace begins the span of what follows from changes of this gateway, if one of them was made by a traced request.
func (f *follower) trace(ctx context.Context, events []backend.Event, now *effects) (context.Context, span.Span) {
	tracer := f.r.cfg.Tracer
	if tracer == nil || now.len() == 0 {
		return ctx, span.Span{}
	}
	var causes []string
	for i := range events {
		if !strings.HasPrefix(events[i].RequestID, f.r.cfg.Tag) || len(causes) == maxCauses {
			continue
		}
		if written := access.TraceOf(events[i].Actor); written != "" {
			causes = append(causes, written)
		}
	}
	ctx, traced := tracer.Linked(ctx, span.Follow, trace.SpanKindInternal, causes...)
	if traced.Recording() {
		traced.Set(span.Resources.Int(now.len()), span.Shard.Int(f.shard))
	}
	return ctx, traced
}

// nextDeadline returns the time at which to check the delayed changes if no change
// comes earlier.
func (f *follower) nextDeadline() time.Time {
	at := time.Now().Add(idlePause)
	if len(f.delayed) > 0 && f.delayed[0].due.Before(at) {
		return f.delayed[0].due
	}
	return at
}

// route adds changes to now, or delays them.
func (f *follower) route(events []backend.Event, before backend.Position, now *effects) {
	for i := range events {
		e := &events[i]
		k, err := f.r.cfg.Kinds.Find(e.Resource.Kind)
		if err != nil {
			continue
		}
		age := f.r.cfg.Clock().Sub(e.Time)
		ours := strings.HasPrefix(e.RequestID, f.r.cfg.Tag)
		foreign := e.Resource.Declared != k.Declared
		if ours || foreign || age >= takeoverDelay {
			f.add(now, k, e)
			continue
		}
		due := time.Now().Add(takeoverDelay - max(age, 0))
		if n := len(f.delayed); n == 0 || due.Sub(f.delayed[n-1].due) > gatherTime {
			f.delayed = append(f.delayed, delayedGroup{due: due.Add(rand.N(takeoverJitter)), before: before})
		}
		last := &f.delayed[len(f.delayed)-1]
		f.add(&last.of, k, e)
		last.of.keepKeys()
	}
}

// delayedCount returns the number of resources in the delayed changes.
func (f *follower) delayedCount() (n int) {
	for i := range f.delayed {
		n += f.delayed[i].of.len()
	}
	return n
}

// add adds the effects of a change to to.
func (f *follower) add(to *effects, k *kind.Kind, e *backend.Event) {
	if e.Type != backend.Deleted && f.waitsForOtherShard(e.Resource) {
		to.changed = append(to.changed, e.Resource)
	}
	to.add(k, e, f.takeWoken(e))
}

// handleDue handles the delayed changes that are due.
func (f *follower) handleDue(ctx context.Context) error {
	for len(f.delayed) > 0 && (f.delayedCount() > maxDelayed || !f.delayed[0].due.After(time.Now())) {
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
		f.delayed = f.delayed[1:]
	}
	return nil
}

// covers reports whether a key is in this shard and of a known kind.
func (f *follower) covers(key backend.Key) bool {
	if f.r.shardOf(key) != f.shard {
		return false
	}
	_, err := f.r.cfg.Kinds.Find(key.Kind)
	return err == nil
}
