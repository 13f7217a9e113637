package enginetest

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/kinds"
)

// root resolves a root field.
func (x *execution) root(def *ast.Definition, f *ast.Field, args map[string]any) (any, error) {
	if def == x.Schema.Mutation {
		return x.mutate(f, args)
	}
	text := func(name string) string { s, _ := args[name].(string); return s }
	get := func(name string) (any, error) {
		k, unknown := x.Service.Kind(name)
		if unknown == nil {
			name = k.Name
		}
		given := map[string]any{"id": args["id"], "name": args["name"]}
		if a := f.Arguments.ForName("namespace"); a != nil {
			given["namespace"], _ = a.Value.Value(x.vars)
		}
		id, err := x.identity(name, given)
		if unknown != nil && given["id"] != nil && given["name"] == nil && given["namespace"] == nil {
			return nil, unknown
		}
		if err != nil {
			return nil, err
		}
		if ns, ok := args["namespace"].(string); ok && id.Namespace == nil && args["id"] == nil {
			id.Namespace = &ns
		}
		r, err := x.Service.Reader.Get(x.ctx, id)
		return x.resource(r), err
	}
	switch f.Name {
	case "namespaces":
		return x.namespaces(args)
	case "node":
		r, err := x.Service.Reader.Node(x.ctx, text("id"))
		return x.resource(r), err
	case "nodes":
		return x.nodes(args["ids"])
	case "resource":
		return get(text("kind"))
	case "resources":
		return x.list(text("kind"), f, args, "", query.Parent{}, nil)
	}
	for _, k := range x.Catalogue.Kinds {
		switch f.Name {
		case k.Singular:
			return get(k.Name)
		case k.Plural:
			return x.list(k.Name, f, args, "", query.Parent{}, nil)
		case k.Plural + "Summary":
			return x.summary(k.Name, f, args)
		}
	}
	return nil, fmt.Errorf("reference: no way to resolve %s.%s", def.Name, f.Name)
}

func (x *execution) nodes(ids any) (any, error) {
	list := graphql.CoerceList(ids)
	if len(list) > 100 {
		return nil, &failure.Error{Message: "ids: must have at most 100 elements"}
	}
	out := make([]any, len(list))
	for i, id := range list {
		key, err := x.Service.Reader.NodeKey(x.ctx, fmt.Sprint(id))
		if err != nil {
			out[i] = err
			continue
		}
		found, err := x.Service.Reader.Lookup(x.ctx, []backend.Key{key})
		if err != nil {
			return nil, err
		}
		out[i] = x.resource(found[0])
	}
	return out, nil
}

// list reads a page of resources for a connection.
func (x *execution) list(kind string, f *ast.Field, args map[string]any, namespace string, parent query.Parent, filter any) (any, error) {
	req := query.ListRequest{Kind: kind, Parent: parent, Filter: filter, ChangeCursor: true}
	if namespace != "" {
		req.Namespace = &namespace
	}
	text := func(name string, to **string) {
		if s, ok := args[name].(string); ok {
			*to = &s
		}
	}
	if f.Definition.Arguments.ForName("namespace") != nil {
		text("namespace", &req.Namespace)
	}
	if err := paging(args, place{&req.First, &req.Last, &req.After, &req.Before}); err != nil {
		return nil, err
	}
	if def := f.Definition.Arguments.ForName("filter"); def != nil && args["filter"] != nil {
		var err error
		if req.Filter, err = x.input(def.Type, args["filter"]); err != nil {
			return nil, err
		}
	}
	for _, o := range graphql.CoerceList(args["orderBy"]) {
		o, _ := o.(map[string]any)
		req.OrderBy = append(req.OrderBy, query.Order{Field: x.orderField(kind, fmt.Sprint(o["field"])), Descending: o["direction"] == "DESC"})
	}
	page, err := x.Service.Reader.List(x.ctx, req)
	if err != nil {
		return nil, x.ofFilter(kind, err)
	}
	return page, nil
}

