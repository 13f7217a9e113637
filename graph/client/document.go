package client

import "strings"

// The documents of the client do not depend on arguments. So all of them can be registered with a gateway in advance,
// see [Documents].

// kindsDocument queries the kinds of the catalogue.
const kindsDocument = `query Kinds($described: Boolean!) {
  kinds {
    name singular plural shortNames group apiVersion scope verbs controlled
    description @include(if: $described)
    subKinds @include(if: $described)
    expires @include(if: $described)
    fields {
      apiPath: path path: storedPath type list manifestAt mergeInto
      enumValues { name stored description @include(if: $described) }
      description @include(if: $described)
      required @include(if: $described)
      immutable @include(if: $described)
      writeOnly
      listType @include(if: $described)
      keys @include(if: $described)
      default @include(if: $described)
      deprecationReason @include(if: $described)
      limits @include(if: $described) {
        minLength maxLength pattern format min max in minItems maxItems unique minProperties maxProperties
        keyMinLength keyMaxLength keyPattern
      }
    }
    filterableFields { path sortable }
    columns { title path wide }
    references @include(if: $described) { path kind field inverse guarded }
  }
}`

// kindStatesDocument queries the properties of kinds that change while a catalogue is served.
const kindStatesDocument = `query KindStates { kinds { name storedBytes service { name state lagSeconds followed } } }`

// resourceParts selects a whole resource, or only its manifest, or only its names.
const resourceParts = `fragment Parts on Resource {
  id kind
  metadata {
    namespace name uid revision generation createdAt updatedAt updatedBy expiresAt deletionRequestedAt finalizers
    labels { key value }
    annotations @include(if: $whole) { key value }
    description @include(if: $whole)
  }
  subKind @include(if: $whole)
  specJSON @include(if: $whole)
  statusJSON @include(if: $whole)
  manifest(format: $format) @include(if: $manifest)
}`

const getDocument = `query Get($kind: String!, $namespace: String, $name: String!, $whole: Boolean!, $manifest: Boolean!, $format: ManifestFormat) {
  resource(kind: $kind, namespace: $namespace, name: $name) { ...Parts }
}
` + resourceParts

const revealDocument = `query Reveal($kind: String!, $namespace: String, $name: String!) {
  reveal(kind: $kind, namespace: $namespace, name: $name) {
    resourceId kind namespace name uid revision
    values { path key value encoding }
  }
}`

const treeDocument = `query Tree($id: ID!, $direction: DependencyDirection!, $depth: Int!, $blockers: Int!) {
  dependencyTree(id: $id, direction: $direction, depth: $depth) {
    root { ...Node }
    held: root { resource { blockedBy(first: $blockers) { totalCount hiddenCount nodes { kind namespace name } } } }
    dependencies { ...Node }
    dependents { ...Node }
    truncated
  }
}
fragment Node on DependencyNode {
  resourceId kind namespace name level from path guarded state cycle
  resource { metadata { deletionRequestedAt } }
}`

const viewerDocument = `query Viewer { viewer { name source groups expiresAt } }`

const accessDocument = `query Access($kind: String, $namespace: String, $name: String) {
  access(kind: $kind, namespace: $namespace, name: $name)
}`

const accessGrantsDocument = `query AccessGrants($verb: AccessVerb!, $kind: String, $namespace: String, $name: String) {
  accessGrants(verb: $verb, kind: $kind, namespace: $namespace, name: $name) { binding role rule users groups }
}`

const allowedDocument = `query Allowed { kinds { kind: name verbs: allowed } access }`

// positionDocument queries the present cursor.
const positionDocument = `query Position($kind: String!, $namespace: String) {
  resources(kind: $kind, namespace: $namespace, first: 0) { changeCursor }
}`

const unreadableCountDocument = `query UnreadableCount($kind: String!, $namespace: String) {
  resources(kind: $kind, namespace: $namespace, first: 0) { unreadableCount }
}`

const unreadablesDocument = `query Unreadables($kind: String!, $namespace: String) {
  unreadables(kind: $kind, namespace: $namespace) { kind namespace name reason }
}`

