package service

import (
	"fmt"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// expect returns CONFLICT unless the expected revision is at least as new as the last change of the spec. It accepts
// the current revision, the revision of the last change of the spec, and all revisions between them in the current
// epoch. So a change of the status alone does not cause a conflict.
func expect(expected string, current *backend.Resource) error {
	r, err := backend.ParseRevision(expected)
	if err != nil {
		return conflict(expected, current)
	}
	sinceSpec := r.Epoch == current.Revision.Epoch && current.SpecRevision.Compare(r) < 0 &&
		r.Compare(current.Revision) < 0
	if r == current.Revision || r == current.SpecRevision || sinceSpec {
		return nil
	}
	return conflict(expected, current)
}

// conflict returns the error of a write whose expected revision does not match.
func conflict(expected string, current *backend.Resource) error {
	shown := failure.Shorten(expected)
	e := &failure.Error{Code: failure.CodeConflict, ExpectedRevision: shown, CurrentRevision: current.Revision.String()}
	e.Message = fmt.Sprintf(
		"%s was changed since you read it: revision %q is expected, %q is current; read it again and repeat the change",
		failure.Describe(current.Key), shown, current.Revision)
	return e.At(current.Key)
}

// gone returns the error of an apply that expects a revision of an absent resource. The error explains how to apply
// the manifest without a revision.
func (w *write) gone() error {
	e := failure.Of(backend.ErrNotFound, w.key)
	e.ExpectedRevision = failure.Shorten(*w.expected)
	e.Message += fmt.Sprintf(", and the change is based on its revision %q", e.ExpectedRevision)
	if w.expectedOfManifest {
		e.Path = "metadata.revision"
		e.Message += "; ignoreRevision (sluice apply --ignore-revision) creates it anew"
	}
	return e
}
