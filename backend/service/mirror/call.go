package mirror

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/internal/wait"
)

// The shortest and the longest pause before a request whose answer was lost is sent again.
const (
	minResendPause = 50 * time.Millisecond
	maxResendPause = time.Second
)

// retryAfter is the number of seconds after which a client may repeat a request if a service cannot be reached.
const retryAfter = 2

// Write sends a write to the service on behalf of the caller of ctx. If the answer is lost, it sends the write again
// until ctx ends. It does not send a write without a condition again, because the write could be applied twice. The
// error is meant for the caller. It is UNAVAILABLE if the service was not reached. It has the outcome UNKNOWN if it
// cannot be known whether the write was applied.
//
// If the answer to a later attempt is Done, the write is applied now, whatever happened to the first attempt. If the
// answer is another one and the resource has the id of the write, the first attempt was applied. Otherwise the outcome
// is UNKNOWN, because the first attempt may have been applied and replaced since.
func (m *Mirror) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	key := w.Resource.Key
	conditional := w.IfAbsent || w.IfTag != ""
	ctx, cancel := limited(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return owner.Answer{}, failure.Of(ctx.Err(), key)
	}
	backoff := wait.Backoff{Least: minResendPause, Most: maxResendPause}
	for lost := false; ; {
		w.Resent = lost
		a, err := call(ctx, func() (owner.Answer, error) { return m.service.Write(ctx, w) })
		m.noteAnswer(ctx, otherCall, err)
		switch {
		case err == nil && (!lost || a.Outcome == owner.Done):
			return a, nil
		case err == nil:
			return m.settle(ctx, w, a)
		case w.DryRun || !lost && errors.Is(err, owner.ErrNotSent):
			return a, m.unavailable(key, err)
		case !lost && errors.Is(err, owner.ErrUnimplemented):
			return a, m.unimplemented(key)
		case !errors.Is(err, owner.ErrNotSent):
			lost = true
			m.looks.add(key) // the write may have been applied, whatever error the caller gets
		}
		if !conditional {
			return m.settle(ctx, w, owner.Answer{})
		}
		if !backoff.Wait(ctx) {
			return a, m.unknown(key)
		}
	}
}

// askLimit bounds the time for all attempts to send a change, if the request has no deadline.
const askLimit = 30 * time.Second

// limited adds a deadline to ctx if it has none.
func limited(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, has := ctx.Deadline(); has {
		return context.WithCancel(ctx)
	}
	return context.WithTimeout(ctx, askLimit)
}

// call calls a service. While it waits for the answer, the operation does not count as running, so that another
// operation can run.
func call[T any](ctx context.Context, do func() (T, error)) (T, error) {
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	return do()
}

// settle finds out, after the answer to a write was lost, whether the write was applied. It is called if no later
// attempt was answered with Done. If the resource has the id of the write, the write was applied. Otherwise the outcome
// is UNKNOWN. a is the answer to the last attempt; zero if there was none.
func (m *Mirror) settle(ctx context.Context, w owner.Write, a owner.Answer) (owner.Answer, error) {
	now := a.Resource
	if now == nil || now.WriteID != w.Resource.WriteID {
		got, err := m.get(ctx, []backend.Key{w.Resource.Key})
		if err != nil {
			return a, m.unknown(w.Resource.Key)
		}
		now = got[0].Resource
	}
	if now == nil || now.WriteID != w.Resource.WriteID {
		return a, m.unknown(w.Resource.Key)
	}
	return owner.Answer{Outcome: owner.Done, Resource: now}, nil
}

