package rpc

import (
	"context"
	"errors"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	kinds "github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
)

// text returns a string field of the request; empty if the message does not have it.
func (r *request) text(name protoreflect.Name) string {
	f := fieldOf(r.message, name)
	if f == nil {
		return ""
	}
	return r.message.Get(f).String()
}

// refuseUnknown returns an error if the request has an unknown field. The field might be a condition.
func (r *request) refuseUnknown() error {
	unknown := r.message.GetUnknown()
	if len(unknown) == 0 {
		return nil
	}
	number, _, _ := protowire.ConsumeTag(unknown)
	return failure.BadInput("", "the request has a field %d, which this gateway does not know%s", number, after(r.kind.withdrawn))
}

// identity returns the resource that the request names.
func (r *request) identity() kinds.Identity {
	out := kinds.Identity{Kind: r.kind.Name, Name: r.text("name")}
	if namespace := r.text("namespace"); namespace != "" {
		out.Namespace = &namespace
	}
	r.path = renamed(map[string]string{"metadata.name": "name", "metadata.namespace": "namespace"})
	return out
}

// key returns the key of a resource, with defaults for missing parts.
func (k *kind) key(id kinds.Identity) backend.Key {
	out := backend.Key{Kind: k.Name, Name: id.Name}
	switch {
	case k.Scope == descriptor.Global:
	case id.Namespace == nil:
		out.Namespace = descriptor.DefaultNamespace
	default:
		out.Namespace = *id.Namespace
	}
	return out
}

// resource decodes the resource in a request, and charges for its memory.
func (h *Handler) resource(ctx context.Context, r *request) (*input, error) {
	f := fieldOf(r.message, r.kind.ResourceField)
	r.path = r.kind.pathOf(&input{})
	if !r.message.Has(f) {
		return nil, failure.BadInput("resource", "%s: must be given", r.kind.ResourceField)
	}
	r.dryRun = r.message.Get(fieldOf(r.message, "validate_only")).Bool()
	in, err := r.kind.decode(r.message.Get(f).Message())
	r.path = r.kind.pathOf(in)
	if err != nil {
		return nil, err
	}
	spent := budget.From(ctx)
	r.message = nil // from here on, only the tree is in memory
	spent.Release(r.held)
	spent.Unexpect(r.tree)
	if err := spent.Spend(budget.Steps, in.values*budget.InputValue+in.texts/budget.InputBytes); err != nil {
		return nil, err
	}
	return in, spent.Hold(ctx, in.values*budget.InputHeld+in.objects*budget.InputObjectHeld+in.texts)
}

func (h *Handler) create(ctx context.Context, r *request) (*answer, error) {
	in, err := h.resource(ctx, r)
	if err != nil {
		return nil, err
	}
	w, err := h.cfg.Service.Writer.Create(ctx, r.creation(in))
	return h.written(ctx, r, in, w, err)
}

func (h *Handler) upsert(ctx context.Context, r *request) (*answer, error) {
	in, err := h.resource(ctx, r)
	if err != nil {
		return nil, err
	}
	w, err := h.cfg.Service.Writer.Upsert(ctx, service.UpsertRequest(r.creation(in)))
	return h.written(ctx, r, in, w, err)
}

func (r *request) creation(in *input) service.CreateRequest {
	return service.CreateRequest{
		Identity:   in.identity,
		Metadata:   in.metadata,
		DryRun:     r.dryRun,
		SubKind:    in.subKind,
		Spec:       jsontree.Given(in.spec),
		FieldNames: failure.APINames,
	}
}

func (h *Handler) update(ctx context.Context, r *request) (*answer, error) {
	in, err := h.resource(ctx, r)
	if err != nil {
		return nil, err
	}
	if in.revision == "" {
		return nil, failure.BadInput("metadata.revision", "metadata.revision: must be the revision that was read")
	}
	w, err := h.cfg.Service.Writer.Update(ctx, service.UpdateRequest{
		Identity:         in.identity,
		Metadata:         in.metadata,
		DryRun:           r.dryRun,
		ExpectedRevision: in.revision,
		SubKind:          in.subKind,
		Spec:             jsontree.Given(in.spec),
		FieldNames:       failure.APINames,
	})
	return h.written(ctx, r, in, w, err)
}

