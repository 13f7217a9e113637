package kinds

import (
	"fmt"
	"slices"
	"strings"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// What descriptions of several fields say.
const (
	aboutSpec      = "Desired state: what callers set."
	aboutStatus    = "Observed state: what a controller reports."
	aboutName      = "Name of the resource. A DNS-1123 subdomain of at most 253 characters"
	aboutNamespace = "A DNS label of at most 63 characters."
	aboutRevision  = "Revision that the change is based on; opaque, from metadata.revision. A change of the spec since then is a CONFLICT."
)

// aboutID says what an id stands for.
func aboutID(k *Kind) string {
	if k.namespaced() {
		return "Global id of the " + k.Name + ", instead of namespace and name; opaque."
	}
	return "Global id of the " + k.Name + ", instead of its name; opaque."
}

// kind derives the types and root fields of a kind.
func (d *derivation) kind(k *Kind) {
	d.resource(k)
	if k.Has(descriptor.VerbList) {
		d.connection(k)
	}
	if k.Has(descriptor.VerbList) || k.Has(descriptor.VerbWatch) {
		d.add(kindFilter(k))
	}
	if k.Has(descriptor.VerbWatch) {
		d.add(object(k.Name+"Change", "One change of a resource of kind "+k.Name+", or a mark.",
			field("type", "ChangeType!", "What the change did, or what the mark says."),
			field("cursor", "String", "Resumes the stream after this event; opaque."),
			field("revision", "String", "Revision of the change; null for a mark, and if only the rights of the caller have changed."),
			field("resourceId", "ID", "Global id of the resource; null for a mark."),
			field(k.Singular, k.Name, "The resource at that revision; for DELETED its last state, or null if that cannot be read, or the caller may see it no\nlonger. Null for a mark."),
		))
	}
	d.writes(k)
	d.roots(k)
}

func (d *derivation) add(defs ...*ast.Definition) { d.definitions = append(d.definitions, defs...) }

// about is the author's description of a field of the kind, or one for all kinds.
func (k *Kind) about(name, otherwise string) string {
	if f := k.Definition.Fields.ForName(name); f != nil && f.Description != "" {
		return f.Description
	}
	return otherwise
}

// resource derives the kind's own type.
func (d *derivation) resource(k *Kind) {
	title := k.Description
	if title == "" {
		title = "A resource of kind " + k.Name + "."
	}
	def := object(k.Name, title,
		field("id", "ID!", "Global id: opaque, the same in every version of the API."),
		field("kind", "String!", "Name of the kind: "+k.Name+"."),
		field("subKind", "String", "Variety within the kind, for kinds that have varieties."),
		field("apiVersion", "String!", "The apiVersion of the resource's manifest: the group of its kind and the version that it was stored in."),
		field("metadata", "Metadata!", "What the gateway knows of every resource."),
		field("spec", k.Spec.Name+"!", k.about("spec", aboutSpec)),
		when(k.Status != nil, func() *ast.FieldDefinition {
			return field("status", k.Status.Name, k.about("status", aboutStatus))
		}),
		field("specJSON", "JSON!", "The spec in stored form, without write-only fields, for programs that know no kind."),
		field("statusJSON", "JSON", "The status in stored form, for programs that know no kind; null if there is none."),
		field("conditions", "[Condition!]", "The conditions of the status, in the order in which they are stored; null: the kind has none."),
		readable("allowed", "[AccessVerb!]", "What the caller may do with the resource, in the order of AccessVerb."),
		readable("dependencies", "DependencyConnection", "What the resource refers to, in the order in which its kind declares the references, then of the names.", paging("References")...),
		readable("dependents", "DependencyConnection", "What refers to the resource, in the order of kind, namespace, name and path.", paging("References")...),
		readable("blockedBy", "DependencyConnection", "What relies on the resource by a guarded reference, also what cannot be read or is of a kind that the catalogue does not have. While anything does, a deletion of the resource is PENDING. In the order of kind, namespace, name and path.", paging("References")...),
	)
	def.Interfaces = []string{"Node", "Resource"}
	for _, r := range referencesOn(d.owners[k.Name]) {
		def.Fields = append(def.Fields, referenceField(r))
	}
	refs, from := d.inverses(k)
	for i, r := range refs {
		o := from[i]
		about := fmt.Sprintf("Resources of kind %s whose %s names this one. Without orderBy they are in the order of their names.", o.Name, r.APIPath)
		var namespace ast.ArgumentDefinitionList
		if o.namespaced() && !k.namespaced() {
			about = fmt.Sprintf("Resources of kind %s, of one namespace or of all, whose %s names this one. Without orderBy they are in the order of namespace and name.", o.Name, r.APIPath)
			namespace = namespaceArgument("Namespace to list.")
		}
		f := readable(r.Inverse, o.Name+"Connection", about, slices.Concat(namespace, listingArguments(o), pagingArguments())...)
		f.Directives = append(f.Directives, deprecated(r.Deprecated)...)
		def.Fields = append(def.Fields, f)
	}
	def.Fields = append(def.Fields, field("manifest", "String!", "A manifest that leaves the resource UNCHANGED when it is applied.",
		otherwise(argument("format", "ManifestFormat", "Format of the manifest. null: YAML."), ast.EnumValue, "YAML")))
	d.add(def)
}

// referenceField is the field that a reference derives.
func referenceField(r Reference) *ast.FieldDefinition {
	name := r.APIPath[strings.LastIndex(r.APIPath, ".")+1:]
	f := field(r.Field, r.Kind, fmt.Sprintf("The %s that %s names; null if there is none.", r.Kind, name))
	if r.List {
		f = readable(r.Field, r.Kind+"Connection",
			fmt.Sprintf("Resources of kind %s that %s names and that exist, in the order of their names.", r.Kind, name), pagingArguments()...)
	}
	f.Directives = append(f.Directives, deprecated(r.Deprecated)...)
	return f
}

// namespaceArgument is the argument of what lists resources of one namespace or of all.
func namespaceArgument(about string) ast.ArgumentDefinitionList {
	return ast.ArgumentDefinitionList{argument("namespace", "String", about+" "+aboutNamespace+" null: all.")}
}

func listingArguments(k *Kind) ast.ArgumentDefinitionList {
	return ast.ArgumentDefinitionList{
		argument("filter", k.Name+"Filter", "Which resources are wanted; null: all."),
		argument("orderBy", "["+k.Name+"Order!]", "What the order goes by, the most important first. At most 5 elements."),
	}
}

func pagingArguments() ast.ArgumentDefinitionList { return paging("Resources") }

// paging are the arguments of a connection of so-called things.
func paging(things string) ast.ArgumentDefinitionList {
	return ast.ArgumentDefinitionList{
		argument("first", "Int", things+" wanted from the front, 0 to 1,000. Without first and last: 100. Excludes last."),
		argument("after", "String", "Only what follows this cursor; opaque, from pageInfo or an edge of this field with the same arguments."),
		argument("last", "Int", things+" wanted from the end, 0 to 1,000. Excludes first."),
		argument("before", "String", "Only what precedes this cursor; opaque, from pageInfo or an edge of this field with the same arguments."),
	}
}

// connection derives the types of pages and orders.
func (d *derivation) connection(k *Kind) {
	place := "name"
	if k.namespaced() {
		place = "namespace and name"
	}
	fields := &ast.Definition{Kind: ast.Enum, Name: k.Name + "OrderField", Description: "The fields that orders of resources of kind " + k.Name + " can name."}
	value := func(name, about string) {
		fields.EnumValues = append(fields.EnumValues, &ast.EnumValueDefinition{Name: name, Description: about})
	}
	value("NAME", "Name of the resource.")
	if k.namespaced() {
		value("NAMESPACE", "Namespace of the name.")
	}
	value("CREATED_AT", "When the resource was created.")
	value("UPDATED_AT", "When the resource was last changed.")
	for _, i := range k.FilterableFields {
		if i.Sortable {
			path := k.APIPath(i.Path)
			value(OrderValue(path), "The field "+path+".")
		}
	}
	direction := field("direction", "OrderDirection", "Which end comes first. null: ASC.")
	direction.DefaultValue = &ast.Value{Kind: ast.EnumValue, Raw: "ASC"}
	d.add(
		object(k.Name+"Connection", "A page of "+k.Plural+".",
			field("edges", "["+k.Name+"Edge!]!", "The resources of the page, each with its cursor."),
			field("nodes", "["+k.Name+"!]!", "The resources of the page."),
			field("pageInfo", "PageInfo!", "Where the page lies in the connection."),
			readable("totalCount", "Int", "Number of resources in the whole connection. Counted only if it is selected."),
			field("changeCursor", "String", "Cursor for the argument after of a stream of changes: taken before the page was\nread, so that the stream sends every change that the page does not show. A client\nthat reads several pages uses that of the first."),
		),
		object(k.Name+"Edge", "One resource of a page.",
			field("cursor", "String!", "Place of the resource in the connection; opaque."),
			field("node", k.Name+"!", "The resource."),
		),
		input(k.Name+"Order", "One criterion of an order. Resources that it does not tell apart are in the order of "+place+".",
			field("field", k.Name+"OrderField!", "What the order goes by."),
			direction,
		),
		fields,
	)
}

// kindFilter derives the filter of a kind.
func kindFilter(k *Kind) *ast.Definition {
	name := k.Name + "Filter"
	return input(name, "Keeps resources of kind "+k.Name+" for which everything given holds; null\ncounts as left out. and, or and not are nested at most 5 deep, with\nat most 50 conditions in all.",
		field("and", "["+name+"!]", "All of these hold. At most 50 elements."),
		field("or", "["+name+"!]", "One of these holds. At most 50 elements."),
		field("not", name, "This does not hold."),
		field("name", "StringFilter", "Name of the resource."),
		when(k.namespaced(), func() *ast.FieldDefinition { return field("namespace", "StringFilter", "Namespace of the name.") }),
		field("labels", "[LabelFilter!]", "All of these hold for the labels. At most 50 elements."),
		field("createdAt", "TimeFilter", "When the resource was created."),
		field("updatedAt", "TimeFilter", "When the resource was last changed."),
		when(k.HasConditions(), func() *ast.FieldDefinition {
			return field("conditions", "[ConditionFilter!]", "All of these hold for the conditions of the status. At most 50 elements.")
		}),
		when(filtered(k, "spec"), func() *ast.FieldDefinition {
			return field("spec", FilterType(k.Spec.Name), k.about("spec", aboutSpec))
		}),
		when(k.Status != nil && filtered(k, "status"), func() *ast.FieldDefinition {
			return field("status", FilterType(k.Status.Name), k.about("status", aboutStatus))
		}),
	)
}

// roots derives the root fields that read and follow a kind.
func (d *derivation) roots(k *Kind) {
	namespace := func(about string) ast.ArgumentDefinitionList {
		if !k.namespaced() {
			return nil
		}
		return namespaceArgument(about)
	}
	if k.Has(descriptor.VerbGet) {
		args := ast.ArgumentDefinitionList{argument("id", "ID", aboutID(k))}
		if k.namespaced() {
			args = append(args, otherwise(argument("namespace", "String", "Namespace of the name. "+aboutNamespace+" null: default."), ast.StringValue, descriptor.DefaultNamespace))
		}
		args = append(args, argument("name", "String", aboutName+". Either it or id is given."))
		d.query = append(d.query, field(k.Singular, k.Name, "The "+k.Name+" of that id or name, null if there is none.", args...))
	}
	if k.Has(descriptor.VerbList) {
		of, order := "", "name"
		if k.namespaced() {
			of, order = ", of one namespace or of all", "namespace and name"
		}
		d.query = append(d.query, readable(k.Plural, k.Name+"Connection",
			"Resources of kind "+k.Name+of+". Without orderBy they are in the order of "+order+".",
			slices.Concat(namespace("Namespace to list."), listingArguments(k), pagingArguments())...))
		d.query = append(d.query, summaryField(k, namespace("Namespace to count in.")))
	}
	if k.Has(descriptor.VerbWatch) {
		args := slices.Concat(ast.ArgumentDefinitionList{argument("id", "ID", aboutID(k)+" null: all.")}, namespace("Namespace to follow."))
		args = append(args,
			argument("name", "String", "Name to follow. A DNS-1123 subdomain of at most 253 characters. null: all."),
			argument("filter", k.Name+"Filter", "Which resources to follow; null: all."),
			argument("after", "String", "Cursor of the last event seen, or changeCursor of a connection; opaque. null: from now on."),
			otherwise(argument("snapshot", "Boolean", "Whether the state comes first if the stream does not continue from a cursor. null: false."), ast.BooleanValue, "false"))
		d.subscription = append(d.subscription, field(k.Singular+"Changes", k.Name+"Change!",
			"Changes of resources of kind "+k.Name+", as they happen. With `after`, the\nchanges after that cursor come first. If some of them are no longer available,\nthen or later, the stream sends the whole state with `snapshot`, and ends with\nPOSITION_EXPIRED without. With `snapshot` and without `after` the state comes first:\nRESET, SNAPSHOT for each resource, and IN_SYNC. Idle streams get BOOKMARK.\nWith `filter` a resource that no longer matches is DELETED, and one that begins\nto match is ADDED; with a filter on updatedAt it may be MODIFIED, and one that\nwas never shown DELETED.", args...))
	}
}
