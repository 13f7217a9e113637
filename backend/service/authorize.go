package service

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// authorize returns the caller's rights, or an error if they do not include the verb on the resource.
func (wr *Writer) authorize(
	ctx context.Context, k *kind.Kind, v descriptor.Verb, key backend.Key,
) (*access.Rights, error) {
	rights, err := wr.reader.RightsToWrite(ctx)
	if err == nil {
		err = rights.Authorize(k.Kind, v, key)
	}
	return rights, err
}

// authorizeContent returns an error if the caller may not store the next state. This is the case for a role or binding
// that gives rights which the caller lacks, and for a new reference to a resource of a sensitive kind that the caller
// may not read.
func (a *attempt) authorizeContent(ctx context.Context) error {
	if !a.specChanged {
		return nil
	}
	if access.GivesRights(a.kind.Name) {
		if err := a.authorizeRights(ctx); err != nil {
			return err
		}
	}
	if a.rights.All() {
		return nil
	}
	for _, ref := range a.kind.Rows.Refs(a.key.Namespace, a.next.Spec) {
		to, err := a.writer.allKinds.Find(ref.Key.Kind)
		if err != nil || !to.Sensitive || a.rights.Sees(to.Kind, ref.Key) {
			continue
		}
		if !a.refersTo(ref.Key) {
			return a.refuseReference(ref, to)
		}
	}
	return nil
}

// refersTo reports whether the stored resource already refers to the key.
func (a *attempt) refersTo(key backend.Key) bool {
	if a.was == nil {
		return false
	}
	before := a.kind.Rows.Refs(a.key.Namespace, a.was.Spec)
	return slices.ContainsFunc(before, func(ref kind.ResourceRef) bool { return ref.Key == key })
}

// refuseReference returns the error for a new reference to a resource of a sensitive kind that the caller may not read.
func (w *write) refuseReference(ref kind.ResourceRef, to *kind.Kind) error {
	path := w.kind.Path(ref.Path).Text(w.names)
	refused := &failure.Error{Code: failure.CodeForbidden}
	refused.Message = fmt.Sprintf("%s: kind %s is sensitive, and a new reference to %q needs the verb GET on it",
		path, to.Name, failure.Shorten(ref.Key.Name))
	refused = refused.At(w.key)
	refused.Path = path
	return refused
}

// authorizeRights returns an error if the role or binding gives rights that the caller lacks.
func (a *attempt) authorizeRights(ctx context.Context) error {
	policy, err := a.writer.reader.Policy(ctx)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"spec": a.next.Spec})
	if err != nil {
		return failure.Of(err, a.key)
	}
	return policy.MayStore(a.rights, a.kind.Kind, a.key.Name, body)
}
