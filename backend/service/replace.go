package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// create stores an intent whose own violations are none.
func (s *Service) create(ctx context.Context, in *intent) (*Written, error) {
	out := &Written{Outcome: Created, Warnings: in.warnings}
	if in.dryRun {
		current, err := s.stored(ctx, in.key)
		if err == nil && current != nil {
			err = translate(backend.ErrExists, in.key)
		}
		return out, err
	}
	st := &state{subKind: in.subKind, spec: in.spec, meta: in.meta.applyTo(body.Metadata{}, in.labels, in.annotations), expiresAt: in.meta.ExpiresAt.Value}
	st.meta.Generation = 1
	stored, err := s.storeState(ctx, target{
		kind: in.kind, key: in.key, uid: s.cfg.NewID(), caller: true, cond: backend.Condition{Presence: backend.Absent},
	}, st)
	switch {
	case errors.Is(err, errLost):
		return nil, err
	case err != nil:
		return nil, translate(err, in.key)
	}
	out.Resource = s.present(in.kind, stored)
	return out, nil
}

// replace judges an intent against what is stored, in this order:
// revision, frozen, validation, identical. It answers errRaced if the stored
// resource changed meanwhile, and errLost if the attempt was lost.
func (s *Service) replace(ctx context.Context, in *intent, current *backend.Resource) (*Written, error) {
	if err := in.open(current); err != nil {
		return nil, err
	}
	was, err := stateOf(current)
	if errors.Is(err, backend.ErrUnreadable) && in.expected == nil {
		return s.rewrite(ctx, in, current)
	}
	if err != nil {
		return nil, translate(err, in.key)
	}
	in = in.keeping(was)
	if err := in.judge(ctx, was).err(in.key); err != nil {
		return nil, err
	}
	next := &state{subKind: was.subKind, status: was.status, expiresAt: was.expiresAt, meta: in.meta.applyTo(was.meta, in.labels, in.annotations)}
	next.spec = cloneTree(in.spec).(map[string]any)
	in.kind.spec.keepUnknown(next.spec, was.spec)
	if in.meta.ExpiresAt.Set {
		next.expiresAt = in.meta.ExpiresAt.Value
	}
	return s.save(ctx, in, current, was, next)
}

// rewrite stores an intent in place of a body that does not decode, of which
// nothing can be kept.
func (s *Service) rewrite(ctx context.Context, in *intent, damaged *backend.Resource) (*Written, error) {
	if err := in.judge(ctx, nil).err(in.key); err != nil {
		return nil, err
	}
	next := &state{subKind: in.subKind, spec: in.spec, meta: in.meta.applyTo(body.Metadata{}, in.labels, in.annotations), expiresAt: damaged.ExpiresAt}
	if in.meta.ExpiresAt.Set {
		next.expiresAt = in.meta.ExpiresAt.Value
	}
	return s.save(ctx, in, damaged, nil, next)
}

// replaceStatus stores another status.
func (s *Service) replaceStatus(ctx context.Context, in *intent, current *backend.Resource, status map[string]any) (*Written, error) {
	was, err := stateOf(current)
	if err != nil {
		return nil, translate(err, in.key)
	}
	next := *was
	next.status = cloneTree(status).(map[string]any)
	if in.kind.status != nil && was.status != nil {
		in.kind.status.keepUnknown(next.status, was.status)
	}
	return s.save(ctx, in, current, was, &next)
}

// save writes the next state if it differs from what was, nil for what could not be read.
func (s *Service) save(ctx context.Context, in *intent, current *backend.Resource, was, next *state) (*Written, error) {
	out := &Written{Outcome: Updated, Warnings: in.warnings}
	if was != nil && next.same(was) {
		out.Outcome = Unchanged
	}
	if out.Outcome == Unchanged || in.dryRun {
		out.Resource = s.present(in.kind, current)
		return out, nil
	}
	if was == nil || !equal(next.spec, was.spec) {
		next.meta.Generation++
	}
	stored, err := s.storeState(ctx, target{
		kind: in.kind, key: in.key, uid: current.UID, caller: in.spec != nil,
		cond: backend.Condition{Presence: backend.Present, Revision: current.Revision},
	}, next)
	switch {
	case errors.Is(err, backend.ErrConflict), errors.Is(err, backend.ErrNotFound):
		return nil, errRaced
	case errors.Is(err, errLost):
		return nil, err
	case err != nil:
		return nil, translate(err, in.key)
	}
	out.Resource = s.present(in.kind, stored)
	return out, nil
}