// ofFilter replaces stored names by API names in an error about a filter.
func (x *execution) ofFilter(kind string, err error) error {
	var known *failure.Error
	if k := x.kind(kind); k != nil && errors.As(err, &known) {
		for _, part := range []string{"spec", "status"} {
			if before, path, ok := strings.Cut(known.Path, "."+part+"."); ok {
				renamed := before + "." + k.APIPath(part+"."+path)
				return &failure.Error{Message: strings.ReplaceAll(known.Message, known.Path, renamed)}
			}
		}
	}
	return err
}

// namespaces resolves a page of namespaces to plain objects.
func (x *execution) namespaces(args map[string]any) (any, error) {
	var at place
	var first, last *int
	var after, before *string
	at = place{&first, &last, &after, &before}
	if err := paging(args, at); err != nil {
		return nil, err
	}
	p, err := x.Service.Reader.Namespaces(x.ctx, first, after)
	if err != nil {
		return nil, err
	}
	total, err := p.TotalCount(x.ctx)
	if err != nil {
		return nil, err
	}
	edges, nodes := []any{}, []any{}
	info := map[string]any{"hasNextPage": p.More, "hasPreviousPage": p.Before, "startCursor": nil, "endCursor": nil}
	for i, ns := range p.Namespaces {
		counts := []any{}
		for _, c := range ns.Counts {
			counts = append(counts, map[string]any{"kind": c.Kind, "count": c.Count})
		}
		node := map[string]any{"name": ns.Name, "counts": counts}
		if i == 0 {
			info["startCursor"] = p.Cursor(0)
		}
		info["endCursor"] = p.Cursor(i)
		edges, nodes = append(edges, map[string]any{"cursor": p.Cursor(i), "node": node}), append(nodes, node)
	}
	return map[string]any{"edges": edges, "nodes": nodes, "pageInfo": info, "totalCount": total}, nil
}

// summary resolves the summary of a kind to plain objects.
func (x *execution) summary(kind string, f *ast.Field, args map[string]any) (any, error) {
	req := query.SummaryRequest{Kind: kind}
	if namespace, ok := args["namespace"].(string); ok {
		req.Namespace = &namespace
	}
	if args["filter"] != nil {
		var err error
		if req.Filter, err = x.input(f.Definition.Arguments.ForName("filter").Type, args["filter"]); err != nil {
			return nil, err
		}
	}
	for name, to := range map[string]*[]string{"by": &req.By, "conditions": &req.Conditions} {
		for _, text := range graphql.CoerceList(args[name]) {
			*to = append(*to, fmt.Sprint(text))
		}
	}
	s, err := x.Service.Reader.Summary(x.ctx, req)
	if err != nil {
		return nil, x.ofFilter(kind, err)
	}
	groups := []any{}
	for _, g := range s.Groups {
		keys := []any{}
		for i, path := range s.Paths {
			key := map[string]any{"path": path, "value": nil}
			if g.Values[i] != nil {
				key["value"] = *g.Values[i]
			}
			keys = append(keys, key)
		}
		groups = append(groups, map[string]any{"keys": keys, "count": g.Count})
	}
	unreadable, err := s.Unreadable(x.ctx)
	return map[string]any{"groups": groups, "unreadableCount": unreadable}, err
}

// orderField returns the path of the field that a value of the order enum of a kind stands for.
func (x *execution) orderField(kind, name string) string {
	for _, path := range []string{"name", "namespace", "createdAt", "updatedAt"} {
		if kinds.OrderValue(path) == name {
			return path
		}
	}
	k := x.kind(kind)
	i := slices.IndexFunc(k.FilterableFields, func(f descriptor.FilterableField) bool { return kinds.OrderValue(k.APIPath(f.Path)) == name })
	return k.FilterableFields[i].Path
}

