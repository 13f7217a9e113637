package enginetest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/kinds"
)

// Reference executes operations field by field, as chapter 6 of the GraphQL specification of October 2021 describes it.
// It reads the derived schema and the stored JSON. It is slow, and shares only the service with the engine.
type Reference struct {
	Schema    *ast.Schema
	Catalogue *kinds.Schema
	Service   *service.Service
}

// execution is the state of one call of [Reference.Execute].
type execution struct {
	*Reference
	ctx    context.Context
	doc    *ast.QueryDocument
	vars   map[string]any
	errors gqlerror.List
}

// errPropagate is returned for a value that is null although its type does not allow null, so that its parent becomes
// null. If an error is the cause, it was added before.
var errPropagate = errors.New("null propagates")

// Execute answers a query or a mutation whose document is valid.
func (r *Reference) Execute(ctx context.Context, oc *graphql.OperationContext) (json.RawMessage, gqlerror.List) {
	x := &execution{Reference: r, ctx: ctx, doc: oc.Doc, vars: oc.Variables}
	root := r.Schema.Query
	if oc.Operation.Operation == ast.Mutation {
		root = r.Schema.Mutation
	}
	data, err := x.object(root, nil, oc.Operation.SelectionSet, nil)
	if err != nil {
		return json.RawMessage("null"), x.errors
	}
	return data, x.errors
}

// group is a response name with its fields.
type group struct {
	name   string
	fields []*ast.Field
}

// collect implements CollectFields of the specification.
func (x *execution) collect(def *ast.Definition, set ast.SelectionSet, visited map[string]bool, groups []group) []group {
	for _, s := range set {
		var directives ast.DirectiveList
		switch s := s.(type) {
		case *ast.Field:
			directives = s.Directives
		case *ast.InlineFragment:
			directives = s.Directives
		case *ast.FragmentSpread:
			directives = s.Directives
		}
		skip := false
		for _, d := range directives {
			v, _ := d.Arguments.ForName("if").Value.Value(x.vars)
			skip = skip || d.Name == "skip" && v == true || d.Name == "include" && v != true
		}
		if skip {
			continue
		}
		applies := func(condition string) bool {
			return condition == "" || condition == def.Name || slices.ContainsFunc(x.Schema.PossibleTypes[condition], func(d *ast.Definition) bool { return d.Name == def.Name })
		}
		switch s := s.(type) {
		case *ast.Field:
			i := slices.IndexFunc(groups, func(g group) bool { return g.name == s.Alias })
			if i < 0 {
				i, groups = len(groups), append(groups, group{name: s.Alias})
			}
			groups[i].fields = append(groups[i].fields, s)
		case *ast.InlineFragment:
			if applies(s.TypeCondition) {
				groups = x.collect(def, s.SelectionSet, visited, groups)
			}
		case *ast.FragmentSpread:
			if f := x.doc.Fragments.ForName(s.Name); !visited[s.Name] {
				visited[s.Name] = true
				if applies(f.TypeCondition) {
					groups = x.collect(def, f.SelectionSet, visited, groups)
				}
			}
		}
	}
	return groups
}

// object implements ExecuteSelectionSet of the specification.
func (x *execution) object(def *ast.Definition, of any, set ast.SelectionSet, path ast.Path) (json.RawMessage, error) {
	out := []byte{'{'}
	failed := false
	for _, g := range x.collect(def, set, map[string]bool{}, nil) {
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(append(out, encode(g.name)...), ':')
		value, err := x.field(def, of, g, append(path[:len(path):len(path)], ast.PathName(g.name)))
		failed = failed || err != nil
		out = append(out, value...)
	}
	if failed {
		return nil, errPropagate
	}
	return append(out, '}'), nil
}

// field implements ExecuteField of the specification.
func (x *execution) field(def *ast.Definition, of any, g group, path ast.Path) (json.RawMessage, error) {
	f := g.fields[0]
	if f.Name == "__typename" {
		return encode(def.Name), nil
	}
	value, err := x.resolve(def, of, f)
	if err != nil {
		x.fail(err, path)
		value = nil
	}
	var set ast.SelectionSet
	for _, one := range g.fields {
		set = append(set, one.SelectionSet...)
	}
	out, completed := x.complete(f.Definition.Type, value, set, path)
	if completed != nil && !f.Definition.Type.NonNull {
		return json.RawMessage("null"), nil
	}
	return out, completed
}

