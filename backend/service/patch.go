package service

import (
	"context"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Patch changes parts of a spec at the expected revision. It validates the result.
func (wr *Writer) Patch(ctx context.Context, req PatchRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbPatch)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.beginPatch(ctx, req)
	if err != nil {
		return nil, err
	}
	patch, err := w.takePatch(ctx, req.Patch)
	if err != nil {
		return nil, err
	}
	w.expected = &req.ExpectedRevision
	w.dryRun = req.DryRun
	w.keepsSpec = patch.isEmpty()
	return w.change(ctx, func(a *attempt) (*Written, error) { return a.patch(ctx, patch) })
}

// beginPatch begins a patch. A patch that changes only finalizers needs the verb FINALIZE. A patch that changes
// finalizers and other parts needs PATCH and FINALIZE.
func (wr *Writer) beginPatch(ctx context.Context, req PatchRequest) (*write, error) {
	t := target{verb: descriptor.VerbPatch, id: req.Identity, meta: req.MetadataPatch, names: req.FieldNames}
	finalizes := len(req.AddFinalizers)+len(req.RemoveFinalizers) > 0
	if finalizes && req.finalizersAlone() {
		t.needs = descriptor.VerbFinalize
	}
	w, err := wr.begin(ctx, t)
	if err != nil || !finalizes {
		return w, err
	}
	return w, w.rights.Authorize(w.kind.Kind, descriptor.VerbFinalize, w.key)
}

// specPatch is a patch of a spec. First fields is applied, then merged.
type specPatch struct {
	// fields is the merge patch that was sent, including nulls.
	fields map[string]any
	// merged is a merge patch for the targets of fields with mergeInto: see [kind.Violations.TakeMergedPatch].
	merged map[string]any
}

func (p specPatch) isEmpty() bool { return len(p.fields)+len(p.merged) == 0 }

// takePatch reads the merge patch that was sent, and adds a violation for each field that the kind does not have.
func (w *write) takePatch(ctx context.Context, sent any) (specPatch, error) {
	fields, err := jsontree.Object(sent)
	if err != nil {
		return specPatch{}, failure.BadInput("spec", "spec is not acceptable: %v", err).At(w.key)
	}
	if fields == nil {
		return specPatch{}, nil
	}
	jsontree.DropListNulls(fields)
	at := failure.At("spec")
	w.found.DropUnknown(w.kind.Spec, at, fields)
	w.kind.Spec.ClearEmpty(fields)
	w.kind.Spec.Canonical(fields)
	w.warnings = w.kind.Spec.Deprecated(nil, at, w.names, fields)
	return specPatch{fields: fields, merged: w.found.TakeMergedPatch(ctx, w.kind.Spec, at, fields)}, nil
}

// patch applies a patch to the stored spec, and stores the result.
func (a *attempt) patch(ctx context.Context, patch specPatch) (*Written, error) {
	if err := a.admit(); err != nil {
		return nil, err
	}
	if err := a.readState(); err != nil {
		return nil, failure.Of(err, a.key)
	}
	spec := a.was.Spec
	if !a.keepsSpec {
		spec = jsontree.Merged(a.kind.Spec.Known(a.was.Spec), patch.fields)
		a.warnings = append(a.warnings, a.kind.Spec.Cleared(failure.At("spec"), a.names, a.was.Spec, patch.fields)...)
	}
	if len(patch.merged) > 0 {
		spec = jsontree.Merged(spec, patch.merged)
	}
	return a.replaceSpec(ctx, spec)
}