// input converts an input value to its stored form: enum values and field names are stored names, and maps are objects.
func (x *execution) input(t *ast.Type, v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	if t.Elem != nil {
		list := graphql.CoerceList(v)
		if name := t.Elem.NamedType; name == "MapEntryInput" || name == "MapEntryPatch" {
			return x.entries(list)
		}
		out := []any{}
		for _, e := range list {
			one, err := x.input(t.Elem, e)
			if err != nil {
				return nil, err
			}
			out = append(out, one)
		}
		return out, nil
	}
	def := x.Schema.Types[t.NamedType]
	switch {
	case def.Kind == ast.InputObject:
		out := map[string]any{}
		for name, e := range v.(map[string]any) {
			field := def.Fields.ForName(name)
			one, err := x.input(field.Type, e)
			if err != nil && kinds.IsWriteOnly(field) {
				err = errors.New(kinds.Concealed)
			}
			if err != nil {
				return nil, err
			}
			out[x.storedName(t.NamedType, name)] = one
		}
		return out, nil
	case def.Kind == ast.Enum:
		for _, k := range x.Catalogue.Kinds {
			if stored := storedForm(k.Spec, t.NamedType, v); stored != "" {
				return stored, nil
			}
		}
		return v, nil
	}
	switch t.NamedType {
	case "Int":
		return graphql.UnmarshalInt32(v)
	case "SafeInt":
		return engine.UnmarshalSafeInt(v)
	case "Float":
		return graphql.UnmarshalFloat(v)
	case "Time":
		at, err := engine.UnmarshalTime(v)
		return at.UTC(), err
	}
	return v, nil
}

func (x *execution) entries(list []any) (any, error) {
	out := map[string]any{}
	for _, e := range list {
		m := e.(map[string]any)
		key := m["key"].(string)
		if _, twice := out[key]; twice {
			return nil, fmt.Errorf("entry %.64q is given twice", key)
		}
		out[key] = m["value"]
	}
	return out, nil
}

// storedName returns the stored name of a field of an input type.
func (x *execution) storedName(input, name string) string {
	var found string
	var look func(s *descriptor.Shape)
	look = func(s *descriptor.Shape) {
		if s == nil {
			return
		}
		of := slices.Contains([]string{kinds.InputType(s.Name), kinds.PatchType(s.Name), kinds.FilterType(s.Name)}, input)
		for i := range s.Fields {
			if f := &s.Fields[i]; of && f.InAPI() == name {
				found = f.Name
			}
			look(s.Fields[i].Shape)
		}
	}
	for _, k := range x.Catalogue.Kinds {
		look(k.Spec)
		look(k.Status)
	}
	if found == "" {
		return name
	}
	return found
}

// storedForm returns the stored form of an enum value; "" if no field of the shape has the enum.
func storedForm(s *descriptor.Shape, enum string, v any) string {
	for _, f := range s.Fields {
		if f.Enum != nil && f.Enum.Name == enum {
			for _, e := range f.Enum.Values {
				if e.Name == v {
					return e.Stored
				}
			}
		}
		if f.Shape != nil {
			if stored := storedForm(f.Shape, enum, v); stored != "" {
				return stored
			}
		}
	}
	return ""
}

// mutate executes a root field of a mutation.
func (x *execution) mutate(f *ast.Field, args map[string]any) (any, error) {
	read, err := x.input(f.Definition.Arguments.ForName("input").Type, args["input"])
	if err != nil {
		return nil, err
	}
	in := read.(map[string]any)
	text := func(name string) string { s, _ := in[name].(string); return s }
	optional := func(name string) *string {
		if s, ok := in[name].(string); ok {
			return &s
		}
		return nil
	}
	if utf8.RuneCountInString(text("clientMutationId")) > 128 {
		return nil, &failure.Error{Message: "clientMutationId: must have at most 128 characters"}
	}
	w, err := x.write(f.Name, in, text, optional)
	if err != nil {
		return nil, err
	}
	return &payload{Written: w, id: in["clientMutationId"]}, nil
}

func (x *execution) write(name string, in map[string]any, text func(string) string, optional func(string) *string) (*service.Written, error) {
	s := x.Service
	yes := func(name string) bool { return in[name] == true }
	if name == "applyManifest" {
		return s.Writer.Apply(x.ctx, service.ApplyRequest{Manifest: text("manifest"), Namespace: optional("namespace"), ExpectedRevision: optional("expectedRevision"), IgnoreRevision: yes("ignoreRevision"), FieldManager: optional("fieldManager"), CreateOnly: yes("createOnly"), DryRun: yes("dryRun")})
	}
	if w, err := x.writeAny(name, in, text, optional); w != nil || err != nil {
		return w, err
	}
	for _, k := range x.Catalogue.Kinds {
		if !slices.Contains([]string{"patch" + k.Name + "Status", "create" + k.Name, "update" + k.Name, "patch" + k.Name, "upsert" + k.Name, "update" + k.Name + "Status", "delete" + k.Name}, name) {
			continue
		}
		id, err := x.identity(k.Name, in)
		if err != nil {
			return nil, err
		}
		out, err := x.writeKind(&k.Kind, id, name, in)
		return out, inAPI(&k.Kind, err)
	}
	return nil, fmt.Errorf("reference: no way to execute %s", name)
}

