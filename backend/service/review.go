package service

import (
	"context"
	"fmt"
	"maps"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/mirror"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// A resource service can review the writes of callers to a kind that it does not own (descriptor.Kind.Review). While
// the lock of the key is held, the gateway sends the service the resource that is about to be stored, as the dry run of
// a write.
//
//	reviewed      a create, an update, a patch, an upsert, an apply, and a dry run of these
//	not reviewed  changes that the service would not see (finalizers, expiry, field managers), a status,
//	              a delete, the end of a deletion, and writes of the gateway itself

// reviewTimeout bounds the review of a change.
const reviewTimeout = 2 * time.Second

// reviewRetryAfter is the number of seconds after which a client may repeat a write whose reviewer gave no answer.
const reviewRetryAfter = 2

// review asks the kind's reviewer, if there is one, to accept the next state. It adds the reviewer's warnings to the
// warnings of the attempt.
func (a *attempt) review(ctx context.Context) error {
	k := a.kind.Whole()
	if k.Review == "" || !a.isReviewed() {
		return nil
	}
	reviewer := a.writer.cfg.Owners[k.Review]
	if reviewer == nil {
		return a.unreviewed(&failure.Error{
			Code:    failure.CodeUnavailable,
			Setting: "services",
			Message: fmt.Sprintf("changes of kind %s are reviewed by the service %q, which this gateway does not know: "+
				"configure it under services; nothing was changed", k.Name, k.Review),
		})
	}
	w, err := a.reviewed()
	if err != nil {
		return err
	}
	answer, err := askReviewer(ctx, reviewer, w)
	if ctx.Err() == nil {
		a.writer.reviews.note(k.Review, answer, err)
	}
	switch {
	case err == nil && answer.Outcome == owner.Done:
		a.warnReviewed(answer.Warnings)
		return nil
	case err == nil && isRefusal(answer.Outcome):
		return mirror.Refusal(k.Review, a.key, answer, a.ownersPath)
	case ctx.Err() != nil:
		return failure.Of(ctx.Err(), a.key)
	}
	return a.unreviewed(&failure.Error{
		Code:       failure.CodeUnavailable,
		Retryable:  true,
		RetryAfter: reviewRetryAfter,
		Message: fmt.Sprintf("changes of kind %s are reviewed by the service %s, which gives no answer to that now; "+
			"nothing was changed: try again", k.Name, k.Review),
	})
}

// isReviewed reports whether the attempt changes anything that a reviewer would see.
func (a *attempt) isReviewed() bool {
	switch {
	case !a.changesCallersPart(), a.current != nil && a.current.Deleting:
		return false
	case a.was == nil || a.specChanged:
		return true
	}
	was := a.was.Meta
	next := a.next.Meta
	return was.Description != next.Description || !maps.Equal(was.Labels, next.Labels) ||
		!maps.Equal(was.Annotations, next.Annotations)
}

// reviewed returns the write that is sent to the reviewer, without the values of write-only fields. If the resource is
// new, IfAbsent is set; otherwise IfTag is the revision to be replaced.
func (a *attempt) reviewed() (owner.Write, error) {
	spec, err := jsontree.Append(nil, a.kind.Whole().Spec.Shown(a.next.Spec))
	if err != nil {
		return owner.Write{}, err
	}
	w := owner.Write{DryRun: true, Resource: owner.Resource{
		Key:         a.key,
		Labels:      a.next.Meta.Labels,
		Annotations: a.next.Meta.Annotations,
		Description: a.next.Meta.Description,
		Spec:        spec,
	}}
	if a.current == nil {
		w.IfAbsent = true
		return w, nil
	}
	w.IfTag = a.current.Revision.String()
	w.IfUID = a.current.UID
	return w, nil
}

// askReviewer sends a write to a reviewer. While it waits for the answer, the operation does not count as running, so
// that another operation can run.
func askReviewer(ctx context.Context, reviewer owner.Service, w owner.Write) (owner.Answer, error) {
	spent := budget.From(ctx)
	spent.BeginWait()
	defer spent.EndWait(ctx)
	ctx, cancel := context.WithTimeout(ctx, reviewTimeout)
	defer cancel()
	return reviewer.Write(ctx, w)
}

// unreviewed handles a change that could not be reviewed. If the kind allows such changes, unreviewed adds a warning
// and returns nil. Otherwise it returns err.
func (a *attempt) unreviewed(err *failure.Error) error {
	k := a.kind.Whole()
	if !k.ReviewAllowsFailure {
		return err.At(a.key)
	}
	a.warnings = append(a.warnings, failure.Warning{
		Code:    failure.WarningService,
		Message: fmt.Sprintf("the service %s did not review the change: it gave no answer, or the gateway does not know it", k.Review),
	})
	return nil
}

func (a *attempt) warnReviewed(warnings []owner.Violation) {
	for _, v := range warnings {
		a.warnings = append(a.warnings, failure.Warning{
			Code: failure.WarningService, Path: a.ownersPath(v.Path), Message: failure.ShortenPath(v.Message),
		})
	}
}

// isRefusal reports whether an outcome is a reviewer's decision against a change. Outcomes about stored resources, such
// as Conflict, are no decisions, because a reviewer stores no resources.
func isRefusal(outcome owner.Outcome) bool {
	return outcome == owner.Invalid || outcome == owner.Forbidden || outcome == owner.Refused
}

// reviews records the result of the latest review of each service. It is safe for concurrent use. The zero value is
// empty.
type reviews struct {
	mu sync.Mutex // guards all below
	// problems maps the name of a service to the reason why its latest review gave no decision; "" if it gave a
	// decision.
	problems map[string]string
}

func (r *reviews) note(service string, answer owner.Answer, err error) {
	problem := ""
	switch {
	case err != nil:
		problem = err.Error()
	case answer.Outcome != owner.Done && !isRefusal(answer.Outcome):
		problem = "it gave an answer that it must not give to a dry run: " + answer.Outcome.String()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.problems == nil {
		r.problems = map[string]string{}
	}
	r.problems[service] = problem
}

// last returns the reason why the latest review by a service gave no decision; "" if it gave a decision. reviewed is
// false if the service has reviewed nothing yet.
func (r *reviews) last(service string) (problem string, reviewed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	problem, reviewed = r.problems[service]
	return problem, reviewed
}

// Asks reports whether a resource service of this name is configured.
func (s *Service) Asks(service string) bool { return s.cfg.Owners[service] != nil }
