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
	// takeoverDelay is approximately how long other gateways wait before they handle the changes of a gateway. The last
	// change of a group may be handled up to gatherTime earlier.
	takeoverDelay = 500 * time.Millisecond
	// takeoverJitter is the maximum of a random time that is added, so that the other gateways do not all try at the
	// same time.
	takeoverJitter = 250 * time.Millisecond
	// gatherTime is the time within which changes are gathered into one group.
	gatherTime = 50 * time.Millisecond
	// maxDelayed is the maximum number of resources in delayed groups. If there are more, the oldest group is handled
	// early.
	maxDelayed = 8192
	// idlePause is how long the follower waits for a change before it checks the delayed groups.
	idlePause = time.Second
)

// follower handles the changes of a shard. Only the goroutine of run uses woken and delayed. Only the goroutine of
// maintain, which runs at the same time, uses waiting.
type follower struct {
	r     *Reconciler
	shard int
	// woken maps a resource to a revision, if this gateway has just made the resource ready by a write with this
	// revision and has re-evaluated its dependents. The event of the write then wakes no dependents again.
	woken map[backend.Key]backend.Revision
	// delayed are groups of changes by other gateways, the oldest first.
	delayed []delayedGroup
	// mayRebind is set once the record of the shard has only fingerprints of this gateway. Until then foreign
	// references are not changed, because a rebind has no log entry. If another catalogue became the newest later, a
	// gateway with that catalogue would find the rebound resource only by a scan. But it scans only kinds whose
	// fingerprints differ from its own.
	mayRebind atomic.Bool
	// waiting is the time since which scans wait for the index; zero if they do not wait.
	waiting time.Time

	mu sync.Mutex // guards all below
	// handled is the position up to which all changes were handled; zero if none were.
	handled backend.Position
	// scanAll is set when the log no longer has changes that were not handled. All kinds must then be scanned.
	scanAll bool
	// left has the kinds whose foreign references were not changed because mayRebind was not set. These kinds must be
	// scanned once mayRebind is set.
	left map[string]bool
}

// leave records that foreign references of a kind were not changed, so that the kind is scanned later.
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
	// before is the log position before the first change of the group.
	before backend.Position
	of     effects
}

// run follows the changes of the shard from the position in its record.
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

// forget drops woken and delayed.
func (f *follower) forget() {
	f.delayed, f.woken = nil, map[backend.Key]backend.Revision{}
}

func (f *follower) setHandled(at backend.Position, scanAll bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.handled, f.scanAll = at, f.scanAll || scanAll
}

// follow handles the changes after a position. It returns the last position up to which it has handled changes.
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

// maxCauses is the maximum number of links from a span to the changes that have caused it.
const maxCauses = 16

// trace begins a span for the effects of this gateway's changes, if a traced request has made one of the changes.
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

// nextDeadline returns the time at which the delayed groups must be checked if no change comes first.
func (f *follower) nextDeadline() time.Time {
	at := time.Now().Add(idlePause)
	if len(f.delayed) > 0 && f.delayed[0].due.Before(at) {
		return f.delayed[0].due
	}
	return at
}

// route adds the effects of changes to now, or to a delayed group.
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

// delayedCount returns the number of resources in the delayed groups.
func (f *follower) delayedCount() (n int) {
	for i := range f.delayed {
		n += f.delayed[i].of.len()
	}
	return n
}

// add adds the effects of the change e.
func (f *follower) add(to *effects, k *kind.Kind, e *backend.Event) {
	if e.Type != backend.Deleted && f.waitsForOtherShard(e.Resource) {
		to.changed = append(to.changed, e.Resource)
	}
	to.add(k, e, f.takeWoken(e))
}

// handleDue handles the delayed groups that are due.
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

// covers reports whether a key belongs to this shard and to a known kind.
func (f *follower) covers(key backend.Key) bool {
	if f.r.shardOf(key) != f.shard {
		return false
	}
	_, err := f.r.cfg.Kinds.Find(key.Kind)
	return err == nil
}
