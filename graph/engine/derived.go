package engine

import (
	"context"
	"maps"
)

// derivedField describes how to execute a field that the API derives for every kind. To add such a field:
//   - add an entry to the table of its type, which is in the file of that type, with a function that writes the value
//   - declare it in graph/kinds: in api.graphqls (interface Resource, or Metadata) and, for a field of a resource, in
//     derived.graphqls.tmpl and kindFields, unless laterKindFields already has it
//   - let enginetest/reference.go answer it for the tests
type derivedField struct {
	// compile prepares the field for the other functions. It may be nil. on is the type of the object that has the
	// field.
	compile func(c *compiler, f *field, on *typeInfo)
	// resolve reads the value of a root field, before anything is written. It is nil for fields that are not root
	// fields.
	resolve func(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error
	// read reads what a field of a mutation's payload needs, after the mutation and before anything is written. It may
	// be nil.
	read func(ctx context.Context, r *run, f *field, w *written)
	// write appends the value of the field to the answer.
	write fieldWriter
}

// A fieldWriter appends the value of a field to buf and returns the buffer. If it returns false, the value is null, and
// the caller drops what was appended. If the schema does not allow null, the nearest enclosing value that may be null
// becomes null (GraphQL, October 2021, section 6.4.4). The remaining fields are still written, so that all errors are
// reported.
type fieldWriter func(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool)

// fieldTable maps the names of a type's fields to their entries.
type fieldTable map[string]derivedField

// derivedFields returns the tables of the types whose fields do not depend on the kind.
func derivedFields() map[role]fieldTable {
	return map[role]fieldTable{
		roleResource:             resourceFields(),
		roleMetadata:             metadataFields(),
		roleEntry:                entryFields(),
		roleConnection:           connectionFields(),
		roleEdge:                 edgeFields(),
		rolePageInfo:             pageInfoFields(),
		roleDependencyConnection: dependencyConnectionFields(),
		roleDependencyEdge:       dependencyEdgeFields(),
		roleDependency:           dependencyFields(),
		rolePayload:              payloadFields(),
		rolePreview:              previewFields(),
		roleWarning:              warningFields(),
		roleChange:               changeFields(),
		roleSummary:              summaryFields(),
		roleSummaryGroup:         summaryGroupFields(),
		roleSummaryKey:           summaryKeyFields(),
		roleNamespaceConnection:  namespaceConnectionFields(),
		roleNamespaceEdge:        namespaceEdgeFields(),
		roleNamespace:            namespaceFields(),
		roleNamespaceCount:       namespaceCountFields(),
	}
}

// with returns the union of two tables.
func (t fieldTable) with(other fieldTable) fieldTable {
	out := maps.Clone(t)
	maps.Copy(out, other)
	return out
}

// find returns the entry of a field. on is the type with the field.
func (t fieldTable) find(on *typeInfo, name string) (derivedField, bool) {
	if on.kind != nil {
		for _, named := range []struct{ entry, name string }{
			{singularName, on.kind.Singular},
			{deletedIDName, "deleted" + on.kind.Name + "Id"},
		} {
			if entry, ok := t[named.entry]; ok && name == named.name {
				return entry, true
			}
		}
	}
	entry, ok := t[name]
	return entry, ok
}

// The keys of entries for fields whose names depend on the kind. No field of the API has such a name.
const (
	// singularName is the key for the field that is named after the kind in the singular, such as network.
	singularName = "$kind"
	// deletedIDName is the key for the field with the id of a deleted resource, such as deletedNetworkId.
	deletedIDName = "deleted$KindId"
)
