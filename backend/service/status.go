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

// UpdateStatus replaces the status and leaves everything else, at exactly the
// current revision. It moves no spec revision, so that it does not disturb a client that is about to change
// the spec.
func (s *Service) UpdateStatus(ctx context.Context, req StatusRequest) (*Written, error) {
	in, err := s.intend(ctx, wanted{verb: descriptor.VerbStatus, id: req.Identity})
	if err != nil {
		return nil, err
	}
	in.dryRun = req.DryRun
	status, err := in.parse("status", req.Status)
	if err != nil {
		return nil, err
	}
	if req.Untyped {
		if in.found.Types(ctx, in.kind.Status, "status", status); in.found.Err(in.key) != nil {
			return nil, in.found.Err(in.key)
		}
	}
	repeatedConditions(in.kind, &in.found, status)
	return s.retry(ctx, in.kind, in.key, func(current *stored) (*Written, error) {
		if current.Revision.String() != req.ExpectedRevision {
			return nil, conflict(req.ExpectedRevision, current.Resource)
		}
		return s.replaceStatus(ctx, in, current, status)
	})
}

// PatchStatus changes parts of the status and leaves everything else. Two controllers that patch
// different conditions of one resource do not overwrite each other's.
func (s *Service) PatchStatus(ctx context.Context, req StatusPatchRequest) (*Written, error) {
	in, err := s.intend(ctx, wanted{verb: descriptor.VerbStatus, id: req.Identity})
	if err != nil {
		return nil, err
	}
	in.dryRun = req.DryRun
	patch, err := in.object("status", req.Patch)
	if err != nil {
		return nil, err
	}
	jsontree.DropListNulls(patch)
	in.kind.Status.Canonical(patch)
	return s.retry(ctx, in.kind, in.key, func(current *stored) (*Written, error) {
		if req.ExpectedRevision != nil && current.Revision.String() != *req.ExpectedRevision {
			return nil, conflict(*req.ExpectedRevision, current.Resource)
		}
		was, err := in.base(current)
		if err != nil {
			return nil, failure.Of(err, in.key)
		}
		var found kind.Violations // of the patch first: the places of elements are its own
		found.ListTypes(ctx, in.kind.Status, "status", patch)
		found.Maxima(in.kind.Status, "status", patch, was.Status)
		repeatedConditions(in.kind, &found, patch)
		if err := found.Err(in.key); err != nil {
			return nil, err
		}
		old := was.Status()
		status := jsontree.Merged(in.kind.Status.Known(old), mergeConditions(in.kind, old, patch))
		if found.Types(ctx, in.kind.Status, "status", status); found.Err(in.key) != nil {
			return nil, found.Err(in.key)
		}
		return s.replaceStatus(ctx, in, current, status)
	})
}

// mergeConditions returns the patch of a status with the stored conditions of other types: a condition of the
// patch takes the place of the stored one of its type, or comes after all of them.
func mergeConditions(k *kind.Kind, old, patch map[string]any) map[string]any {
	next, given := patch[kind.ConditionIndex].([]any)
	if !given || !k.HasConditions() {
		return patch
	}
	stored, _ := old[kind.ConditionIndex].([]any)
	merged := slices.Clone(stored)
	ofType := func(list []any, condition any) int {
		return slices.IndexFunc(list, func(other any) bool { return kind.ConditionType(other) == kind.ConditionType(condition) })
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

// repeatedConditions adds the conditions of a status, or of a patch of one, whose type an earlier one
// has: which of the two is meant is not known.
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
			found.Add(failure.Element("status."+kind.ConditionIndex, i), "unique", nil, "repeats the type of element %d", of)
		default:
			first[typ] = i
		}
	}
}