const eventsDocument = `subscription Events($namespace: String, $after: String) {
  event: resourceChanges(namespace: $namespace, after: $after) { type cursor revision resourceId }
}`

const updateKindDocument = `mutation UpdateKind($input: UpdateKindInput!) {
  updateKind(input: $input) { kind { name controlled } }
}`

const applyDocument = `mutation Apply($input: ApplyManifestInput!) {
  applyManifest(input: $input) { outcome warnings { code message field } resource { kind metadata { namespace name uid revision createdAt } manifest(format: YAML) } preview { kind namespace name uid manifest(format: YAML) } }
}`

// manyChangesDocument subscribes to the changes of several kinds.
const manyChangesDocument = `subscription ManyChanges($kinds: [String!], $namespace: String, $filter: ResourceFilter, $after: String, $snapshot: Boolean, $whole: Boolean!, $manifest: Boolean!, $format: ManifestFormat) {
  event: resourceChanges(kinds: $kinds, namespace: $namespace, filter: $filter, after: $after, snapshot: $snapshot) {
    type cursor revision resourceId
    resource { ...Parts }
  }
}
` + resourceParts

// Templates of the documents that differ between kinds.
const (
	listTemplate = `query List($namespace: String, $filter: {Kind}Filter, $first: Int, $after: String, $whole: Boolean!, $manifest: Boolean!, $format: ManifestFormat) {
  list: {plural}({namespace}filter: $filter, first: $first, after: $after) {
    nodes { ...Parts }
    pageInfo { hasNextPage endCursor }
    unreadableCount
  }
}
` + resourceParts
	changesTemplate = `subscription Changes($namespace: String, $name: String, $filter: {Kind}Filter, $after: String, $snapshot: Boolean, $whole: Boolean!, $manifest: Boolean!, $format: ManifestFormat) {
  event: {singular}Changes({namespace}name: $name, filter: $filter, after: $after, snapshot: $snapshot) {
    type cursor revision resourceId
    resource: {singular} { ...Parts }
  }
}
` + resourceParts
	deleteTemplate = `mutation Delete($input: Delete{Kind}Input!) {
  delete: delete{Kind}(input: $input) {
    state
    resource: {singular} { metadata { namespace uid finalizers } }
    preview { namespace uid }
    blockedBy { totalCount hiddenCount nodes { kind namespace name path state guarded } }
  }
}`
	metadataTemplate = `mutation PatchMetadata($input: Patch{Kind}Input!) {
  update: patch{Kind}(input: $input) { written: {singular} { metadata { revision } } }
}`
	statusTemplate = `mutation UpdateStatus($input: Update{Kind}StatusInput!) {
  update: update{Kind}Status(input: $input) { written: {singular} { metadata { revision } } }
}`
)

// document returns the document that a template makes for the kind.
func (k Kind) document(template string) string {
	namespace := "namespace: $namespace, "
	if k.Scope == "GLOBAL" {
		namespace = ""
		template = strings.Replace(template, "$namespace: String, ", "", 1)
	}
	return strings.NewReplacer(
		"{Kind}", k.Name, "{singular}", k.Singular, "{plural}", k.Plural, "{namespace}", namespace,
	).Replace(template)
}

// Documents returns all documents that a client sends to a gateway with these kinds, except those that programs pass to
// [Client.Do].
func Documents(kinds []Kind) []string {
	out := []string{
		kindsDocument,
		kindStatesDocument,
		getDocument,
		revealDocument,
		treeDocument,
		positionDocument,
		unreadableCountDocument,
		unreadablesDocument,
		eventsDocument,
		viewerDocument,
		accessDocument,
		accessGrantsDocument,
		allowedDocument,
		updateKindDocument,
		applyDocument,
		manyChangesDocument,
	}
	for _, k := range kinds {
		for _, of := range []struct{ verb, template string }{
			{"LIST", listTemplate}, {"WATCH", changesTemplate}, {"DELETE", deleteTemplate},
			{"STATUS", statusTemplate}, {"PATCH", metadataTemplate},
		} {
			if k.Offers(of.verb) {
				out = append(out, k.document(of.template))
			}
		}
	}
	return out
}
