package service

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// Update replaces the spec of an existing resource at the expected revision.
func (wr *Writer) Update(ctx context.Context, req UpdateRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbUpdate)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	t := target{verb: descriptor.VerbUpdate, id: req.Identity, meta: req.Metadata, names: req.FieldNames}
	w, err := wr.begin(ctx, t)
	if err != nil {
		return nil, err
	}
	if err := w.takeSpec(ctx, req.Spec); err != nil {
		return nil, err
	}
	w.setSubKind(req.SubKind)
	w.expected = &req.ExpectedRevision
	w.dryRun = req.DryRun
	return w.change(ctx, func(a *attempt) (*Written, error) { return a.replace(ctx) })
}
