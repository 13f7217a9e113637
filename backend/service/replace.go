package service

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// create stores an intent whose own violations are none.
func (s *Service) create(ctx context.Context, in *intent) (*Written, error) {
	out := &Written{Outcome: Created, Warnings: in.warnings, DryRun: in.dryRun}
	t, st := s.newState(in)
	stored, err := s.createState(ctx, in, &t, st)
	switch {
	case in.staleRead(err):
		return nil, errRaced
	case errors.Is(err, errLost):
		return nil, err
	case err != nil:
		return nil, failure.Of(err, in.key)
	}
	out.Resource = s.present(in.kind, stored)
	out.Warnings = append(slices.Clip(out.Warnings), waitWarnings(t.related)...)
	return out, nil
}

// staleRead reports whether a write failed since what was read for it was not current, and
// has the next attempt read it from the store.
func (in *intent) staleRead(err error) bool {
	if !raced(err, in.key) && (*in.misses > int(together) || !errors.Is(err, backend.ErrUnreadable)) {
		return false
	}
	*in.misses++
	return true
}

// lookup says how what the intent refers to is read, after so many misses.
func (in *intent) lookup() lookup { return lookup(min(*in.misses, int(oneByOne))) }

// newState is the state of a new resource, and where it is stored.
func (s *Service) newState(in *intent) (target, *kind.State) {
	st := &kind.State{SubKind: in.subKind, Spec: in.spec, Meta: in.meta.applyTo(body.Metadata{}, in.labels, in.annotations), ExpiresAt: in.meta.ExpiresAt.Value}
	st.Meta.Generation = 1
	return target{kind: in.kind, key: in.key, uid: s.cfg.NewID(), caller: true, cond: backend.Condition{Presence: backend.Absent}}, st
}

// createState stores the state of a new resource, or says what a dry run would store.
func (s *Service) createState(ctx context.Context, in *intent, t *target, st *kind.State) (*backend.Resource, error) {
	st, related, err := s.relate(ctx, relating{kind: in.kind, key: in.key, respecified: true, lookup: in.lookup()}, st)
	if err != nil {
		return nil, err
	}
	t.related = related
	if !in.dryRun {
		return s.storeState(ctx, *t, st)
	}
	current, err := s.load(ctx, in.kind, in.key)
	switch {
	case err != nil:
		return nil, err
	case current != nil:
		return nil, backend.ErrExists
	}
	return s.wouldStore(*t, st, nil)
}

// replace judges an intent against what is stored, in this order:
// revision, frozen, validation, identical. It answers errRaced if the stored
// resource changed meanwhile, and errLost if the attempt was lost.
func (s *Service) replace(ctx context.Context, in *intent, current *stored) (*Written, error) {
	if err := in.open(current.Resource); err != nil {
		return nil, err
	}
	was, err := in.base(current)
	if errors.Is(err, backend.ErrUnreadable) && in.expected == nil {
		return s.rewrite(ctx, in, current)
	}
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	if current.Deleting && !in.releases(was) {
		return nil, failure.Of(backend.ErrDeleting, in.key)
	}
	in = in.keeping(was)
	found := &in.found
	if !in.unspecified && !current.kept { // else the spec stays, which need not be valid, nor known in full
		found = in.judge(ctx, was)
	}
	if err := found.Err(in.key); err != nil {
		return nil, err
	}
	next := was.WithMetadata(in.meta.applyTo(was.Meta, in.labels, in.annotations))
	if !in.unspecified {
		spec := in.spec
		if !in.patch { // that of a patch is made anew for each attempt
			spec = jsontree.Clone(spec).(map[string]any)
		}
		in.kind.Spec.KeepUnknown(spec, was.Spec)
		next = next.WithSpec(spec)
	}
	if in.meta.ExpiresAt.Set {
		next.ExpiresAt = in.meta.ExpiresAt.Value
	}
	if err := in.heldAtExpiry(was, next).Err(in.key); err != nil {
		return nil, err
	}
	return s.save(ctx, in, current, was, next)
}

