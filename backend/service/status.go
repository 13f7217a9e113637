package service

import (
	"context"
	"maps"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// UpdateStatus replaces the status and nothing else. The expected revision must be the current one. It keeps the spec
// revision, so it causes no conflict for a client that is about to change the spec.
func (wr *Writer) UpdateStatus(ctx context.Context, req StatusRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbStatus)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.begin(ctx, target{verb: descriptor.VerbStatus, id: req.Identity, names: req.FieldNames})
	if err != nil {
		return nil, err
	}
	w.dryRun = req.DryRun
	w.expected = &req.ExpectedRevision
	status, err := w.takeStatus(ctx, req)
	if err != nil {
		return nil, err
	}
	return w.change(ctx, func(a *attempt) (*Written, error) {
		if err := a.admitStatus(); err != nil {
			return nil, err
		}
		if err := a.readState(); err != nil {
			return nil, failure.Of(err, a.key)
		}
		return a.replaceStatus(ctx, status)
	})
}

func (w *write) takeStatus(ctx context.Context, req StatusRequest) (map[string]any, error) {
	status, err := w.object("status", req.Status)
	if err != nil {
		return nil, err
	}
	jsontree.DropNulls(status)
	if w.kind.Status != nil {
		w.kind.Status.Canonical(status)
	}
	if req.Untyped {
		w.found.Types(ctx, w.kind.Status, failure.At("status"), status)
		if err := w.found.Err(w.key); err != nil {
			return nil, err
		}
	}
	repeatedConditions(w.kind, &w.found, status)
	return status, nil
}

// PatchStatus changes parts of the status and nothing else. Controllers that patch different conditions of the same
// resource do not overwrite each other's conditions.
func (wr *Writer) PatchStatus(ctx context.Context, req StatusPatchRequest) (out *Written, err error) {
	ctx, verb := traceVerb(ctx, descriptor.VerbStatus)
	if verb.Recording() {
		defer func() { endVerb(verb, out, err) }()
	}
	w, err := wr.begin(ctx, target{verb: descriptor.VerbStatus, id: req.Identity, names: req.FieldNames})
	if err != nil {
		return nil, err
	}
	w.dryRun = req.DryRun
	w.expected = req.ExpectedRevision
	patch, err := w.object("status", req.Patch)
	if err != nil {
		return nil, err
	}
	jsontree.DropListNulls(patch)
	w.kind.Status.Canonical(patch)
	return w.change(ctx, func(a *attempt) (*Written, error) { return a.patchStatus(ctx, patch) })
}

// isStatus reports whether the write changes the status.
func (w *write) isStatus() bool { return w.verb == descriptor.VerbStatus }

// admitStatus returns an error if the current revision is not the expected one.
func (a *attempt) admitStatus() error {
	if a.expected != nil && a.current.Revision.String() != *a.expected {
		return conflict(*a.expected, a.current.Resource)
	}
	return nil
}

// patchStatus applies a patch to the stored status, validates the result and stores it.
func (a *attempt) patchStatus(ctx context.Context, patch map[string]any) (*Written, error) {
	if err := a.admitStatus(); err != nil {
		return nil, err
	}
	if err := a.readState(); err != nil {
		return nil, failure.Of(err, a.key)
	}
	shape := a.kind.Status
	at := failure.At("status")
	found := kind.Violations{FieldNames: a.names} // of the patch before it is merged, which changes indexes
	found.ListTypes(ctx, shape, at, patch)
	found.Maxima(shape, at, patch, a.was.Status)
	repeatedConditions(a.kind, &found, patch)
	if err := found.Err(a.key); err != nil {
		return nil, err
	}
	old := a.was.Status()
	status := jsontree.Merged(shape.Known(old), mergeConditions(a.kind, old, patch))
	found.Types(ctx, shape, at, status)
	if err := found.Err(a.key); err != nil {
		return nil, err
	}
	return a.replaceStatus(ctx, status)
}

// replaceStatus validates a status and stores it in place of the current one.
func (a *attempt) replaceStatus(ctx context.Context, status map[string]any) (*Written, error) {
	found := a.found.Clone()
	found.Maxima(a.kind.Status, failure.At("status"), status, a.was.Status)
	if err := found.Err(a.key); err != nil {
		return nil, err
	}
	status = jsontree.Clone(status).(map[string]any)
	if old := a.was.Status(); a.kind.Status != nil && old != nil {
		a.kind.Status.KeepUnknown(status, old)
	}
	a.next = a.was.WithStatus(status)
	return a.storeChange(ctx)
}

// mergeConditions returns patch with a complete list of conditions. A condition of the patch replaces the stored
// condition of the same type, or is appended. Stored conditions of other types are kept.
func mergeConditions(k *kind.Kind, old, patch map[string]any) map[string]any {
	next, given := patch[kind.ConditionIndex].([]any)
	if !given || !k.HasConditions() {
		return patch
	}
	stored, _ := old[kind.ConditionIndex].([]any)
	merged := slices.Clone(stored)
	ofType := func(list []any, condition any) int {
		return slices.IndexFunc(list, func(other any) bool {
			return kind.ConditionType(other) == kind.ConditionType(condition)
		})
	}
	for i, condition := range stored {
		if at := ofType(next, condition); at >= 0 {
			merged[i] = next[at]
		}
	}
	for _, condition := range next {
		if ofType(stored, condition) < 0 {
			merged = append(merged, condition)
		}
	}
	out := maps.Clone(patch)
	out[kind.ConditionIndex] = merged
	return out
}

// repeatedConditions adds a violation for each condition that has the same type as an earlier one.
func repeatedConditions(k *kind.Kind, found *kind.Violations, status map[string]any) {
	if !k.HasConditions() {
		return
	}
	conditions, _ := status[kind.ConditionIndex].([]any)
	first := map[string]int{}
	for i, condition := range conditions {
		typ := kind.ConditionType(condition)
		switch of, repeats := first[typ]; {
		case typ == "": // a missing type is another violation
		case repeats:
			found.Add(
				failure.At("status").Name(kind.ConditionIndex).Element(i),
				"unique",
				nil,
				"repeats the type of element %d",
				of,
			)
		default:
			first[typ] = i
		}
	}
}
