package kinds

import (
	"slices"
	"strings"
)

// The names in this file, and the names of the API's own types, cannot be used by catalogues: the API has them now, or
// may have them later. A test compares the tables in docs/reserved-names.md with them.

// laterTypes returns names of types that later versions of the API may have.
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

// kindFields returns the fields that every kind has.
func kindFields() []string {
	return []string{"id", "apiVersion", "kind", "subKind", "metadata", "conditions", "manifest"}
}

// laterKindFields returns more fields that every kind has, or may have in a later release.
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

// besides returns the fields that payloads and events have besides the resource, now or possibly in a later release.
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

// laterQueries returns root fields of queries that exist or may exist in a later release.
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

// commandWords returns words that the command line accepts in place of a kind.
func commandWords() []string { return []string{"all"} }

// tableColumns returns the titles of columns that all tables of the command line have or may have.
func tableColumns() []string {
	return []string{"EVENT", "NAMESPACE", "NAME", "AVAILABLE", "PROGRESSING", "AGE", "MESSAGE", "REVISION"}
}

// isReserved reports whether the name of a type is reserved for later releases.
func isReserved(name string) bool {
	return slices.Contains(laterTypes(), name) ||
		slices.ContainsFunc(reservedPrefixes(), func(prefix string) bool { return strings.HasPrefix(name, prefix) })
}

// ReservedTypes returns a function that reports whether no catalogue may have a type with a name, whatever its other
// types are.
func ReservedTypes() (func(name string) bool, error) {
	l, err := newLoader()
	if err != nil {
		return nil, err
	}
	return func(name string) bool { return l.reservedType(name) != "" }, nil
}