// inAPI replaces stored names by API names in an error about values of a resource.
func inAPI(k *descriptor.Kind, err error) error {
	var known *failure.Error
	if !errors.As(err, &known) {
		return err
	}
	out := *known
	out.Violations = slices.Clone(known.Violations)
	for i := range out.Violations {
		out.Violations[i].Path = k.APIPath(out.Violations[i].Path)
	}
	return &out
}

func (x *execution) writeKind(k *descriptor.Kind, id kind.Identity, name string, in map[string]any) (*service.Written, error) {
	s := x.Service
	yes := func(name string) bool { return in[name] == true }
	text := func(name string) string { s, _ := in[name].(string); return s }
	var expected *string
	if revision, ok := in["expectedRevision"].(string); ok {
		expected = &revision
	}
	switch name {
	case "create" + k.Name:
		return s.Writer.Create(x.ctx, service.CreateRequest{Identity: id, DryRun: yes("dryRun"), Metadata: given(in), SubKind: text("subKind"), Spec: in["spec"]})
	case "update" + k.Name:
		return s.Writer.Update(x.ctx, service.UpdateRequest{Identity: id, DryRun: yes("dryRun"), Metadata: given(in), ExpectedRevision: text("expectedRevision"), Spec: in["spec"]})
	case "patch" + k.Name:
		if spec, ok := in["spec"]; ok && spec == nil {
			return nil, &failure.Error{Message: "spec: null clears nothing; leave it out, or name what changes"}
		}
		return s.Writer.Patch(x.ctx, service.PatchRequest{Identity: id, DryRun: yes("dryRun"), MetadataPatch: patched(in), ExpectedRevision: text("expectedRevision"), Patch: in["spec"]})
	case "upsert" + k.Name:
		return s.Writer.Upsert(x.ctx, service.UpsertRequest{Identity: id, DryRun: yes("dryRun"), Metadata: given(in), SubKind: text("subKind"), Spec: in["spec"]})
	case "update" + k.Name + "Status":
		return s.Writer.UpdateStatus(x.ctx, service.StatusRequest{Identity: id, DryRun: yes("dryRun"), ExpectedRevision: text("expectedRevision"), Status: in["status"]})
	case "patch" + k.Name + "Status":
		return s.Writer.PatchStatus(x.ctx, service.StatusPatchRequest{Identity: id, DryRun: yes("dryRun"), ExpectedRevision: expected, Patch: in["status"]})
	case "delete" + k.Name:
		return s.Writer.Delete(x.ctx, service.DeleteRequest{Identity: id, DryRun: yes("dryRun"), ExpectedRevision: expected})
	}
	return nil, fmt.Errorf("reference: no way to execute %s", name)
}

// writeAny executes a mutation that works for all kinds. For other mutations it returns nil and nil.
func (x *execution) writeAny(name string, in map[string]any, text func(string) string, optional func(string) *string) (*service.Written, error) {
	if !slices.Contains([]string{"patchResource", "updateResourceStatus", "deleteResource"}, name) {
		return nil, nil
	}
	key, err := x.Service.KeyOf(text("id"))
	if err != nil {
		return nil, err
	}
	id := kind.Identity{Kind: key.Kind, Name: key.Name}
	if key.Namespace != "" {
		id.Namespace = &key.Namespace
	}
	s, dry := x.Service, in["dryRun"] == true
	switch name {
	case "patchResource":
		if spec, ok := in["specJSON"]; ok && spec == nil {
			return nil, &failure.Error{Message: "specJSON: null clears nothing; leave it out, or name what changes"}
		}
		return s.Writer.Patch(x.ctx, service.PatchRequest{Identity: id, DryRun: dry, MetadataPatch: patched(in), ExpectedRevision: text("expectedRevision"), Patch: in["specJSON"]})
	case "updateResourceStatus":
		return s.Writer.UpdateStatus(x.ctx, service.StatusRequest{Identity: id, DryRun: dry, ExpectedRevision: text("expectedRevision"), Status: in["statusJSON"], Untyped: true})
	}
	return s.Writer.Delete(x.ctx, service.DeleteRequest{Identity: id, DryRun: dry, ExpectedRevision: optional("expectedRevision")})
}

