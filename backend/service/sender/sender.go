// Package sender sends batches to a store. If the answer to a batch is lost, the sender finds out whether the batch was
// applied.
package sender

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

// ErrLost means that a batch did not reach the store in time. It was not applied and never will be, so the same write
// can be attempted again.
var ErrLost = errors.New("lost on the way to the store")

// refusalGrace is the time after the deadline of a batch from which the store certainly refuses the batch. It is longer
// than the error of the gateway's estimate of the store's clock.
const refusalGrace = 250 * time.Millisecond

// The shortest and the longest pause between two attempts to find out the outcome of a batch.
const (
	minOutcomePause = 50 * time.Millisecond
	maxOutcomePause = time.Second
)

// Raced reports whether a batch about a resource failed because another writer has
// changed the resource, its sensitive values or a target of its references.
func Raced(err error, key backend.Key) bool {
	var failed *backend.ConditionError
	return errors.Is(err, backend.ErrConflict) || errors.As(err, &failed) && failed.Key != key
}

// Sender sends batches. All exported fields are required. It is safe for concurrent use.
type Sender struct {
	Store backend.Store
	Hub   *hub.Hub
	// Clock returns the time of the store's clock.
	Clock func() time.Time
	// Tag is the prefix of the request ids of this sender's batches.
	Tag string
	// WriteTimeout is the time within which the store must begin a batch.
	WriteTimeout time.Duration
	// OutcomeTimeout is the maximum time for finding out whether a batch was applied.
	OutcomeTimeout time.Duration

	requests atomic.Uint64 // counts the request ids
}

// Apply sends actions as one batch, with a new request id and a deadline. If the answer is lost, Apply finds out
// whether the batch was applied. It returns ErrLost if the batch was not applied, and [backend.ErrUnknown] if it cannot
// find this out. After any other error, including an error of ctx, nothing was applied.
func (s *Sender) Apply(ctx context.Context, actions ...backend.Action) (backend.Result, error) {
	return s.ApplyBy(ctx, s.Clock().Add(s.WriteTimeout), actions...)
}

// ApplyBy is like Apply, but the caller chooses the deadline. The deadline is the time, by the store's clock, until
// which the store may begin the batch.
func (s *Sender) ApplyBy(
	ctx context.Context, deadline time.Time, actions ...backend.Action,
) (res backend.Result, err error) {
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	t := &attempt{Sender: s, from: s.Hub.Position(), events: make([]*backend.Event, len(actions))}
	if t.from.IsZero() {
		if t.from, err = s.Store.Position(ctx); err != nil {
			return res, err
		}
	}
	t.batch = backend.Batch{
		RequestID: s.Tag + strconv.FormatUint(s.requests.Add(1), 36),
		Actor:     access.ActorFrom(ctx).String(),
		Deadline:  deadline,
		Actions:   actions,
	}
	if res, err = s.Store.Apply(ctx, t.batch); errors.Is(err, backend.ErrUnknown) &&
		!errors.Is(err, backend.ErrFormat) {
		res, err = t.outcome(ctx, err)
	}
	return res, err
}

// attempt is a batch on its way to the store. If its answer is lost, the log shows what became of it:
//
//	the attempt begins      its answer is lost         its deadline + refusalGrace
//	------- from ----------------- outcome ---------------------- | --------------->
//	             the log has it: applied, the answer is rebuilt   |  it is not in the log:
//	             not yet in the log: look waits                   |  the store refuses it, ErrLost
type attempt struct {
	*Sender
	batch backend.Batch
	// from is the position up to which the log was read.
	from backend.Position
	// events has the log entry of each action of the batch; nil for actions whose entry was not found yet.
	events []*backend.Event
}

// outcome returns the result of a batch whose answer was lost, or ErrLost if the batch was not applied. If it cannot
// find this out, for example because the batch has no log entries, it returns the error unknown.
func (t *attempt) outcome(ctx context.Context, unknown error) (backend.Result, error) {
	if !slices.ContainsFunc(t.batch.Actions, isLogged) {
		return backend.Result{}, unknown
	}
	ctx, cancel := context.WithTimeout(ctx, t.OutcomeTimeout)
	defer cancel()
	backoff := wait.Backoff{Least: minOutcomePause, Most: maxOutcomePause}
	for {
		var lost bool
		var err error
		if !t.found() {
			lost, err = t.look(ctx)
		}
		if err == nil && t.found() {
			if syncer, ok := t.Store.(backend.Syncer); ok { // as durable as a batch that was acknowledged
				err = syncer.Sync(ctx, t.batch.Namespace())
			}
			if err == nil {
				return t.result(), nil
			}
		}
		switch {
		case err == nil && lost:
			return backend.Result{}, ErrLost
		case ctx.Err() != nil, errors.Is(err, backend.ErrPositionExpired), errors.Is(err, backend.ErrClosed):
			return backend.Result{}, unknown
		case err == nil:
			continue // the deadline has passed meanwhile
		case !backoff.Wait(ctx):
			return backend.Result{}, unknown
		}
	}
}

// look reads the log until it finds the batch. After the deadline of the batch, look reads up to the end of the log. If
// it does not find the batch there, the batch is lost. Before the deadline it returns when the deadline has passed, and
// must be called again.
func (t *attempt) look(ctx context.Context) (lost bool, err error) {
	left := t.batch.Deadline.Add(refusalGrace).Sub(t.Clock())
	covers := func(key backend.Key) bool {
		return slices.ContainsFunc(t.batch.Actions, func(a backend.Action) bool { return a.Key == key })
	}
	w, err := t.Hub.Watch(ctx, hub.Watch{From: t.from, Covers: covers, Namespaces: []string{t.batch.Namespace()}})
	if err != nil {
		return false, err
	}
	defer w.Close()
	waiting := ctx
	if left > 0 {
		var cancel context.CancelFunc
		waiting, cancel = context.WithTimeout(ctx, left)
		defer cancel()
	}
	for !t.found() {
		d, err := w.Next(waiting)
		if err != nil && ctx.Err() == nil && waiting.Err() != nil && errors.Is(err, waiting.Err()) {
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

// note records the log entries of the batch. A put that replaces an expired resource first logs the deletion of the
// expired resource, which does not belong to the result.
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

// isLogged reports whether an action has a log entry. Actions on internal records and rebinds have no entry.
func isLogged(a backend.Action) bool {
	return !a.Key.Internal() && (a.Op == backend.OpPut || a.Op == backend.OpDelete)
}

// found reports whether the log entries of all actions were found.
func (t *attempt) found() bool {
	for i, a := range t.batch.Actions {
		if t.events[i] == nil && isLogged(a) {
			return false
		}
	}
	return true
}

// result returns the result that the store would have returned. It has nothing for checks.
func (t *attempt) result() backend.Result {
	res := backend.Result{
		Resources: make([]*backend.Resource, len(t.events)),
		Revisions: make([]backend.Revision, len(t.events)),
		Position:  t.from,
	}
	for i, e := range t.events {
		if e != nil {
			res.Resources[i], res.Revisions[i] = e.Resource, e.Revision
		}
	}
	return res
}