// fail adds an error to the answer. An error with violations becomes one error for each.
func (x *execution) fail(err error, path ast.Path) {
	var known *failure.Error
	if errors.As(err, &known) {
		for _, one := range known.Split() {
			x.errors = append(x.errors, &gqlerror.Error{Message: one.Message, Path: path})
		}
		return
	}
	x.errors = append(x.errors, &gqlerror.Error{Message: err.Error(), Path: path})
}

// complete implements CompleteValue of the specification. Its only error is errPropagate.
func (x *execution) complete(t *ast.Type, value any, set ast.SelectionSet, path ast.Path) (json.RawMessage, error) {
	if err, failed := value.(error); failed { // the error of an element of a list
		x.fail(err, path)
		value = nil
	}
	if value == nil {
		if t.NonNull {
			return nil, errPropagate
		}
		return json.RawMessage("null"), nil
	}
	if t.Elem != nil {
		out, failed := []byte{'['}, false
		for i, e := range value.([]any) {
			if i > 0 {
				out = append(out, ',')
			}
			one, err := x.complete(t.Elem, e, set, append(path[:len(path):len(path)], ast.PathIndex(i)))
			if err != nil && !t.Elem.NonNull {
				one, err = json.RawMessage("null"), nil
			}
			failed = failed || err != nil
			out = append(out, one...)
		}
		if failed {
			return nil, errPropagate
		}
		return append(out, ']'), nil
	}
	def := x.Schema.Types[t.NamedType]
	switch def.Kind {
	case ast.Interface:
		return x.object(x.Schema.Types[value.(*resource).stored.Kind], value, set, path)
	case ast.Object:
		return x.object(def, value, set, path)
	}
	if v, ok := value.(json.Number); ok && t.NamedType == "Float" {
		f, _ := v.Float64()
		return []byte(strconv.FormatFloat(f, 'g', -1, 64)), nil
	}
	return encode(value), nil
}

// encode returns a leaf value as JSON in the same form as gqlgen.
func encode(v any) json.RawMessage {
	switch v := v.(type) {
	case json.RawMessage:
		return v
	case string:
		var b strings.Builder
		graphql.MarshalString(v).MarshalGQL(&b)
		return json.RawMessage(b.String())
	case json.Number:
		if v == "-0" {
			v = "0"
		}
		return json.RawMessage(v)
	case time.Time:
		return encode(v.Format(time.RFC3339Nano))
	}
	raw, _ := json.Marshal(v)
	return raw
}

// resource is a stored resource with its body, decoded by encoding/json.
type resource struct {
	stored *backend.Resource
	body   map[string]any
}

func (x *execution) resource(r *query.Resource) any {
	if r == nil || r.Body == nil {
		return nil
	}
	raw, _ := backend.DecodeBody(r.Stored.Body)
	dec := json.NewDecoder(strings.NewReader(string(raw)))
	dec.UseNumber()
	out := &resource{stored: r.Stored}
	_ = dec.Decode(&out.body)
	return out
}

// part is an object in the body of a resource.
type part struct {
	of     *resource
	values map[string]any
	shape  *descriptor.Shape
}

// edge is the edge with the index n on a page.
type edge struct {
	page *query.Page
	n    int
}

// other is the dependency with the index n on a page of dependencies.
type other edge

// entry is a key of a map with its value.
type entry struct{ key, value string }

// metadata resolves the fields of a resource's metadata.
type metadata struct{ *resource }

// resolve implements ResolveFieldValue of the specification. Lists are []any, and absent values are nil.
func (x *execution) resolve(def *ast.Definition, of any, f *ast.Field) (any, error) {
	args := f.ArgumentMap(x.vars)
	switch of := of.(type) {
	case nil:
		return x.root(def, f, args)
	case *resource:
		return x.ofResource(of, f, args)
	case *metadata:
		return of.field(f.Name), nil
	case preview:
		return x.ofPreview(of, f, args)
	case *part:
		return x.ofPart(of, f, args)
	case entry:
		return map[string]any{"key": of.key, "value": of.value}[f.Name], nil
	case *query.Page:
		return x.ofPage(of, f)
	case *query.PageInfo:
		return ofPageInfo(x.ctx, of, f)
	case edge:
		if f.Name == "cursor" {
			return of.page.Cursor(of.n), nil
		}
		if of.page.Dependencies != nil {
			return other(of), nil
		}
		return x.resource(&of.page.Edges[of.n].Resource), nil
	case other:
		return x.ofOther(of, f), nil
	case *payload:
		return x.ofPayload(of, f, args)
	case map[string]any: // a warning, a summary
		return of[f.Name], nil
	}
	return nil, fmt.Errorf("reference: no way to resolve %s.%s", def.Name, f.Name)
}

