package service

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/mirror"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// This file writes resources of kinds that services of other teams own. The store has a record of each resource, which
// mirrors the owner's resource. Such a write has the same phases as other writes, up to commit: the caller is
// authorized, and the write is validated against the kind and the references of the record. Then commitOwned asks the
// owner to make the change, while it holds the lock of the key.

// isOwned reports whether a service owns the kind.
func (w *write) isOwned() bool { return w.kind.Whole().Service != "" }

// commitOwned sends the next state to the owner, and stores the resource that the owner returns.
func (a *attempt) commitOwned(ctx context.Context) (*backend.Resource, error) {
	own, err := a.actions() // fails if the resource is too large
	if err != nil {
		return nil, err
	}
	k := a.kind.Whole()
	m, err := a.writer.mirrors.Of(k)
	if err != nil {
		return nil, err
	}
	can, err := m.Abilities(ctx, k, a.key)
	if err != nil {
		return nil, err
	}
	if a.dryRun && (!can.DryRun || a.writer.cfg.ReadOnly) {
		a.warnings = append(a.warnings, failure.Warning{
			Code:    failure.WarningService,
			Message: "the service " + k.Service + " was not asked: it may refuse the change, or make something else of it",
		})
		return a.wouldStore(own)
	}
	w, err := a.ownedWrite(ctx, m, can)
	if err != nil {
		return nil, err
	}
	calledAt := time.Now()
	answer, err := m.Write(ctx, w)
	if err != nil {
		return nil, err
	}
	for _, v := range answer.Warnings {
		a.warnings = append(a.warnings, failure.Warning{
			Code: failure.WarningService, Path: a.ownersPath(v.Path), Message: failure.ShortenPath(v.Message),
		})
	}
	switch answer.Outcome {
	case owner.Done:
	case owner.Conflict, owner.Absent, owner.Exists: // the record is behind
		return nil, a.raced(ctx, m, answer.Outcome)
	default:
		return nil, m.Refusal(a.key, answer, a.ownersPath)
	}
	made := mirror.Answered{
		Kind: k, Key: a.key, CalledAt: calledAt, Write: w, Resource: answer.Resource,
		Edit: mirror.Edit{Managers: a.next.Meta.Managers},
	}
	if a.current != nil {
		made.Stored = a.current.Resource
	}
	switch {
	case !a.dryRun:
		return m.Store(ctx, made)
	case made.Resource == nil:
		return a.wouldStore(own)
	}
	if own, err = m.Preview(ctx, made); err != nil {
		return nil, err
	}
	return a.wouldStore(own)
}

// ownedWrite returns the request to the owner. The owner accepts the request only if its resource still has the version
// that the record mirrors.
func (a *attempt) ownedWrite(ctx context.Context, m *mirror.Mirror, can owner.Kind) (owner.Write, error) {
	tree := a.next.Spec
	if can.Partial { // another gateway may have mirrored more
		tree = a.kind.Whole().Spec.Known(tree)
	}
	spec, err := jsontree.Append(nil, tree)
	if err != nil {
		return owner.Write{}, err
	}
	w := owner.Write{DryRun: a.dryRun, Resource: owner.Resource{
		Key:         a.key,
		WriteID:     a.writer.cfg.NewID(),
		Labels:      a.next.Meta.Labels,
		Annotations: a.next.Meta.Annotations,
		Description: a.next.Meta.Description,
		Spec:        spec,
	}}
	switch {
	case a.current == nil:
		w.IfAbsent = true
		return w, nil
	case a.was == nil || a.was.Meta.Owner == nil: // the owner's version is not known
		return w, a.refresh(ctx, m)
	case !can.Conditional && a.expected != nil:
		return w, failure.BadInput("expectedRevision", "expectedRevision: the service %s cannot make a change on the "+
			"condition of a revision; leave it out", a.kind.Whole().Service).At(a.key)
	case !can.Conditional:
		return w, nil
	case a.was.Meta.Owner.Tag == "":
		return w, a.refresh(ctx, m)
	}
	w.IfTag = a.was.Meta.Owner.Tag
	if a.was.Meta.Owner.UID {
		w.IfUID = a.current.UID
	}
	return w, nil
}