// Delete sends a delete to the service on behalf of the caller of ctx. If the answer is lost, it sends the delete again
// until ctx ends. It does not send a delete without a condition again, because it could delete a newer resource of the
// same name.
//
// requested reports whether the record already says that the deletion was requested. If it does, an absent resource
// counts as deleted. If it does not and an answer was lost, an absent resource makes the outcome UNKNOWN.
func (m *Mirror) Delete(ctx context.Context, d owner.Delete, requested bool) (owner.Answer, error) {
	conditional := d.IfUID != "" || d.IfTag != ""
	ctx, cancel := limited(ctx)
	defer cancel()
	if ctx.Err() != nil {
		return owner.Answer{}, failure.Of(ctx.Err(), d.Key)
	}
	backoff := wait.Backoff{Least: minResendPause, Most: maxResendPause}
	d.ID = m.cfg.NewID()
	for lost := false; ; {
		d.Resent = lost
		a, err := call(ctx, func() (owner.Answer, error) { return m.service.Delete(ctx, d) })
		m.noteAnswer(ctx, otherCall, err)
		switch {
		case err == nil && a.Outcome == owner.Absent && requested && !d.DryRun:
			return owner.Answer{Outcome: owner.Done}, nil
		case err == nil && lost && a.Outcome != owner.Done && a.Outcome != owner.Waits:
			return a, m.unknown(d.Key)
		case err == nil:
			return a, nil
		case d.DryRun || !lost && errors.Is(err, owner.ErrNotSent):
			return a, m.unavailable(d.Key, err)
		case !lost && errors.Is(err, owner.ErrUnimplemented):
			return a, m.unimplemented(d.Key)
		case !errors.Is(err, owner.ErrNotSent):
			lost = true
			m.looks.add(d.Key)
		}
		if !conditional || !backoff.Wait(ctx) {
			return a, m.unknown(d.Key)
		}
	}
}

// maxMessage is the maximum number of bytes of a service's message that an error contains.
const maxMessage = 1 << 10

func shortened(message string) string {
	if len(message) > maxMessage {
		return strings.ToValidUTF8(message[:maxMessage], "") + "…"
	}
	return message
}

// unavailable returns the error for a service that was not reached.
func (m *Mirror) unavailable(key backend.Key, cause error) error {
	if known, ok := errors.AsType[*failure.Error](cause); ok {
		return known
	}
	return (&failure.Error{
		Code:       failure.CodeUnavailable,
		Retryable:  true,
		RetryAfter: retryAfter,
		Message: "the service " + m.name + ", which has the resource, cannot be asked now; nothing was changed: " +
			"try again",
	}).At(key)
}

// unimplemented returns the error for a service that accepts no writes.
func (m *Mirror) unimplemented(key backend.Key) error {
	return (&failure.Error{
		Code:    failure.CodeUnavailable,
		Message: "the service " + m.name + ", which has the resource, does not take this call; nothing was changed",
	}).At(key)
}

// explained converts the error of a resource that cannot be stored to UNREADABLE. It returns other errors unchanged.
func (m *Mirror) explained(key backend.Key, err error) error {
	if _, known := errors.AsType[*failure.Error](err); known || !isUnstorable(err) {
		return err
	}
	return (&failure.Error{
		Code: failure.CodeUnreadable,
		Message: "the service " + m.name + " shows " + failure.Describe(key) + " in a form that cannot be stored here: " +
			shortened(err.Error()),
	}).At(key)
}

// unknown returns the error of a change that may or may not have been applied.
func (m *Mirror) unknown(key backend.Key) error {
	return (&failure.Error{
		Code:    failure.CodeUnavailable,
		Outcome: failure.OutcomeUnknown,
		Message: "the answer of the service " + m.name + " to the change was lost; it may or may not have been made: " +
			"read before you send it again",
	}).At(key)
}

// Refusal calls the function [Refusal] for the mirror's service.
func (m *Mirror) Refusal(key backend.Key, a owner.Answer, pathOf func(string) string) error {
	return Refusal(m.name, key, a, pathOf)
}

// Refusal returns the error for a change that a service has refused. pathOf translates the path of a field to the names
// of the caller.
func Refusal(service string, key backend.Key, a owner.Answer, pathOf func(string) string) error {
	message := shortened(a.Message)
	switch a.Outcome {
	case owner.Invalid:
		e := &failure.Error{
			Code:    failure.CodeValidationFailed,
			Message: "the service " + service + " does not accept " + failure.Describe(key),
		}
		for _, v := range a.Violations {
			e.Violations = append(e.Violations, failure.Violation{
				Path: pathOf(v.Path), Rule: failure.Shorten(v.Rule), Message: shortened(v.Message),
			})
		}
		if len(a.Violations) == 0 {
			e.Message += ": " + message
		}
		return e.At(key)
	case owner.Forbidden:
		return (&failure.Error{
			Code:    failure.CodeForbidden,
			Message: "the service " + service + " forbids the change: " + message,
		}).At(key)
	case owner.Refused: // not a CONFLICT, after which clients read again and repeat the change
		return (&failure.Error{
			Code:    failure.CodeForbidden,
			Message: "the service " + service + " refuses the change: " + message,
		}).At(key)
	}
	return &failure.Error{Code: failure.CodeInternal, Message: "the service " + service + " gave an answer that " +
		"it must not give: " + a.Outcome.String()}
}