func (x *execution) kind(name string) *kinds.Kind {
	i := slices.IndexFunc(x.Catalogue.Kinds, func(k kinds.Kind) bool { return strings.EqualFold(k.Name, name) })
	if i < 0 {
		return nil
	}
	return &x.Catalogue.Kinds[i]
}

// reference returns the reference that a field of the type owner resolves; nil if there is none.
func (x *execution) reference(owner, name string) *kinds.Reference {
	for _, k := range x.Catalogue.Kinds {
		for i := range k.Refs {
			if k.Refs[i].Owner == owner && k.Refs[i].Field == name {
				return &k.Refs[i]
			}
		}
	}
	return nil
}

func (x *execution) ofResource(r *resource, f *ast.Field, args map[string]any) (any, error) {
	k := x.kind(r.stored.Kind)
	switch f.Name {
	case "id":
		return kind.GlobalID(r.stored.Key), nil
	case "kind":
		return r.stored.Kind, nil
	case "subKind":
		if text, _ := r.body["subKind"].(string); text != "" {
			return text, nil
		}
		return nil, nil
	case "apiVersion":
		version, _ := r.body["version"].(string)
		return k.APIVersionOf(version), nil
	case "metadata":
		return &metadata{r}, nil
	case "spec", "status":
		values, _ := r.body[f.Name].(map[string]any)
		if values == nil {
			return nil, nil
		}
		return &part{r, values, map[string]*descriptor.Shape{"spec": k.Spec, "status": k.Status}[f.Name]}, nil
	case "specJSON", "statusJSON":
		read := x.Service.SpecJSON
		if f.Name == "statusJSON" {
			read = x.Service.StatusJSON
		}
		raw, err := read(r.stored)
		if raw == nil {
			return nil, err
		}
		return json.RawMessage(raw), err
	case "conditions":
		if k.Conditions() == nil {
			return nil, nil
		}
		status, _ := r.body["status"].(map[string]any)
		list, _ := status["conditions"].([]any)
		out := []any{}
		for _, c := range list {
			out = append(out, &part{r, c.(map[string]any), k.Conditions()})
		}
		return out, nil
	case "allowed":
		verbs, err := x.Service.Reader.Allowed(x.ctx, target(r.stored.Key))
		out := []any{}
		for _, v := range verbs {
			out = append(out, string(v))
		}
		return out, err
	case "dependencies", "dependents", "blockedBy":
		relation := map[string]query.Relation{"dependencies": query.Dependencies, "dependents": query.Dependents, "blockedBy": query.BlockedBy}[f.Name]
		b, err := x.Service.Body(k.Name).Read(r.stored)
		if err != nil {
			return nil, err
		}
		return x.related(query.DependencyRequest{Relation: relation, Key: r.stored.Key, Body: b}, args)
	case "manifest":
		return x.Service.Manifest(r.stored, service.ManifestFormat(fmt.Sprint(args["format"])))
	}
	if ref := x.reference(k.Name, f.Name); ref != nil {
		value := any(r.body)
		for step := range strings.SplitSeq(ref.Path, ".") {
			m, _ := value.(map[string]any)
			value = m[step]
		}
		return x.follow(r, ref, value, f, args)
	}
	for _, o := range x.Catalogue.Kinds {
		for _, ref := range o.Refs {
			if ref.Kind == k.Name && ref.Inverse == f.Name {
				return x.list(o.Name, f, args, r.stored.Namespace, query.Parent{Reference: ref.Path, Key: r.stored.Key}, nil)
			}
		}
	}
	return nil, fmt.Errorf("reference: no way to resolve %s.%s", k.Name, f.Name)
}

// target returns the request for the rights on a resource.
func target(key backend.Key) query.AccessTarget {
	t := query.AccessTarget{Kind: &key.Kind, Name: &key.Name}
	if key.Namespace != "" {
		t.Namespace = &key.Namespace
	}
	return t
}

