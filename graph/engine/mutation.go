package engine

import (
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// write executes one mutation.
func (r *run) write(f *field, in map[string]any) (*service.Written, error) {
	if err := checkMutationID(in); err != nil {
		return nil, err
	}
	s, ctx := r.engine.svc, r.ctx
	if f.op == opApply {
		return s.Apply(ctx, service.ApplyRequest{
			Manifest: value[string](in, "manifest"), Namespace: optional[string](in, "namespace"),
			ExpectedRevision: optional[string](in, "expectedRevision"), IgnoreRevision: value[bool](in, "ignoreRevision"),
			FieldManager: optional[string](in, "fieldManager"),
			CreateOnly:   value[bool](in, "createOnly"), DryRun: value[bool](in, "dryRun"),
		})
	}
	id, err := r.target(f, in)
	if err != nil {
		return nil, err
	}
	revision, dry := value[string](in, "expectedRevision"), value[bool](in, "dryRun")
	switch f.verb {
	case descriptor.VerbCreate:
		return s.Create(ctx, service.CreateRequest{Identity: id, DryRun: dry, Metadata: metadata(in), SubKind: value[string](in, "subKind"), Spec: given(f, in["spec"])})
	case descriptor.VerbUpdate:
		return s.Update(ctx, service.UpdateRequest{Identity: id, DryRun: dry, Metadata: metadata(in), ExpectedRevision: revision, Spec: given(f, in["spec"])})
	case descriptor.VerbPatch:
		spec, isGiven := in[f.part("spec")]
		if isGiven && spec == nil {
			return nil, &failure.Error{Code: failure.CodeBadUserInput, Path: "spec", Kind: id.Kind, Message: f.part("spec") + ": null clears nothing; leave it out, or name what changes"}
		}
		return s.Patch(ctx, service.PatchRequest{Identity: id, DryRun: dry, MetadataPatch: metadataPatch(in), ExpectedRevision: revision, Patch: given(f, spec)})
	case descriptor.VerbUpsert:
		return s.Upsert(ctx, service.UpsertRequest{Identity: id, DryRun: dry, Metadata: metadata(in), SubKind: value[string](in, "subKind"), Spec: given(f, in["spec"])})
	case descriptor.VerbStatus:
		if f.merge {
			return s.PatchStatus(ctx, service.StatusPatchRequest{Identity: id, DryRun: dry, ExpectedRevision: optional[string](in, "expectedRevision"), Patch: given(f, in["status"])})
		}
		return s.UpdateStatus(ctx, service.StatusRequest{Identity: id, DryRun: dry, ExpectedRevision: revision, Status: given(f, in[f.part("status")]), Untyped: f.kind == nil})
	}
	return s.Delete(ctx, service.DeleteRequest{Identity: id, DryRun: dry, ExpectedRevision: optional[string](in, "expectedRevision")})
}

// target returns the resource that a mutation changes. A mutation of any kind names it by its id.
func (r *run) target(f *field, in map[string]any) (kind.Identity, error) {
	n := naming{values: in, namespaced: in["namespace"] != nil, at: ast.Path{ast.PathName("input")}}
	if f.kind != nil {
		return r.identity(f, n)
	}
	key, err := r.key(n, "")
	return kind.Identity{Kind: key.Kind, Namespace: namespaceOf(key), Name: key.Name}, err
}

// part returns the name of the spec or the status in the input of a write: a mutation of any kind takes
// it as JSON in its stored form.
func (f *field) part(name string) string {
	if f.kind == nil {
		return name + "JSON"
	}
	return name
}

// given returns an object of the arguments for the service, which may change it unless a plan keeps the arguments.
func given(f *field, tree any) any {
	if tree, ok := tree.(map[string]any); ok && f.args == nil {
		return jsontree.Given(tree)
	}
	return tree
}

// readWritten reads the blockers that the payload of a mutation shows, and adds the resource to the next level.
func (r *run) readWritten(out *written) {
	if b := bodyOf(out.Resource); b != nil {
		out.item = &item{body: b, kind: r.kindOf(b)}
	}
	for i := range out.field.sub.fields {
		switch p := &out.field.sub.fields[i]; {
		case p.op == opWritten && out.item != nil && !out.DryRun:
			r.enqueue(out.item, p.on(out.item.kind))
		case p.op == opBlockers:
			out.blockers[p] = r.readBlockers(p, out.Written)
		}
	}
}