// heldAtExpiry refuses new finalizers on what goes at its time whoever holds it.
func (in *intent) heldAtExpiry(was, next *kind.State) *kind.Violations {
	var found kind.Violations
	isNew := func(f string) bool { return !slices.Contains(was.Meta.Finalizers, f) }
	switch {
	case next.ExpiresAt.IsZero() || len(next.Meta.Finalizers) == 0:
	case slices.ContainsFunc(next.Meta.Finalizers, isNew):
		found.Add("metadata.finalizers", "expires", nil, "cannot be set on a resource that has expiresAt: it goes at that time whoever holds it; clear metadata.expiresAt first")
	case !next.ExpiresAt.Equal(was.ExpiresAt):
		found.Add("metadata.expiresAt", "finalizers", nil, "cannot be set on a resource that has finalizers: it would go at that time although they hold it; remove metadata.finalizers first")
	}
	return &found
}

// rewrite stores an intent in place of a body that does not decode, of which
// nothing can be kept.
func (s *Service) rewrite(ctx context.Context, in *intent, damaged *stored) (*Written, error) {
	if err := in.judge(ctx, nil).Err(in.key); err != nil {
		return nil, err
	}
	next := &kind.State{SubKind: in.subKind, Spec: in.spec, Meta: in.meta.applyTo(body.Metadata{}, in.labels, in.annotations), ExpiresAt: damaged.ExpiresAt}
	if in.meta.ExpiresAt.Set {
		next.ExpiresAt = in.meta.ExpiresAt.Value
	}
	return s.save(ctx, in, damaged, nil, next)
}

// replaceStatus stores another status.
func (s *Service) replaceStatus(ctx context.Context, in *intent, current *stored, status map[string]any) (*Written, error) {
	was, err := in.base(current)
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	var found kind.Violations
	found.Maxima(in.kind.Status, "status", status, was.Status)
	if err := found.Err(in.key); err != nil {
		return nil, err
	}
	status = jsontree.Clone(status).(map[string]any)
	if old := was.Status(); in.kind.Status != nil && old != nil {
		in.kind.Status.KeepUnknown(status, old)
	}
	return s.save(ctx, in, current, was, was.WithStatus(status))
}

// save writes the next state if it differs from what was, nil for what could not be read.
func (s *Service) save(ctx context.Context, in *intent, current *stored, was, next *kind.State) (*Written, error) {
	out := &Written{Outcome: Updated, Warnings: in.warnings, DryRun: in.dryRun}
	respecified := was == nil || !next.SameSpec(was) || current.concealed && !current.kept
	if !respecified && next.SameBesides(was) {
		out.Outcome, out.Resource = Unchanged, s.present(in.kind, current.Resource)
		return out, nil
	}
	if respecified {
		next.Meta.Generation++
	}
	t := target{
		kind: in.kind, key: in.key, uid: current.UID, passes: current.Passes, caller: in.spec != nil, deleting: current.Deleting, kept: current.kept,
		cond: backend.Condition{Presence: backend.Present, Revision: current.Revision},
	}
	if was != nil {
		t.was = &replaced{current.Resource, was}
	}
	var err error
	next, t.related, err = s.relate(ctx, relating{kind: in.kind, key: in.key, was: was, stored: current.Resource, respecified: respecified, reported: in.verb == descriptor.VerbStatus, lookup: in.lookup()}, next)
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	if next.Meta.Finalizing && !slices.Equal(next.Meta.Finalizers, was.Meta.Finalizers) && dependency.SaysFinalizing(next.Status()) {
		next = s.finalizing(in.kind, next)
	}
	out.Warnings = append(slices.Clip(out.Warnings), waitWarnings(t.related)...)
	if t.related.Overruled && next.SameBesides(was) { // nothing is left of it
		out.Outcome, out.Resource = Unchanged, s.present(in.kind, current.Resource)
		return out, nil
	}
	if in.dryRun {
		would, err := s.wouldStore(t, next, current.Resource)
		if err != nil {
			return nil, failure.Of(err, in.key)
		}
		out.Resource = s.present(in.kind, would)
		return out, nil
	}
	current.used = true
	stored, err := s.storeState(ctx, t, next)
	switch {
	case in.staleRead(err), errors.Is(err, backend.ErrNotFound):
		return nil, errRaced
	case errors.Is(err, errLost):
		return nil, err
	case err != nil:
		return nil, failure.Of(err, in.key)
	}
	out.Resource = s.present(in.kind, stored)
	return out, nil
}
