package service

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// create stores an intent whose own violations are none.
func (s *Service) create(ctx context.Context, in *intent) (*Written, error) {
	w := in.newWrite()
	st, related, err := s.reconciler.Relate(ctx, w.Write, in.newState())
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	w.related = related
	if in.dryRun {
		current, err := s.load(ctx, in.kind, in.key)
		if err == nil && current != nil {
			err = backend.ErrExists
		}
		if err != nil {
			return nil, failure.Of(err, in.key)
		}
	}
	return s.finishWrite(ctx, in, w, st)
}

// finishWrite stores a state, or in a dry run returns the resource that would be stored.
func (s *Service) finishWrite(ctx context.Context, in *intent, w stateWrite, st *kind.State) (*Written, error) {
	out := &Written{Outcome: Updated, DryRun: in.dryRun, Warnings: append(slices.Clip(in.warnings), waitWarnings(w.related)...)}
	if w.Stored == nil {
		out.Outcome = Created
	}
	if err := s.permit(ctx, in, &w, st); err != nil {
		return nil, err
	}
	stored, err := s.storeState(ctx, w, st, in.dryRun)
	switch {
	case err == nil:
	case in.staleRead(err), w.Stored != nil && errors.Is(err, backend.ErrNotFound):
		return nil, errRaced
	default:
		return nil, answerTo(err, in.key)
	}
	if !in.rights.Sees(in.kind.Kind, in.key) { // CREATE was enough
		out.Warnings = append(out.Warnings, unreadableFor(in))
		return out, nil
	}
	out.Resource = s.present(in.kind, stored)
	return out, nil
}

// unreadableFor returns the warning that the caller may create a resource and not read it.
func unreadableFor(in *intent) failure.Warning {
	done := "was created"
	if in.dryRun {
		done = "would be created"
	}
	return failure.Warning{Code: failure.WarningNotReadable, Message: "the resource " + done + ", and you may not read it: that needs the verb GET"}
}

// staleRead reports whether a write failed because it relied on an outdated read. The next attempt reads more
// thoroughly then.
func (in *intent) staleRead(err error) bool {
	if !reconcile.Raced(err, in.key) && (*in.read == reconcile.OneByOne || !errors.Is(err, backend.ErrUnreadable)) {
		return false
	}
	*in.read = min(*in.read+1, reconcile.OneByOne)
	return true
}

// newState is the state of a new resource.
func (in *intent) newState() *kind.State {
	st := &kind.State{SubKind: in.subKind, Spec: in.spec, Meta: in.meta.applyTo(body.Metadata{}), ExpiresAt: in.meta.expiresAt.Value}
	st.Meta.Generation = 1
	return st
}

// newWrite is the write of a new resource.
func (in *intent) newWrite() stateWrite {
	return stateWrite{Write: reconcile.Write{Kind: in.kind, Key: in.key, SpecChanged: true, Read: *in.read}, caller: true}
}