// follow resolves the field that a reference derives.
func (x *execution) follow(r *resource, ref *kinds.Reference, value any, f *ast.Field, args map[string]any) (any, error) {
	if ref.List {
		names := []string{}
		list, _ := value.([]any)
		for _, e := range list {
			names = append(names, e.(string))
		}
		slices.Sort(names)
		return x.list(ref.Kind, f, args, x.kind(ref.Kind).NamespaceFrom(r.stored.Namespace), query.Parent{}, map[string]any{"name": map[string]any{"in": slices.Compact(names)}})
	}
	name, _ := value.(string)
	if name == "" {
		return nil, nil
	}
	found, err := x.Service.Reader.Lookup(x.ctx, []backend.Key{{Kind: ref.Kind, Namespace: x.kind(ref.Kind).NamespaceFrom(r.stored.Namespace), Name: name}})
	if err != nil {
		return nil, err
	}
	return x.resource(found[0]), nil
}

func (x *execution) ofPart(p *part, f *ast.Field, args map[string]any) (any, error) {
	var sf *descriptor.Field
	for i := range p.shape.Fields {
		if p.shape.Fields[i].InAPI() == f.Name {
			sf = &p.shape.Fields[i]
		}
	}
	if sf == nil {
		ref := x.reference(p.shape.Name, f.Name)
		return x.follow(p.of, ref, p.values[ref.Path[strings.LastIndex(ref.Path, ".")+1:]], f, args)
	}
	value := p.values[sf.Name]
	if value == nil {
		value = sf.Default
	}
	if value == nil {
		return nil, nil
	}
	one := func(v any) any {
		switch {
		case sf.Shape != nil:
			return &part{p.of, v.(map[string]any), sf.Shape}
		case sf.Enum != nil:
			for _, e := range sf.Enum.Values {
				if e.Stored == v {
					return e.Name
				}
			}
		}
		return v
	}
	if m, ok := value.(map[string]any); ok && sf.Type == descriptor.TypeMap {
		return entries(m), nil
	}
	if list, ok := value.([]any); ok {
		out := []any{}
		for _, e := range list {
			out = append(out, one(e))
		}
		return out, nil
	}
	return one(value), nil
}

func entries(m map[string]any) []any {
	out := []any{}
	for k, v := range m {
		text, _ := v.(string)
		out = append(out, entry{k, text})
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(a.(entry).key, b.(entry).key) })
	return out
}

func (m *metadata) field(name string) any {
	stored := m.body["metadata"]
	body, _ := stored.(map[string]any)
	set := func(t time.Time) any {
		if t.IsZero() {
			return nil
		}
		return t
	}
	text := func(s string) any {
		if s == "" {
			return nil
		}
		return s
	}
	switch name {
	case "namespace":
		return text(m.stored.Namespace)
	case "name":
		return m.stored.Name
	case "uid":
		return m.stored.UID
	case "revision":
		return m.stored.Revision.String()
	case "createdAt":
		return set(m.stored.CreatedAt)
	case "updatedAt":
		return set(m.stored.UpdatedAt)
	case "expiresAt":
		return set(m.stored.ExpiresAt)
	case "deletionRequestedAt":
		at, _ := body[name].(string)
		return text(at)
	case "finalizers":
		list, _ := body[name].([]any)
		return append([]any{}, list...)
	case "generation":
		return body["generation"]
	case "description", "updatedBy":
		value, _ := body[name].(string)
		return text(value)
	}
	pairs, _ := body[name].(map[string]any)
	return entries(pairs)
}

func (x *execution) ofPage(p *query.Page, f *ast.Field) (any, error) {
	switch f.Name {
	case "totalCount":
		n, err := p.TotalCount(x.ctx)
		return n, err
	case "hiddenCount":
		n, err := p.Hidden(x.ctx)
		return n, err
	case "unreadableCount":
		n, err := p.Unreadable(x.ctx)
		return n, err
	case "pageInfo":
		return p.PageInfo(), nil
	case "changeCursor":
		if c := p.ChangeCursor(); c != nil {
			return *c, nil
		}
		return nil, nil
	}
	out := []any{}
	for i := range p.Edges {
		switch {
		case f.Name == "edges":
			out = append(out, edge{p, i})
		case p.Dependencies != nil:
			out = append(out, other{p, i})
		default:
			out = append(out, x.resource(&p.Edges[i].Resource))
		}
	}
	return out, nil
}

func ofPageInfo(ctx context.Context, i *query.PageInfo, f *ast.Field) (any, error) {
	text := func(s *string) any {
		if s == nil {
			return nil
		}
		return *s
	}
	switch f.Name {
	case "startCursor":
		return text(i.StartCursor()), nil
	case "endCursor":
		return text(i.EndCursor()), nil
	case "hasNextPage":
		return i.HasNextPage(ctx)
	}
	return i.HasPreviousPage(ctx)
}
