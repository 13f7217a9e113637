package kinds

import (
	"slices"
	"strings"
)

// No catalogue can use the names in this file, nor those of the API's own types: the API has them, or a later
// release will. A test compares the tables of docs/kinds.md with them.

// laterTypes returns names of types that a later API may have.
func laterTypes() []string {
	return []string{
		"Finalizer", "Namespace", "NamespaceConnection", "NamespaceEdge", "Event", "Manifest", "Search", "Preview",
		"Int64", "BigInt", "DateTime", "Date", "Duration", "Map", "Upload", "UserError",
	}
}

// reservedPrefixes returns the prefixes of reserved type names.
func reservedPrefixes() []string {
	return []string{"Access", "Dependency", "Dependent", "Kind", "Resource", "Revealed"}
}

// kindFields returns the fields of every kind.
func kindFields() []string {
	return []string{"id", "apiVersion", "kind", "subKind", "metadata", "conditions", "manifest"}
}

// laterKindFields returns the other fields that the API gives to every kind, now or in a later
// release.
func laterKindFields() []string {
	return []string{
		"specJSON",
		"statusJSON",
		"dependencies",
		"dependents",
		"blockedBy",
		"allowed",
		"history",
		"apiGroup",
		"version",
		"name",
		"namespace",
		"labels",
		"annotations",
		"revision",
		"events",
		"changes",
		"managedFields",
		"ownerReferences",
		"effectiveSpec",
		"diff",
		"summary",
		"children",
		"updatedBy",
		"resourceService",
	}
}

// besides returns the fields next to the resource in a payload or event, now or in a later
// release.
func besides() []string {
	return []string{
		"type",
		"cursor",
		"revision",
		"clientMutationId",
		"warnings",
		"state",
		"created",
		"blockedBy",
		"outcome",
		"dryRun",
		"preview",
		"path",
	}
}

// laterQueries returns fields that Query has or will have.
func laterQueries() []string {
	return []string{
		"reveal",
		"dependencyTree",
		"viewer",
		"access",
		"kind",
		"namespace",
		"namespaces",
		"search",
		"events",
		"summary",
		"catalogue",
		"changes",
		"version",
		"history",
		"unreadables",
	}
}

// commandWords returns words that the command line accepts instead of a kind.
func commandWords() []string { return []string{"all"} }

// tableColumns returns the columns of the command line's own tables.
func tableColumns() []string {
	return []string{"EVENT", "NAMESPACE", "NAME", "AVAILABLE", "PROGRESSING", "AGE", "MESSAGE", "REVISION"}
}

// isReserved reports whether a name of a type is reserved for later releases.
func isReserved(name string) bool {
	return slices.Contains(laterTypes(), name) ||
		slices.ContainsFunc(reservedPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}
