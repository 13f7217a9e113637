package kinds

import (
	"slices"
	"strings"
)

// The names in this file are those that no catalogue can take, beside the types
// of the API itself: it has them, or a later release will. The tables of
// docs/kinds.md are held equal to them by a test.

// laterTypes are types that the API will have.
func laterTypes() []string {
	return []string{
		"Finalizer", "Namespace", "NamespaceConnection", "NamespaceEdge", "Event", "Manifest", "Search", "Preview",
		"Int64", "BigInt", "DateTime", "Date", "Duration", "Map", "Upload", "UserError",
	}
}

// reservedPrefixes begin names of types that the API has or will have.
func reservedPrefixes() []string {
	return []string{"Access", "Dependency", "Dependent", "Kind", "Resource", "Revealed"}
}

// kindFields are the fields of every kind.
func kindFields() []string {
	return []string{"id", "apiVersion", "kind", "subKind", "metadata", "conditions", "manifest"}
}

// laterKindFields are fields that every kind will have.
func laterKindFields() []string {
	return []string{
		"specJSON", "statusJSON", "dependencies", "dependents", "blockedBy", "allowed", "history",
		"apiGroup", "version", "name", "namespace", "labels", "annotations", "revision", "events", "changes", "managedFields",
		"ownerReferences", "effectiveSpec", "diff", "summary", "children", "updatedBy", "resourceService",
	}
}

// besides are the fields that stand beside the one of the kind in a payload
// or event, now or in a later release.
func besides() []string {
	return []string{
		"type", "cursor", "revision", "clientMutationId", "warnings", "state", "created", "blockedBy", "outcome", "dryRun", "preview", "path",
	}
}

// laterQueries are fields that Query has or will have.
func laterQueries() []string {
	return []string{
		"reveal", "dependencyTree", "viewer", "access", "kind", "namespace", "namespaces", "search", "events", "summary", "catalogue", "changes",
		"version", "history",
	}
}

// commandWords stand for kinds on the command line, and name none.
func commandWords() []string { return []string{"all"} }

// tableColumns are those of the command line's own tables.
func tableColumns() []string {
	return []string{"EVENT", "NAMESPACE", "NAME", "AVAILABLE", "PROGRESSING", "AGE", "MESSAGE", "REVISION"}
}

// isReserved says whether the API will have a type of that name, or of names
// that begin like it.
func isReserved(name string) bool {
	return slices.Contains(laterTypes(), name) ||
		slices.ContainsFunc(reservedPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
