package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/mirror"
	"github.com/sluicegw/sluice/backend/service/owner"
)

// deleteOwned deletes a resource that a service owns. While other resources are bound to it, deleteOwned only requests
// the deletion. The gateway asks the service once none is bound.
func (w *write) deleteOwned(ctx context.Context) (*Written, error) {
	m, err := w.writer.mirrors.Of(w.kind.Whole())
	if err != nil {
		return nil, err
	}
	can, err := m.Abilities(ctx, w.kind.Whole(), w.key)
	if err != nil {
		return nil, err
	}
	if w.dryRun {
		return w.wouldDeleteOwned(ctx, m, can)
	}
	looked := false
	return w.retry(ctx, func() (*Written, error) {
		current, err := w.loadToDelete(ctx)
		missing := current == nil && err == nil || hasCode(err, failure.CodeNotFound)
		if current != nil {
			_, unreadable := current.state(w.kind.Whole())
			missing = unreadable != nil
		}
		if missing && !looked { // the record may be behind, or damaged
			looked = true
			return nil, w.refreshed(ctx, m)
		}
		if err == nil && current == nil {
			err = failure.Of(backend.ErrUnreadable, w.key)
		}
		if err != nil {
			return nil, err
		}
		return w.removeOwned(ctx, m, can, current)
	})
}

// wouldDeleteOwned returns the answer to a dry run of a delete.
func (w *write) wouldDeleteOwned(ctx context.Context, m *mirror.Mirror, can owner.Kind) (*Written, error) {
	out, err := w.requestDeletion(ctx)
	switch {
	case err != nil || out.Deletion != Deleted || out.Resource == nil:
		return out, err
	case !can.DryRun || w.writer.cfg.ReadOnly:
		out.Warnings = append(out.Warnings, failure.Warning{
			Code:    failure.WarningService,
			Message: "the service " + w.kind.Whole().Service + " was not asked: it may refuse to delete the resource",
		})
		return out, nil
	}
	d := mirror.Deletion(w.kind.Whole(), out.Resource.Stored, w.expected != nil)
	d.DryRun = true
	answer, err := m.Delete(ctx, d, false)
	if err != nil {
		return nil, err
	}
	switch answer.Outcome {
	case owner.Done:
	case owner.Waits:
		out.Deletion = Finalizing
	case owner.Conflict:
		return nil, failure.Of(backend.ErrConflict, w.key)
	case owner.Absent:
		return nil, failure.Of(backend.ErrNotFound, w.key)
	default:
		return nil, m.Refusal(w.key, answer, w.ownersPath)
	}
	return out, nil
}

// askingOwner returns the owner data for the record while the owner is asked to delete the resource.
func askingOwner(was *body.Owner) *body.Owner {
	out := body.Owner{Asking: true}
	if was != nil {
		out.Tag = was.Tag
		out.UID = was.UID
	}
	return &out
}

// requestOwned requests the deletion of a resource that others are bound to. Once none is bound, the gateway itself
// asks the owner to delete the resource, when the caller is no longer known. Therefore requestOwned already asks now
// whether this caller may delete it, by a dry run if the owner offers dry runs.
func (w *write) requestOwned(
	ctx context.Context, m *mirror.Mirror, can owner.Kind, current *storedResource,
) (*Written, error) {
	if current.Deleting {
		return &Written{Deletion: Pending, Resource: w.writer.present(w.kind, current.Resource)}, nil
	}
	if can.DryRun {
		d := mirror.Deletion(w.kind.Whole(), current.Resource, w.expected != nil)
		d.DryRun = true
		answer, err := m.Delete(ctx, d, false)
		if err != nil {
			return nil, err
		}
		switch answer.Outcome {
		case owner.Done, owner.Waits:
		case owner.Conflict, owner.Absent:
			return nil, w.refreshed(ctx, m)
		default:
			return nil, m.Refusal(w.key, answer, w.ownersPath)
		}
	}
	marked, err := w.markDeleting(ctx, current, Pending)
	if err != nil {
		return nil, err
	}
	return &Written{Deletion: Pending, Resource: w.writer.present(w.kind, marked)}, nil
}

// refreshed updates the record from the owner and returns errRaced, or the error if that
// fails.
func (w *write) refreshed(ctx context.Context, m *mirror.Mirror) error {
	if _, err := m.Refresh(ctx, w.key, nil); err != nil {
		return failure.Of(err, w.key)
	}
	return errRaced
}

// removeOwned asks the owner to delete a resource to which no other is bound. If another resource could become bound to
// it meanwhile, removeOwned first marks the record as being deleted. It removes the mark if the owner refuses.
func (w *write) removeOwned(
	ctx context.Context, m *mirror.Mirror, can owner.Kind, current *storedResource,
) (*Written, error) {
	deletion, err := w.writer.deletionOf(ctx, current.Resource)
	if err != nil {
		return nil, err
	}
	if deletion == Pending {
		return w.requestOwned(ctx, m, can, current)
	}
	known, err := current.state(w.kind.Whole())
	if err != nil {
		return nil, failure.Of(err, w.key)
	}
	if current.Deleting && known.Meta.Finalizing { // the service was asked
		return &Written{Deletion: Finalizing, Resource: w.writer.present(w.kind, current.Resource)}, nil
	}
	res := current.Resource
	requested := res.Deleting && (known.Meta.Owner == nil || !known.Meta.Owner.Asking)
	limit := mirror.AskLimit // after which another gateway may take the request back
	if res.Deleting && !requested {
		limit -= w.writer.clock().Sub(known.Meta.DeletionRequestedAt)
	}
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if !res.Deleting && w.writer.reconciler.IsGuarded(w.kind.Name) {
		if res, err = w.markDeleting(ctx, current, Deleted); err != nil {
			return nil, err
		}
	}
	d := mirror.Deletion(w.kind.Whole(), current.Resource, w.expected != nil)
	answer, err := m.Delete(ctx, d, requested)
	out := &Written{Deletion: Deleted, Resource: w.writer.present(w.kind, res)}
	switch {
	case err == nil && answer.Outcome == owner.Done:
		return out, m.Deleted(ctx, w.key)
	case err == nil && answer.Outcome == owner.Waits:
		out.Deletion = Finalizing
		return out, m.Deleted(ctx, w.key)
	}
	unknown, _ := errors.AsType[*failure.Error](err)
	if res.Deleting && !requested && (unknown == nil || unknown.Outcome == "") {
		if failed := m.TakeBack(context.WithoutCancel(ctx), w.kind.Whole(), res); failed != nil {
			return nil, failure.Of(failed, w.key)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case answer.Outcome == owner.Conflict, answer.Outcome == owner.Absent: // the record is behind
		now, err := m.Refresh(ctx, w.key, nil)
		if err != nil {
			return nil, failure.Of(err, w.key)
		}
		if err := w.contradicted(res, now, answer.Outcome); err != nil {
			return nil, err
		}
		return nil, errRaced
	}
	return nil, m.Refusal(w.key, answer, w.ownersPath)
}
