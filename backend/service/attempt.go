package service

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/internal/wait"
)

// errLost says that the answer to a write was lost and that it is settled: the
// write was not applied and never will be, so that it may be judged and sent anew.
var errLost = errors.New("lost on the way to the store")

// settleGrace is how much later than its deadline a batch counts as refused:
// more than the store's clock is ever estimated wrong.
const settleGrace = 250 * time.Millisecond

// Pauses between two tries to reach the store while an attempt is settled.
const (
	minSettlePause = 50 * time.Millisecond
	maxSettlePause = time.Second
)

// attempt is one batch on its way to the store. If its answer is lost, the log
// after the place where it began says what became of it: past the deadline the
// store refuses it, so that what the log does not show then was not applied.
type attempt struct {
	service *Service
	store   backend.Store
	batch   backend.Batch
	// from is how far the log was read.
	from backend.Position
	// events are what the log showed of the batch, parallel to its actions.
	events []*backend.Event
}

// apply sends actions in one batch, with a fresh request id and a deadline, and finds out
// what became of it. [backend.ErrUnknown] says that this is not possible, and
// errLost that it was not applied for no fault of its own. Any other error, that
// of the context too, says that nothing was applied.
func (s *Service) apply(ctx context.Context, actions ...backend.Action) (backend.Result, error) {
	return s.applyBy(ctx, s.cfg.Clock().Add(s.cfg.WriteTimeout), actions...)
}

// applyBy is apply with the instant, by the store's clock, up to which the store may begin.
func (s *Service) applyBy(ctx context.Context, deadline time.Time, actions ...backend.Action) (res backend.Result, err error) {
	spent := budget.From(ctx)
	spent.Leave()
	defer spent.Return(ctx)
	t := &attempt{service: s, store: s.cfg.Store, from: s.hub.Position()}
	if t.from.IsZero() {
		if t.from, err = t.store.Position(ctx); err != nil {
			return res, err
		}
	}
	t.batch = backend.Batch{RequestID: s.tag + strconv.FormatUint(s.requests.Add(1), 36), Deadline: deadline, Actions: actions}
	t.events = make([]*backend.Event, len(t.batch.Actions))
	if res, err = t.store.Apply(ctx, t.batch); errors.Is(err, backend.ErrUnknown) {
		res, err = t.settle(ctx, err)
	}
	return res, err
}

// settle finds out what became of a batch whose answer is unknown: the result,
// errLost, or the error that it was given if nobody can tell.
func (t *attempt) settle(ctx context.Context, unknown error) (backend.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, t.service.cfg.SettleTimeout)
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
			return backend.Result{}, errLost
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
	left := t.batch.Deadline.Add(settleGrace).Sub(t.service.cfg.Clock())
	w, err := t.service.hub.Watch(ctx, hub.Watch{From: t.from, Covers: t.covers, Namespaces: []string{t.batch.Actions[0].Key.Namespace}, Reserved: true})
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
	if syncer, ok := t.store.(backend.Syncer); ok {
		return syncer.Sync(ctx, t.batch.Actions[0].Key.Namespace)
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
