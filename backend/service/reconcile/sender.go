package reconcile

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/internal/wait"
)

// ErrLost is returned for a batch that was lost on the way to the store: it was not applied
// and never will be, so the write may be judged and sent again.
var ErrLost = errors.New("lost on the way to the store")

// settleGrace is how much later than its deadline a batch counts as refused:
// more than the store's clock is ever estimated wrong.
const settleGrace = 250 * time.Millisecond

// Pauses between two tries to reach the store while an attempt is settled.
const (
	minSettlePause = 50 * time.Millisecond
	maxSettlePause = time.Second
)

// Raced reports whether a batch about a resource failed because another writer came in
// between: at the resource, at its sensitive values, or at what it refers to.
func Raced(err error, key backend.Key) bool {
	var failed *backend.ConditionError
	return errors.Is(err, backend.ErrConflict) || errors.As(err, &failed) && failed.Key != key
}

// Sender applies batches and finds out what became of those whose answers were lost. All exported fields are required. Safe for concurrent use.
type Sender struct {
	Store backend.Store
	Hub   *hub.Hub
	// Clock is the store's, or the gateway's.
	Clock func() time.Time
	// Tag begins the request ids of this sender's batches.
	Tag string
	// WriteTimeout is how long the store may take to begin a batch.
	WriteTimeout time.Duration
	// SettleTimeout is how long it may take to find out what became of a batch.
	SettleTimeout time.Duration

	requests atomic.Uint64 // counts the request ids
}

// Apply sends actions in one batch, with a fresh request id and a deadline, and finds out
// what became of it. [backend.ErrUnknown] means that nobody can tell, and ErrLost that the
// batch was lost on the way and not applied. After any other error, also one of the context,
// nothing was applied.
func (s *Sender) Apply(ctx context.Context, actions ...backend.Action) (backend.Result, error) {
	return s.ApplyBy(ctx, s.Clock().Add(s.WriteTimeout), actions...)
}

// ApplyBy is Apply with the instant, by the store's clock, up to which the store may begin.
func (s *Sender) ApplyBy(ctx context.Context, deadline time.Time, actions ...backend.Action) (res backend.Result, err error) {
	spent := budget.From(ctx)
	spent.Leave()
	defer spent.Return(ctx)
	t := &attempt{Sender: s, from: s.Hub.Position(), events: make([]*backend.Event, len(actions))}
	if t.from.IsZero() {
		if t.from, err = s.Store.Position(ctx); err != nil {
			return res, err
		}
	}
	t.batch = backend.Batch{RequestID: s.Tag + strconv.FormatUint(s.requests.Add(1), 36), Actor: access.ActorFrom(ctx).String(), Deadline: deadline, Actions: actions}
	if res, err = s.Store.Apply(ctx, t.batch); errors.Is(err, backend.ErrUnknown) {
		res, err = t.settle(ctx, err)
	}
	return res, err
}

// attempt is one batch on its way to the store. If its answer is lost, the log
// after the place where it began says what became of it: past the deadline the
// store refuses it, so that what the log does not show then was not applied.
type attempt struct {
	*Sender
	batch backend.Batch
	// from is how far the log was read.
	from backend.Position
	// events are what the log showed of the batch, parallel to its actions.
	events []*backend.Event
}

// settle finds out what became of a batch whose answer is unknown: the result,
// ErrLost, or the error that it was given if nobody can tell.
func (t *attempt) settle(ctx context.Context, unknown error) (backend.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, t.SettleTimeout)
	defer cancel()
	for pause := minSettlePause; ; pause = min(2*pause, maxSettlePause) {
		var settled bool
		var err error
		if !t.found() {
			settled, err = t.look(ctx)
		}
		if err == nil && t.found() {
			if err = t.sync(ctx); err == nil {
				return t.result(), nil
			}
		}
		switch {
		case err == nil && settled:
			return backend.Result{}, ErrLost
		case ctx.Err() != nil, errors.Is(err, backend.ErrPositionExpired), errors.Is(err, backend.ErrClosed):
			return backend.Result{}, unknown
		case err == nil:
			continue // the deadline has passed meanwhile
		case !wait.For(ctx, pause):
			return backend.Result{}, unknown
		}
	}
}

// look reads the log until the batch is found, or up to its head if that was
// taken after the batch's deadline: then it is settled that it never will be.
// Before that it waits for the deadline and returns.
func (t *attempt) look(ctx context.Context) (settled bool, err error) {
	left := t.batch.Deadline.Add(settleGrace).Sub(t.Clock())
	w, err := t.Hub.Watch(ctx, hub.Watch{From: t.from, Covers: t.covers, Namespaces: []string{t.batch.Namespace()}})
	if err != nil {
		return false, err
	}
	defer w.Close()
	patience := ctx
	if left > 0 {
		var cancel context.CancelFunc
		patience, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	for !t.found() {
		d, err := w.Next(patience)
		if err != nil && ctx.Err() == nil && patience.Err() != nil && errors.Is(err, patience.Err()) {
			return false, nil
		}
		if err != nil {
			return false, err
		}
		t.note(d.Events)
		t.from = d.Position
		if d.CaughtUp && left <= 0 {
			return true, nil
		}
	}
	return false, nil
}

func (t *attempt) covers(key backend.Key) bool {
	return slices.ContainsFunc(t.batch.Actions, func(a backend.Action) bool { return a.Key == key })
}

// note remembers what the batch did. A put where an expired resource was has
// deleted that first, which is not its result.
func (t *attempt) note(events []backend.Event) {
	for i := range events {
		e := &events[i]
		if e.RequestID != t.batch.RequestID {
			continue
		}
		for j, a := range t.batch.Actions {
			if a.Key == e.Resource.Key && (a.Op == backend.OpDelete) == (e.Type == backend.Deleted) {
				t.events[j] = e
			}
		}
	}
}

// found says whether the log showed all that the batch does to resources; it has
// no entries of internal records.
func (t *attempt) found() bool {
	for i, a := range t.batch.Actions {
		if t.events[i] == nil && !a.Key.Internal() && (a.Op == backend.OpPut || a.Op == backend.OpDelete) {
			return false
		}
	}
	return true
}

// sync makes what was found as durable as an acknowledged batch.
func (t *attempt) sync(ctx context.Context) error {
	if syncer, ok := t.Store.(backend.Syncer); ok {
		return syncer.Sync(ctx, t.batch.Namespace())
	}
	return nil
}

// result is what the store would have answered, but for checks.
func (t *attempt) result() backend.Result {
	res := backend.Result{Resources: make([]*backend.Resource, len(t.events)), Revisions: make([]backend.Revision, len(t.events)), Position: t.from}
	for i, e := range t.events {
		if e != nil {
			res.Resources[i], res.Revisions[i] = e.Resource, e.Revision
		}
	}
	return res
}
