package engine

import (
	"context"
	"maps"
)

// derivedField tells how to execute a field that the API derives for every kind. To add one, add an
// entry to the table of its type, which is in the file of that type, beside the function that
// writes the value, and declare it in graph/kinds: api.graphqls (interface Resource, or Metadata)
// and, for a resource, derived.graphqls.tmpl and kindFields, unless laterKindFields has it already.
// enginetest/reference.go answers it for the tests.
type derivedField struct {
	// compile prepares the field for the other functions; nil if nothing is needed. on is the type
	// of the object.
	compile func(c *compiler, f *field, on *typeInfo)
	// resolve reads the value of a root field, before anything is written.
	resolve func(ctx context.Context, r *run, f *field, a *resolved, args *arguments) error
	// read reads the data of a payload field after the mutation, before anything is written; nil if
	// nothing is needed.
	read func(ctx context.Context, r *run, f *field, w *written)
	// write appends the value to the answer.
	write fieldWriter
}

// A fieldWriter appends the value of a field to the answer. If it returns false, the value is null, and the caller
// drops the bytes that it has appended. If the schema does not allow null, the nearest enclosing value that may be null
// becomes null (GraphQL, October 2021, section 6.4.4). The other fields are still written, so that all errors are
// reported.
type fieldWriter func(ctx context.Context, r *run, buf []byte, f *field, src source) ([]byte, bool)

// fieldTable has the fields of a type by their names.
type fieldTable map[string]derivedField

// derivedFields returns the tables of the types whose fields are the same for all kinds.
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

// with returns the table with the fields of another.
func (t fieldTable) with(other fieldTable) fieldTable {
	out := maps.Clone(t)
	maps.Copy(out, other)
	return out
}

// find returns the entry of a field of a type.
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

// Names of entries for fields whose names depend on the kind. No field of the API has such a name.
const (
	// singularName is the singular of the kind: network.
	singularName = "$kind"
	// deletedIDName is the id of a deleted resource: deletedNetworkId.
	deletedIDName = "deleted$KindId"
)