// refresh updates the record from the owner, so that the next attempt starts from the owner's current version. It never
// returns nil. If the record has changed, it returns [backend.ErrConflict], after which the write is attempted again.
func (a *attempt) refresh(ctx context.Context, m *mirror.Mirror) error {
	now, err := m.Refresh(ctx, a.key, nil)
	switch {
	case err != nil:
		return failure.Of(err, a.key)
	case now != nil && now.Revision == a.current.Revision:
		return (&failure.Error{
			Code: failure.CodeUnavailable,
			Message: "the service " + a.kind.Whole().Service + " shows no tag of the resource, although it says that it " +
				"makes conditional changes; nothing was changed",
		}).At(a.key)
	}
	return backend.ErrConflict
}

// raced updates the record from the owner after the owner has refused an attempt because its resource has another
// version. It returns the error for the attempt.
func (a *attempt) raced(ctx context.Context, m *mirror.Mirror, outcome owner.Outcome) error {
	now, err := m.Refresh(ctx, a.key, nil)
	if err != nil {
		return err
	}
	if outcome == owner.Exists && now != nil {
		return &backend.ConditionError{Key: a.key, Err: backend.ErrExists, Current: now}
	}
	var was *backend.Resource
	if a.current != nil {
		was = a.current.Resource
	}
	if err := a.contradicted(was, now, outcome); err != nil {
		return err
	}
	return backend.ErrConflict
}

// maxBaseless is the number of contradictory answers of an owner after which a write fails: see contradicted.
const maxBaseless = 3

// contradicted detects an owner that contradicts itself: it refuses a change because its resource has another version,
// and then shows the version that the change expected. was and now are the records before and after the refusal. After
// maxBaseless such answers contradicted returns UNAVAILABLE, which ends the attempts.
func (w *write) contradicted(was, now *backend.Resource, outcome owner.Outcome) error {
	if !isSameVersion(was, now) {
		return nil
	}
	w.baseless++
	if w.baseless < maxBaseless {
		return nil
	}
	return (&failure.Error{
		Code: failure.CodeUnavailable,
		Message: fmt.Sprintf("the service %s answers %s to the change, and then shows the resource as the change expects it; "+
			"nothing was changed", w.kind.Whole().Service, outcome),
	}).At(w.key)
}

// isSameVersion reports whether two records mirror the same version of a resource, or both are nil. It does not compare
// parts that only the gateway writes.
func isSameVersion(a, b *backend.Resource) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	if a.Revision == b.Revision {
		return true
	}
	one, err := kind.StateOf(a)
	if err != nil || one.Meta.Owner == nil {
		return false
	}
	other, err := kind.StateOf(b)
	if err != nil || other.Meta.Owner == nil {
		return false
	}
	return a.UID == b.UID && one.Meta.Owner.Tag != "" && one.Meta.Owner.Tag == other.Meta.Owner.Tag
}

// replaceUnreadable overwrites a record that does not decode with the owner's resource. It returns errRaced, so that
// the write is attempted again, or an error if the record could not be replaced.
func (w *write) replaceUnreadable(ctx context.Context) error {
	m, err := w.writer.mirrors.Of(w.kind.Whole())
	if err != nil {
		return err
	}
	return w.refreshed(ctx, m)
}

// ownersPath translates the path of a field from the names of the owner to the names of the caller.
func (w *write) ownersPath(path string) string {
	if path == "" {
		path = "spec"
	}
	return failure.ShortenPath(w.kind.Path(path).Text(w.names))
}

// answerUnchanged returns the answer to a write that changes nothing. If a service owns the kind, it first compares the
// record with the owner, and returns errRaced if the record was outdated.
func (a *attempt) answerUnchanged(ctx context.Context) (*Written, error) {
	if !a.isOwned() || a.dryRun {
		return a.unchanged(), nil
	}
	m, err := a.writer.mirrors.Of(a.kind.Whole())
	if err != nil {
		return nil, err
	}
	now, err := m.Refresh(ctx, a.key, nil)
	switch {
	case errors.Is(err, backend.ErrConflict):
		return nil, errRaced
	case err != nil:
		return nil, failure.Of(err, a.key)
	case now == nil || now.Revision != a.current.Revision:
		return nil, errRaced
	}
	a.conclusive = true // the record is current
	return a.unchanged(), nil
}
