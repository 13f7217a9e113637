package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Create stores a new resource. It returns ALREADY_EXISTS if the resource exists.
func (wr *Writer) Create(ctx context.Context, req CreateRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbCreate)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.beginNew(ctx, descriptor.VerbCreate, req)
	if err != nil {
		return nil, err
	}
	return w.create(ctx)
}

// beginNew begins a write that may create a resource.
func (wr *Writer) beginNew(ctx context.Context, verb descriptor.Verb, req CreateRequest) (*write, error) {
	w, err := wr.begin(ctx, target{verb: verb, id: req.Identity, meta: req.Metadata, names: req.FieldNames})
	if err != nil {
		return nil, err
	}
	if err := w.takeSpec(ctx, req.Spec); err != nil {
		return nil, err
	}
	w.setSubKind(req.SubKind)
	w.dryRun = req.DryRun
	return w, nil
}

// create creates the resource, which must not exist.
func (w *write) create(ctx context.Context) (*Written, error) {
	if err := w.validateNew(ctx); err != nil {
		// ALREADY_EXISTS comes before violations, so that the caller need not correct
		// the input first.
		if current, readErr := w.writer.loader.load(ctx, w.kind, w.key); readErr == nil && current != nil {
			return nil, w.exists(failure.Of(backend.ErrExists, w.key))
		}
		return nil, err
	}
	out, err := w.retry(ctx, func() (*Written, error) { return w.attempt(nil).create(ctx) })
	return out, w.exists(err)
}

// exists changes an ALREADY_EXISTS error for a caller who may not read the resource. It removes the revision, which
// would reveal changes, and adds to the message that the caller may not read the resource. It returns other errors
// unchanged.
func (w *write) exists(err error) error {
	known, ok := errors.AsType[*failure.Error](err)
	if !ok || known.Code != failure.CodeAlreadyExists || w.isReadable() {
		return err
	}
	out := *known
	out.Message += ", and you may not read it"
	out.CurrentRevision = ""
	return &out
}