// replace judges an intent against the stored resource, in this order: revision, frozen, validation,
// identical. It answers errRaced if the stored resource changed meanwhile, and reconcile.ErrLost if the attempt
// was lost.
func (s *Service) replace(ctx context.Context, in *intent, current *stored) (*Written, error) {
	if err := in.open(current.Resource); err != nil {
		return nil, err
	}
	was, err := in.base(current)
	if replaceable(err, in.expected) {
		return s.rewrite(ctx, in, current)
	}
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	if current.Deleting && !(in.unspecified && in.meta.releases()) {
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
	next, respecified := was.WithMetadata(in.meta.applyTo(was.Meta)), false
	if !in.unspecified {
		spec := in.spec
		if !in.patch { // a patch makes its spec for each attempt
			spec = jsontree.Clone(spec).(map[string]any)
		}
		in.kind.Spec.KeepUnknown(spec, was.Spec)
		if current.concealed && !current.kept || !in.kind.Spec.Identical(spec, was.Spec) {
			next, respecified = next.WithSpec(spec), true
		}
	}
	if in.meta.expiresAt.Set {
		next.ExpiresAt = in.meta.expiresAt.Value
	}
	if err := in.meta.judge(was, next).Err(in.key); err != nil {
		return nil, err
	}
	return s.save(ctx, in, current, next, respecified)
}

// replaceStatus stores another status.
func (s *Service) replaceStatus(ctx context.Context, in *intent, current *stored, status map[string]any) (*Written, error) {
	was, err := in.base(current)
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	found := in.found.Clone()
	found.Maxima(in.kind.Status, "status", status, was.Status)
	if err := found.Err(in.key); err != nil {
		return nil, err
	}
	status = jsontree.Clone(status).(map[string]any)
	if old := was.Status(); in.kind.Status != nil && old != nil {
		in.kind.Status.KeepUnknown(status, old)
	}
	return s.save(ctx, in, current, was.WithStatus(status), false)
}

// save writes the next state, if it is another than the one that was read. respecified reports whether the stored
// form of its spec is; so it is where nothing could be read. The generation counts changes of the effective spec: it
// stays if a value that equals the default takes the place of none, or the reverse.
func (s *Service) save(ctx context.Context, in *intent, current *stored, next *kind.State, respecified bool) (*Written, error) {
	was, managed := current.read, false
	if respecified {
		if was == nil || current.concealed || !in.kind.Spec.Equivalent(next.Spec, was.Spec) {
			next.Meta.Generation++
		}
	} else {
		if next.SameBesides(was) {
			return s.unchangedBy(in, current), nil
		}
		unmanaged := next.WithMetadata(next.Meta)
		unmanaged.Meta.Managers = was.Meta.Managers
		managed = unmanaged.SameBesides(was)
	}
	w := stateWrite{
		Write: reconcile.Write{
			Kind: in.kind, Key: in.key, Stored: current.Resource, Was: was,
			SpecChanged: respecified, StatusReport: in.verb == descriptor.VerbStatus, Read: *in.read,
		},
		caller: in.spec != nil && !managed, kept: current.kept,
	}
	next, related, err := s.reconciler.Relate(ctx, w.Write, next)
	if err != nil {
		return nil, failure.Of(err, in.key)
	}
	w.related = related
	if next.Meta.Finalizing && !slices.Equal(next.Meta.Finalizers, was.Meta.Finalizers) && reconcile.SaysFinalizing(next.Status()) {
		next = s.reconciler.Finalizing(in.kind, next)
	}
	if related.Overruled && next.SameBesides(was) { // nothing is left of it
		out := s.unchangedBy(in, current)
		out.Warnings = append(slices.Clip(out.Warnings), waitWarnings(related)...)
		return out, nil
	}
	current.used = current.used || !in.dryRun
	out, err := s.finishWrite(ctx, in, w, next)
	if err == nil && managed { // the resource was as the manifest says, but for its field managers
		out.Outcome = Unchanged
	}
	return out, err
}

// unchangedBy is the answer to a write that changes nothing.
func (s *Service) unchangedBy(in *intent, current *stored) *Written {
	return &Written{Outcome: Unchanged, Warnings: in.warnings, DryRun: in.dryRun, Resource: s.present(in.kind, current.Resource)}
}

// waitWarnings returns warnings about the resources that are waited for, and about conditions that were not
// taken over meanwhile.
func waitWarnings(j reconcile.Decision) []failure.Warning {
	var out []failure.Warning
	if j.Overruled {
		out = append(out, failure.Warning{
			Code: failure.WarningWaiting, Path: "status.conditions",
			Message: "the resource waits for others: its conditions Available and Progressing say so, and what the status says of them was not taken over",
		})
	}
	for _, w := range j.Waits {
		out = append(out, failure.Warning{Code: failure.WarningWaiting, Message: w.String(), Path: w.Path})
	}
	return out
}
