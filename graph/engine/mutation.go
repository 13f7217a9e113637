package engine

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// writeRootField returns the entry of a mutation of one resource.
func writeRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveMutation(writeResource), write: writeRootObject}
}

// applyRootField returns the entry of the mutation that applies a manifest.
func applyRootField() derivedField {
	return derivedField{compile: compileArguments, resolve: resolveMutation(applyManifest), write: writeRootObject}
}

// mutation executes a root field of a mutation by a call of the service.
type mutation func(ctx context.Context, r *run, f *field, in map[string]any) (*service.Written, error)

// resolveMutation returns the function derivedField.resolve of a mutation. It executes the mutation and reads what its
// payload needs.
func resolveMutation(execute mutation) func(context.Context, *run, *field, *resolved, *arguments) error {
	return func(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error {
		in := value[map[string]any](args.values, "input")
		if err := checkMutationID(in); err != nil {
			return err
		}
		a.writing = !value[bool](in, "dryRun")
		w, err := execute(ctx, r, f, in)
		a.writing = false
		r.snapshot.Forget() // later reads for the answer see the write
		if err != nil {
			return err
		}
		if f.kind == nil {
			r.countDeprecated(w.Warnings)
		}
		a.written = &written{
			Written:    w,
			field:      f,
			blockers:   map[*field]link{},
			mutationID: optional[string](in, "clientMutationId"),
		}
		r.readPayload(ctx, a.written) // a.written must be set before, since this may halt
		return nil
	}
}

// countDeprecated counts each deprecated field that a manifest or a write in JSON has set, once. Package deprecation
// finds the deprecated fields in typed inputs.
func (r *run) countDeprecated(warnings []failure.Warning) {
	if r.engine.deprecated == nil {
		return
	}
	var counted []string
	for i := range warnings {
		coordinate := warnings[i].Deprecated
		if coordinate == "" || slices.Contains(counted, coordinate) {
			continue
		}
		counted = append(counted, coordinate)
		r.engine.deprecated(r.oc, coordinate)
	}
}

// readPayload reads what the payload of a mutation needs.
func (r *run) readPayload(ctx context.Context, w *written) {
	if b := bodyOf(w.Resource); b != nil {
		w.item = &item{body: b, kind: r.kindOf(b)}
	}
	for i := range w.field.sub.fields {
		f := &w.field.sub.fields[i]
		if f.read != nil {
			f.read(ctx, r, f, w)
		}
	}
}

func applyManifest(ctx context.Context, r *run, _ *field, in map[string]any) (*service.Written, error) {
	return r.engine.svc.Writer.Apply(ctx, service.ApplyRequest{
		Manifest:         value[string](in, "manifest"),
		Namespace:        optional[string](in, "namespace"),
		ExpectedRevision: optional[string](in, "expectedRevision"),
		IgnoreRevision:   value[bool](in, "ignoreRevision"),
		FieldManager:     optional[string](in, "fieldManager"),
		CreateOnly:       value[bool](in, "createOnly"),
		DryRun:           value[bool](in, "dryRun"),
	})
}

// writeResource calls the service's method for the verb of the mutation.
func writeResource(ctx context.Context, r *run, f *field, in map[string]any) (*service.Written, error) {
	id, err := r.target(f, in)
	if err != nil {
		return nil, err
	}
	w := r.engine.svc.Writer
	revision, dry := value[string](in, "expectedRevision"), value[bool](in, "dryRun")
	switch f.verb {
	case descriptor.VerbCreate:
		return w.Create(ctx, service.CreateRequest{
			Identity:   id,
			DryRun:     dry,
			Metadata:   metadata(in),
			SubKind:    value[string](in, "subKind"),
			Spec:       given(f, in["spec"]),
			FieldNames: f.fieldNames(),
		})
	case descriptor.VerbUpdate:
		return w.Update(ctx, service.UpdateRequest{
			Identity:         id,
			DryRun:           dry,
			Metadata:         metadata(in),
			ExpectedRevision: revision,
			Spec:             given(f, in["spec"]),
			FieldNames:       f.fieldNames(),
		})
	case descriptor.VerbPatch:
		spec, isGiven := in[f.part("spec")]
		if isGiven && spec == nil {
			return nil, nullPatch(f, id.Kind)
		}
		return w.Patch(ctx, service.PatchRequest{
			Identity:         id,
			DryRun:           dry,
			MetadataPatch:    metadataPatch(in),
			ExpectedRevision: revision,
			Patch:            given(f, spec),
			FieldNames:       f.fieldNames(),
		})
	case descriptor.VerbUpsert:
		return w.Upsert(ctx, service.UpsertRequest{
			Identity:   id,
			DryRun:     dry,
			Metadata:   metadata(in),
			SubKind:    value[string](in, "subKind"),
			Spec:       given(f, in["spec"]),
			FieldNames: f.fieldNames(),
		})
	case descriptor.VerbStatus:
		if f.merge {
			return w.PatchStatus(ctx, service.StatusPatchRequest{
				Identity:         id,
				DryRun:           dry,
				ExpectedRevision: optional[string](in, "expectedRevision"),
				Patch:            given(f, in["status"]),
				FieldNames:       f.fieldNames(),
			})
		}
		return w.UpdateStatus(ctx, service.StatusRequest{
			Identity:         id,
			DryRun:           dry,
			ExpectedRevision: revision,
			Status:           given(f, in[f.part("status")]),
			Untyped:          f.kind == nil,
			FieldNames:       f.fieldNames(),
		})
	}
	return w.Delete(ctx, service.DeleteRequest{
		Identity:         id,
		DryRun:           dry,
		ExpectedRevision: optional[string](in, "expectedRevision"),
	})
}

// nullPatch returns the error of a patch whose spec is null.
func nullPatch(f *field, kindName string) error {
	return &failure.Error{
		Code:    failure.CodeBadUserInput,
		Path:    "spec",
		Kind:    kindName,
		Message: f.part("spec") + ": null clears nothing; leave it out, or name what changes",
	}
}

// target returns the identity of the resource that a mutation changes. A mutation that works for all kinds identifies
// it by its id.
func (r *run) target(f *field, in map[string]any) (kind.Identity, error) {
	n := naming{values: in, namespaced: in["namespace"] != nil, at: failure.At("input")}
	if f.kind != nil {
		return r.identity(f, n)
	}
	key, err := r.key(n, "")
	return kind.Identity{Kind: key.Kind, Namespace: namespaceOf(key), Name: key.Name}, err
}

// part returns the name of spec or status in the input of a mutation. In a mutation that works for all kinds they are
// JSON, and have other names.
func (f *field) part(name string) string {
	if f.kind == nil {
		return name + "JSON"
	}
	return name
}

// fieldNames selects the names of resource fields in the arguments of the field: stored names in a mutation that works
// for all kinds, otherwise API names.
func (f *field) fieldNames() failure.FieldNames {
	if f.kind == nil {
		return failure.StoredNames
	}
	return failure.APINames
}

// given returns an object of the arguments for the service. If the arguments belong to this run, the service may modify
// the object; if they belong to the plan, it must copy it.
func given(f *field, tree any) any {
	if tree, ok := tree.(map[string]any); ok && f.args == nil {
		return jsontree.Given(tree)
	}
	return tree
}