// identity returns the identity of the resource that is named by id, or by namespace and name.
func (x *execution) identity(of string, given map[string]any) (kind.Identity, error) {
	id := kind.Identity{Kind: of}
	text, byID := given["id"].(string)
	name, byName := given["name"].(string)
	ns, inNamespace := given["namespace"].(string)
	switch {
	case byID && byName:
		return id, errors.New("id and name exclude each other; give one of them")
	case !byID && !byName:
		return id, errors.New("no resource is named: give id, or name")
	case byID && inNamespace:
		return id, errors.New("the id says which namespace it is; leave namespace out")
	}
	id.Name = name
	if inNamespace {
		id.Namespace = &ns
	}
	if !byID {
		return id, nil
	}
	key, err := x.Service.KeyOf(text)
	if err != nil {
		return id, err
	}
	if key.Kind != of {
		return id, fmt.Errorf("the id is that of a resource of kind %s, not of kind %s", failure.Shorten(key.Kind), of)
	}
	id.Name = key.Name
	if key.Namespace != "" {
		id.Namespace = &key.Namespace
	}
	return id, nil
}

// given returns the metadata in an input.
func given(in map[string]any) (m service.Metadata) {
	pair := func(e any) (string, string) {
		p := e.(map[string]any)
		return p["key"].(string), p["value"].(string)
	}
	if list, ok := in["labels"]; ok {
		m.Labels.Set = true
		for _, e := range graphql.CoerceList(list) {
			k, v := pair(e)
			m.Labels.Value = append(m.Labels.Value, service.Label{Key: k, Value: v})
		}
	}
	if list, ok := in["annotations"]; ok {
		m.Annotations.Set = true
		for _, e := range graphql.CoerceList(list) {
			k, v := pair(e)
			m.Annotations.Value = append(m.Annotations.Value, service.Annotation{Key: k, Value: v})
		}
	}
	if d, ok := in["description"]; ok {
		m.Description.Set = true
		m.Description.Value, _ = d.(string)
	}
	if at, ok := in["expiresAt"]; ok {
		m.ExpiresAt.Set = true
		if t, ok := at.(time.Time); ok {
			m.ExpiresAt = service.ExpiresAt(t)
		}
	}
	return m
}

// patched returns the changes of metadata in the input of a patch.
func patched(in map[string]any) service.MetadataPatch {
	same := given(map[string]any{"description": in["description"], "expiresAt": in["expiresAt"]})
	m := service.MetadataPatch{Description: same.Description, ExpiresAt: same.ExpiresAt}
	_, m.Description.Set = in["description"]
	_, m.ExpiresAt.Set = in["expiresAt"]
	pairs := func(name string) (out service.Optional[[]service.PairPatch]) {
		list, ok := in[name]
		out.Set = ok
		if list != nil {
			out.Value = []service.PairPatch{}
		}
		for _, e := range graphql.CoerceList(list) {
			p := service.PairPatch{Key: e.(map[string]any)["key"].(string)}
			if text, ok := e.(map[string]any)["value"].(string); ok {
				p.Value = &text
			}
			out.Value = append(out.Value, p)
		}
		return out
	}
	m.Labels, m.Annotations = pairs("labels"), pairs("annotations")
	for name, to := range map[string]*[]string{"addFinalizers": &m.AddFinalizers, "removeFinalizers": &m.RemoveFinalizers} {
		for _, e := range graphql.CoerceList(in[name]) {
			*to = append(*to, e.(string))
		}
	}
	return m
}
