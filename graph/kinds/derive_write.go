package kinds

import (
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// write is what one verb derives.
type write struct {
	// name of the mutation, and of its input and payload without their endings.
	name, about string
	// existing says that the resource has to be there, so that its id can name it.
	existing bool
	// input are the fields besides those that say who and which.
	input []*ast.FieldDefinition
	// payload and preview are said of the resource in the payload; before and after are the
	// fields besides these.
	payload, preview string
	before, after    []*ast.FieldDefinition
}

// writes derives the mutations of a kind with their inputs and payloads.
func (d *derivation) writes(k *Kind) {
	spec := func(about string) *ast.FieldDefinition { return field("spec", InputType(k.Spec.Name)+"!", about) }
	replaced := "Desired state. It replaces the one that is stored."
	const (
		stored  = "The resource as it is stored now; null with dryRun."
		preview = "With dryRun, the resource as it would be stored; else null."
	)
	if k.Has(descriptor.VerbCreate) {
		d.write(k, write{
			name: "create" + k.Name, about: "Create a resource of kind " + k.Name + ". If it exists, the answer is ALREADY_EXISTS.",
			input:   slices.Concat(subKind(k, ""), newMetadata(k), []*ast.FieldDefinition{spec(k.about("spec", aboutSpec))}),
			payload: stored, preview: preview,
		})
	}
	revision := field("expectedRevision", "String!", aboutRevision)
	if k.Has(descriptor.VerbUpdate) {
		d.write(k, write{
			name: "update" + k.Name, existing: true, about: "Replace the spec of a resource of kind " + k.Name + " at the revision that the caller read.",
			input: slices.Concat([]*ast.FieldDefinition{revision}, changedMetadata(k), []*ast.FieldDefinition{spec(replaced)}), payload: stored, preview: preview,
		})
	}
	if k.Has(descriptor.VerbPatch) {
		d.write(k, write{
			name: "patch" + k.Name, existing: true, about: "Change parts of the spec of a resource of kind " + k.Name + " at the revision that the caller read: a JSON merge patch (RFC 7386).",
			input: slices.Concat([]*ast.FieldDefinition{revision}, patchedMetadata(k), []*ast.FieldDefinition{
				field("spec", PatchType(k.Spec.Name), "What changes of the desired state. Left out: nothing."),
			}), payload: stored, preview: preview,
		})
	}
	if k.Has(descriptor.VerbUpsert) {
		d.write(k, write{
			name: "upsert" + k.Name, about: "Create a resource of kind " + k.Name + ", or replace the spec of an existing one, whatever its revision.",
			input:   slices.Concat(subKind(k, " An existing resource keeps its own; if one is given, it must be the same."), changedMetadata(k), []*ast.FieldDefinition{spec(replaced)}),
			payload: stored, preview: preview, after: []*ast.FieldDefinition{field("created", "Boolean!", "Whether the resource did not exist before.")},
		})
	}
	if k.Has(descriptor.VerbStatus) {
		d.write(k, write{
			name: "update" + k.Name + "Status", existing: true, about: "Replace the status of a resource of kind " + k.Name + " at its current revision, as its controller does. The spec is untouched.",
			input: []*ast.FieldDefinition{
				field("expectedRevision", "String!", "The current revision; opaque, from metadata.revision. Any change since then is a CONFLICT."),
				field("status", InputType(k.Status.Name)+"!", "Observed state. It replaces the one that is stored."),
			},
			payload: stored, preview: preview,
		})
	}
	if k.Has(descriptor.VerbStatus) {
		about := "What changes of the observed state: a JSON merge patch (RFC 7386)."
		if k.HasConditions() {
			about += " Conditions replace the stored ones of their types; the others stay."
		}
		d.write(k, write{
			name: "patch" + k.Name + "Status", existing: true, about: "Change parts of the status of a resource of kind " + k.Name + ", as one of several controllers does. The spec is untouched.",
			input: []*ast.FieldDefinition{
				field("expectedRevision", "String", "The current revision; opaque, from metadata.revision. Any change since then is a CONFLICT. Absent: any."),
				field("status", PatchType(k.Status.Name)+"!", about),
			},
			payload: stored, preview: preview,
		})
	}
	if k.Has(descriptor.VerbDelete) {
		d.write(k, write{
			name: "delete" + k.Name, existing: true, about: "Delete a resource of kind " + k.Name + ". If others rely on it, or finalizers hold it, its deletion is requested and waits for them.",
			input:   []*ast.FieldDefinition{field("expectedRevision", "String", "Revision that the deletion is based on; opaque, from metadata.revision. Absent: any.")},
			payload: "The resource in its last state, or in its present one while its deletion waits; null if that cannot be read, and with dryRun.",
			preview: "With dryRun, the resource as it is; null without, or if it cannot be read.",
			before:  []*ast.FieldDefinition{field("deleted"+k.Name+"Id", "ID", "Global id of the resource that is gone; null unless the state is DELETED, and with dryRun.")},
			after: []*ast.FieldDefinition{
				field("state", "DeletionState!", "How far the deletion has come; with dryRun how far it would come."),
				readable("blockedBy", "DependencyConnection", "What relies on the resource, for which the deletion waits, or with dryRun would wait: also what cannot be read, or is of a kind that the catalogue does not have. In the order of kind, namespace, name and path.",
					argument("first", "Int", "References wanted from the front, 0 to 1,000. null: 100."),
					argument("after", "String", "Only what follows this cursor; opaque, from pageInfo or an edge of this field with the same arguments.")),
			},
		})
	}
}

// write derives one mutation.
func (d *derivation) write(k *Kind, w write) {
	typ := strings.ToUpper(w.name[:1]) + w.name[1:]
	name := field("name", "String!", aboutName+": lower case letters, digits, '-' and '.'.")
	if w.existing {
		name = field("name", "String", aboutName+". Either it or id is given.")
	}
	who := []*ast.FieldDefinition{
		field("clientMutationId", "String", "Comes back in the payload. At most 128 characters."),
		when(w.existing, func() *ast.FieldDefinition { return field("id", "ID", aboutID(k)) }),
		when(k.namespaced(), func() *ast.FieldDefinition {
			return field("namespace", "String", "Namespace of the name. "+aboutNamespace+" Absent: default.")
		}),
		name,
	}
	dry := field("dryRun", "Boolean", "Check everything, write nothing and answer what would be stored, as preview. null: false.")
	dry.DefaultValue = &ast.Value{Kind: ast.BooleanValue, Raw: "false"}
	d.add(input(typ+"Input", "What "+w.name+" is asked.", append(slices.Concat(who, w.input), dry)...))
	d.add(object(typ+"Payload", "What "+w.name+" answers.", slices.Concat(
		[]*ast.FieldDefinition{field("clientMutationId", "String", "clientMutationId of the input.")}, w.before,
		[]*ast.FieldDefinition{field(k.Singular, k.Name, w.payload), field("preview", "ResourcePreview", w.preview)}, w.after,
		[]*ast.FieldDefinition{
			field("dryRun", "Boolean!", "Whether nothing was written."),
			field("warnings", "[Warning!]!", "What the caller should know though the change was made."),
		},
	)...))
	d.mutation = append(d.mutation, field(w.name, typ+"Payload", w.about, argument("input", typ+"Input!", "Which resource, and what it becomes.")))
}

func subKind(k *Kind, more string) []*ast.FieldDefinition {
	if len(k.SubKinds) == 0 {
		return nil
	}
	return []*ast.FieldDefinition{field("subKind", "String", "Variety within the kind. One of "+strings.Join(k.SubKinds, ", ")+"."+more)}
}

// newMetadata is what a caller may set of a new resource besides its spec.
func newMetadata(k *Kind) []*ast.FieldDefinition {
	return []*ast.FieldDefinition{
		field("labels", "[LabelInput!]", "Pairs to find resources by. At most 128, no two with one key."),
		field("annotations", "[AnnotationInput!]", "Pairs that tools keep for themselves. No two with one key; at most 256 KiB in all."),
		field("description", "String", "A note for people. At most 1,024 characters."),
		when(k.Expires, func() *ast.FieldDefinition {
			return field("expiresAt", "Time", "When the resource expires and is deleted. Absent: never.")
		}),
	}
}

// changedMetadata is what a caller may change of a resource besides its spec.
func changedMetadata(k *Kind) []*ast.FieldDefinition {
	return append([]*ast.FieldDefinition{
		field("labels", "[LabelInput!]", "Pairs to find resources by. They replace all. At most 128, no two with one key. Left out: unchanged; null or []: none."),
		field("annotations", "[AnnotationInput!]", "Pairs that tools keep for themselves. They replace all. No two with one key; at most 256 KiB in all. Left out: unchanged; null or []: none."),
	}, changedText(k)...)
}

// patchedMetadata is what a patch may change besides the spec.
func patchedMetadata(k *Kind) []*ast.FieldDefinition {
	return slices.Concat([]*ast.FieldDefinition{
		field("labels", "[LabelPatch!]", "Labels that change, no two with one key. The others stay; null: all are removed. At most 128 are on one resource."),
		field("annotations", "[AnnotationPatch!]", "Annotations that change, no two with one key. The others stay; null: all are removed. At most 256 KiB are on one resource."),
	}, changedText(k), finalizers(k))
}

// finalizers are the fields of a patch that change them, if the kind offers that.
func finalizers(k *Kind) []*ast.FieldDefinition {
	if !k.Has(descriptor.VerbFinalize) {
		return nil
	}
	return []*ast.FieldDefinition{
		field("addFinalizers", "[String!]", "What is to keep the resource when its deletion is requested: names like the keys of labels, no two equal. At most 64 are on one resource. One that is there already is no error. While the deletion waits, none can be added."),
		field("removeFinalizers", "[String!]", "Finalizers to remove, no two equal. At most 64. One that is not there is no error. While the deletion waits, a patch of nothing else is accepted."),
	}
}

// changedText are description and expiry in an input that changes a resource.
func changedText(k *Kind) []*ast.FieldDefinition {
	return []*ast.FieldDefinition{
		field("description", "String", "A note for people. At most 1,024 characters. Left out: unchanged; null: none."),
		when(k.Expires, func() *ast.FieldDefinition {
			return field("expiresAt", "Time", "When the resource expires and is deleted. Left out: unchanged; null: never.")
		}),
	}
}
