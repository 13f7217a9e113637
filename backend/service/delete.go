package service

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// Delete deletes a resource. If other resources rely on it or it has finalizers, Delete only requests the deletion. The
// resource is then deleted once nothing holds it any more.
func (wr *Writer) Delete(ctx context.Context, req DeleteRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbDelete)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.beginDelete(ctx, req)
	if err != nil {
		return nil, err
	}
	if err := w.refuseReadOnly(); err != nil {
		return nil, err
	}
	if err := wr.awaitBindings(ctx, w.key); err != nil {
		return nil, err
	}
	if w.kind.Whole().Service != "" {
		return w.deleteOwned(ctx)
	}
	if w.dryRun {
		return w.requestDeletion(ctx)
	}
	return w.retry(ctx, func() (*Written, error) { return w.remove(ctx) })
}

// beginDelete resolves the resource and authorizes its deletion.
func (wr *Writer) beginDelete(ctx context.Context, req DeleteRequest) (*write, error) {
	k, key, err := wr.kinds.Resolve(req.Identity)
	if err != nil {
		return nil, err
	}
	nameVerb(ctx, descriptor.VerbDelete, k)
	rights, err := wr.authorize(ctx, k, descriptor.VerbDelete, key)
	if err != nil {
		return nil, err
	}
	return &write{
		writer: wr, kind: k, key: key, verb: descriptor.VerbDelete, rights: rights,
		expected: req.ExpectedRevision, dryRun: req.DryRun,
	}, nil
}

// remove deletes the resource, or requests its deletion if something holds it. The store checks this with the
// references that it has stored, including references which this gateway's catalogue does not declare.
func (w *write) remove(ctx context.Context) (*Written, error) {
	removal := backend.Action{
		Key: w.key, Op: backend.OpDelete,
		If: backend.Condition{Presence: backend.Present, Unreferenced: true, Unfinalized: true},
	}
	var values []backend.Action
	loads := w.expected != nil || w.kind.Sensitive
	if loads {
		current, err := w.loadToDelete(ctx)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return w.deleteUnreadable(ctx)
		}
		removal.If.Revision = current.Revision
		values = current.removalOfSensitive()
	}
	deleted, err := w.writer.send(ctx, append([]backend.Action{removal}, values...)...)
	switch {
	case errors.Is(err, backend.ErrReferenced), errors.Is(err, backend.ErrFinalized):
		return w.requestDeletion(ctx)
	case !loads && replaceable(err, w.expected):
		return w.deleteUnreadable(ctx)
	case err != nil:
		return nil, w.failed(err)
	}
	return &Written{Resource: w.writer.present(w.kind, deleted), Deletion: Deleted}, nil
}

// loadToDelete loads the resource to delete and checks the expected revision, if any. It returns nil if the record does
// not decode and no revision is expected.
func (w *write) loadToDelete(ctx context.Context) (*storedResource, error) {
	current, err := w.writer.loader.load(ctx, w.kind, w.key)
	switch {
	case replaceable(err, w.expected):
		return nil, nil
	case err != nil:
		return nil, err
	case current == nil:
		return nil, failure.Of(backend.ErrNotFound, w.key)
	case w.expected != nil:
		return current, expect(*w.expected, current.Resource)
	}
	return current, nil
}

// requestDeletion stores a request to delete the resource once nothing holds it. It returns errRaced if the resource
// has changed meanwhile, or if nothing holds it any more. In a dry run it returns the answer that a delete would get.
func (w *write) requestDeletion(ctx context.Context) (*Written, error) {
	current, err := w.loadToDelete(ctx)
	switch {
	case err != nil:
		return nil, err
	case current == nil && w.dryRun:
		return &Written{DryRun: true, Deletion: Deleted}, nil
	case current == nil:
		return w.deleteUnreadable(ctx)
	}
	res := current.Resource
	deletion, err := w.writer.deletionOf(ctx, res)
	switch {
	case err != nil, w.dryRun:
	case deletion == Deleted:
		err = errRaced
	case !res.Deleting:
		res, err = w.markDeleting(ctx, current, deletion)
	}
	if err != nil {
		return nil, err
	}
	return &Written{DryRun: w.dryRun, Deletion: deletion, Resource: w.writer.present(w.kind, res)}, nil
}

// markDeleting stores the request to delete a resource. If deletion is Finalizing, it also sets conditions that name
// the finalizers. Unless deletion is Pending, markDeleting fails with errRaced if another resource is bound to this
// one.
func (w *write) markDeleting(ctx context.Context, current *storedResource, deletion Deletion) (*backend.Resource, error) {
	wr := w.writer
	was, err := kind.StateOf(current.Resource)
	if err != nil {
		return nil, failure.Of(err, w.key)
	}
	next := was.WithMetadata(was.Meta)
	next.Meta.DeletionRequestedAt = wr.clock().UTC().Truncate(time.Millisecond)
	if w.isOwned() && deletion != Pending {
		next.Meta.Owner = askingOwner(was.Meta.Owner)
	}
	if deletion == Finalizing {
		next = wr.reconciler.Finalizing(w.kind.Whole(), next)
	}
	put, err := reconcile.Rewrite(w.kind.Whole(), current.Resource, next)
	if err != nil {
		return nil, failure.Of(err, w.key)
	}
	put.Put.Deleting = true
	put.If.Unreferenced = deletion != Pending
	marked, err := wr.send(ctx, put)
	switch {
	case errors.Is(err, backend.ErrNotFound), errors.Is(err, backend.ErrReferenced):
		return nil, errRaced
	case err != nil:
		return nil, w.failed(err)
	}
	return marked, nil
}

// awaitBindings waits until the bindings in the store follow the newest declarations of references. Only then does the
// store know whether the resource is guarded.
func (wr *Writer) awaitBindings(ctx context.Context, key backend.Key) error {
	ctx, cancel := context.WithTimeout(ctx, wr.cfg.RetryTimeout)
	defer cancel()
	return wr.reconciler.AwaitBindings(ctx, key)
}

// deletionOf returns the progress that a deletion of the resource would have now. It is Pending while other resources
// rely on the resource, Finalizing while only finalizers hold it, and otherwise Deleted.
func (wr *Writer) deletionOf(ctx context.Context, r *backend.Resource) (Deletion, error) {
	bound, err := wr.reconciler.IsBound(ctx, r.Key)
	switch {
	case err != nil:
		return "", failure.Of(err, r.Key)
	case bound:
		return Pending, nil
	case r.Finalizers > 0:
		return Finalizing, nil
	}
	return Deleted, nil
}