// written returns the answer to a write. w is its result, and err its error.
func (h *Handler) written(
	ctx context.Context, r *request, in *input, w *service.Written, err error,
) (*answer, error) {
	if err != nil {
		return nil, err
	}
	r.warn(w.Warnings)
	if w.Resource == nil { // the caller may write the resource but not read it
		var e encoder
		r.kind.named(&e, r.kind.key(in.identity), "")
		return h.answer(ctx, r.method.Output(), e.data, r.json)
	}
	return h.answerWith(ctx, r, w.Resource)
}

func (r *request) warn(warnings []failure.Warning) {
	bytes := 0
	for i, w := range warnings {
		text := warningText(w)
		bytes += len(text)
		if bytes > maxWarningBytes && i > 0 {
			break
		}
		r.header.Add(warningHeader, text)
	}
}

// answerWith returns the answer with a resource.
func (h *Handler) answerWith(ctx context.Context, r *request, of *query.Resource) (*answer, error) {
	if err := budget.From(ctx).Spend(budget.Objects, 1); err != nil {
		return nil, err
	}
	var e encoder
	r.kind.resource(&e, of.Stored, of.Body, "")
	return h.answer(ctx, r.method.Output(), e.data, r.json)
}

// answer returns the answer with an encoded message, and charges for it. It converts the message to JSON if json is
// true.
func (h *Handler) answer(
	ctx context.Context, of protoreflect.MessageDescriptor, data []byte, json bool,
) (*answer, error) {
	if json {
		var err error
		if data, err = toJSON(ctx, of, data); err != nil {
			return nil, err
		}
	}
	return &answer{data}, h.cfg.Edge.Answer(ctx, len(data))
}

func (h *Handler) get(ctx context.Context, r *request) (*answer, error) {
	id := r.identity()
	found, err := h.cfg.Service.Reader.Get(ctx, id)
	if err != nil {
		return nil, err
	}
	if found == nil {
		return nil, failure.Of(backend.ErrNotFound, r.kind.key(id))
	}
	return h.answerWith(ctx, r, found)
}

func (h *Handler) delete(ctx context.Context, r *request) (*answer, error) {
	dryRun := r.message.Get(fieldOf(r.message, "validate_only")).Bool()
	req := service.DeleteRequest{Identity: r.identity(), DryRun: dryRun}
	if revision := r.text("revision"); revision != "" {
		req.ExpectedRevision = &revision
	}
	w, err := h.cfg.Service.Writer.Delete(ctx, req)
	if err != nil {
		return nil, err
	}
	r.warn(w.Warnings)
	if w.Deletion != "" {
		r.header.Set(deletionHeader, string(w.Deletion))
	}
	return h.answer(ctx, r.method.Output(), nil, r.json)
}

func (h *Handler) list(ctx context.Context, r *request) (*answer, error) {
	r.path = renamed(map[string]string{"first": "page_size", "after": "page_token"})
	size := int(r.message.Get(fieldOf(r.message, "page_size")).Int())
	if size < 0 {
		return nil, failure.BadInput("first", "page_size: %d is negative; 0 means %d", size, query.DefaultPage)
	}
	if size == 0 {
		size = query.DefaultPage
	}
	size = min(size, query.MaxPage)
	req := query.ListRequest{Kind: r.kind.Name, First: &size, Ahead: true, FieldNames: failure.APINames}
	if token := r.text("page_token"); token != "" {
		req.After = &token
	}
	if namespace := r.text("namespace"); namespace != "" {
		req.Namespace = &namespace
	}
	page, err := h.cfg.Service.Reader.List(ctx, req)
	if known, ok := errors.AsType[*failure.Error](err); ok && known.Code == failure.CodeCursorInvalid {
		return nil, &failure.Error{
			Code: failure.CodeCursorInvalid, Path: "after",
			Message: "page_token: not a token of this list; take it from the next_page_token of the same namespace",
		}
	}
	if err != nil {
		return nil, err
	}
	return h.page(ctx, r, page)
}
