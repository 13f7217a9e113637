package engine

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/coercion"
)

// compiler makes the plan of an operation whose document is valid. A field without an entry in the tables of types is
// a fault of the engine: the compiler panics with a [compileError], and compile returns that as an error. Below an
// interface, whose selections are compiled while the plan runs, it is a panic of the run.
//
//	object            collects the fields of a selection, and compiles each:
//	  field           its op code and what that needs, by the role of the object's type
//	  below           the selection below it: object again, or later, if its type is abstract
type compiler struct {
	engine *Engine
	doc    *ast.QueryDocument
	// truths are the values of the Boolean variables, among them those in @skip and @include.
	truths map[string]any

	mu sync.Mutex // guards the rest, since selections on interfaces are compiled later
	// literals are arguments without variables, nil for others. A field of a fragment can stand in many places.
	literals map[*ast.Field]*arguments
	// fields is the number of fields; if the plan is kept, weigh is called when it grows.
	fields int
	weigh  func(fields int)
}

// compileError is a field for which the tables have no entry.
type compileError struct{ what string }

func (e *compileError) Error() string { return "engine: no way to execute " + e.what }

func (e *Engine) compile(oc *graphql.OperationContext) (p *plan, err error) {
	c := &compiler{engine: e, doc: oc.Doc, truths: map[string]any{}, literals: map[*ast.Field]*arguments{}}
	for _, v := range oc.Operation.VariableDefinitions {
		if isBoolean(v) {
			c.truths[v.Variable] = oc.Variables[v.Variable]
		}
	}
	defer func() {
		if v := recover(); v != nil {
			failed, ok := v.(*compileError)
			if !ok {
				panic(v)
			}
			err = failed
		}
	}()
	root := c.object(e.rootType(oc.Operation.Operation), oc.Operation.SelectionSet, nil)
	return &plan{compiler: c, root: root}, nil
}

func (e *Engine) rootType(op ast.Operation) *ast.Definition {
	switch op {
	case ast.Mutation:
		return e.schema.Mutation
	case ast.Subscription:
		return e.schema.Subscription
	}
	return e.schema.Query
}

func (e *Engine) isRoot(def *ast.Definition) bool {
	return def == e.schema.Query || def == e.schema.Mutation || def == e.schema.Subscription
}

// selected is a field with the selections below it.
type selected struct {
	*ast.Field
	set ast.SelectionSet
}

// collect is CollectFields of the specification (October 2021, section 6.3.2):
// fields of one response name are merged, in the order of their first place.
func (c *compiler) collect(def *ast.Definition, set ast.SelectionSet, visited map[string]bool, out []*selected) []*selected {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if !c.included(s.Directives) {
				continue
			}
			i := slices.IndexFunc(out, func(o *selected) bool { return o.Alias == s.Alias })
			if i < 0 {
				i = len(out)
				out = append(out, &selected{Field: s})
			}
			out[i].set = append(out[i].set, s.SelectionSet...)
		case *ast.InlineFragment:
			if c.included(s.Directives) && c.applies(def, s.TypeCondition) {
				out = c.collect(def, s.SelectionSet, visited, out)
			}
		case *ast.FragmentSpread:
			f := c.doc.Fragments.ForName(s.Name)
			if f == nil || visited[s.Name] || !c.included(s.Directives) {
				continue
			}
			visited[s.Name] = true
			if c.applies(def, f.TypeCondition) {
				out = c.collect(def, f.SelectionSet, visited, out)
			}
		}
	}
	return out
}

// applies reports whether a fragment applies to an object type.
func (c *compiler) applies(def *ast.Definition, condition string) bool {
	if condition == "" || condition == def.Name || slices.Contains(def.Interfaces, condition) {
		return true
	}
	of := c.engine.schema.Types[condition]
	return of != nil && of.Kind == ast.Union && slices.Contains(of.Types, def.Name)
}

// included evaluates @skip and @include.
func (c *compiler) included(list ast.DirectiveList) bool { return coercion.Included(list, c.truths) }

// object compiles a selection on an object type below a field, nil for a root.
func (c *compiler) object(def *ast.Definition, set ast.SelectionSet, above *field) *object {
	list := c.collect(def, set, map[string]bool{}, nil)
	o := &object{fields: make([]field, len(list))}
	c.count(len(list))
	for i, s := range list {
		f := &o.fields[i]
		separator := byte(',')
		if i == 0 {
			separator = '{'
		}
		f.prefix = append(appendText([]byte{separator}, s.Alias), ':')
		f.above, f.alias, f.node, f.set = above, s.Alias, s.Field, s.set
		if s.Name == "__typename" {
			f.op, f.constant, f.nonNull = opConst, appendText(nil, def.Name), true
			continue
		}
		f.nonNull = s.Definition.Type.NonNull
		f.elementNonNull = s.Definition.Type.Elem != nil && s.Definition.Type.Elem.NonNull
		c.field(def, f)
		if len(s.set) > 0 && !strings.HasPrefix(s.Name, "__") { // the core alone executes introspection
			c.below(f, s.Definition.Type.Name())
		}
		if f.op == opCore && c.engine.isRoot(def) {
			f.core = c.coreField(f)
		}
	}
	for i := range o.fields {
		if f := &o.fields[i]; f.linked() {
			o.links = append(o.links, f)
		}
	}
	return o
}

// below compiles the selection below a field.
func (c *compiler) below(f *field, typ string) {
	def := c.engine.schema.Types[typ]
	if def.IsAbstractType() {
		f.abstract = &abstract{compiler: c, field: f}
		return
	}
	f.sub = c.object(def, f.set, f)
}

// field sets how a field is executed.
func (c *compiler) field(def *ast.Definition, f *field) {
	e, name := c.engine, f.node.Name
	if e.isRoot(def) {
		c.rootField(def, f)
		return
	}
	t := e.types[def.Name]
	if t == nil { // a type of the core
		f.op = opCore
		return
	}
	switch {
	case t.role == roleResource:
		c.resourceField(t, f)
		return
	case t.role == roleShape:
		c.shapeField(t, f)
		return
	case t.role == rolePayload && t.kind != nil && name == t.kind.Singular:
		f.op = opWritten
		return
	case t.role == rolePayload && t.kind != nil && name == "deleted"+t.kind.Name+"Id":
		f.op = opDeletedID
		return
	case t.role == roleChange && t.kind != nil && name == t.kind.Singular:
		f.op = opChanged
		return
	}
	o, ok := e.ops[t.role][name]
	if !ok {
		panic(&compileError{def.Name + "." + name})
	}
	switch f.op = o; o {
	case opBlockers:
		c.connection(f)
		c.arguments(f)
	case opManifest: // of a preview
		c.arguments(f)
	}
}

// operations returns the op codes of the types whose fields are the same for all kinds.
func operations() map[role]map[string]op {
	page := map[string]op{
		"edges": opEdges, "nodes": opNodes, "pageInfo": opPageInfo, "totalCount": opTotalCount, "hiddenCount": opHiddenCount,
		"unreadableCount": opUnreadableCount, "changeCursor": opPageChangeCursor,
		"cursor": opCursor, "node": opNode,
		"hasNextPage": opHasNextPage, "hasPreviousPage": opHasPreviousPage, "startCursor": opStartCursor, "endCursor": opEndCursor,
	}
	return map[role]map[string]op{
		roleMetadata: {
			"namespace": opNamespace, "name": opName, "uid": opUID, "revision": opRevision, "generation": opGeneration, "labels": opLabels,
			"annotations": opAnnotations, "description": opDescription, "createdAt": opCreatedAt, "updatedAt": opUpdatedAt, "expiresAt": opExpiresAt,
			"deletionRequestedAt": opDeletionRequestedAt, "finalizers": opFinalizers, "updatedBy": opUpdatedBy,
		},
		roleResource: {
			"id": opID, "kind": opConst, "subKind": opSubKind, "apiVersion": opAPIVersion, "metadata": opMetadata, "spec": opObject, "status": opObject,
			"manifest": opManifest, "specJSON": opSpecJSON, "statusJSON": opStatusJSON, "conditions": opConditions, "allowed": opAllowed,
			"dependencies": opDependencies, "dependents": opDependents, "blockedBy": opBlockedBy,
		},
		roleEntry:      {"key": opKey, "value": opValue},
		roleConnection: page, roleEdge: page, rolePageInfo: page,
		rolePayload: {
			"clientMutationId": opMutationID, "warnings": opWarnings, "outcome": opOutcome, "dryRun": opDryRun, "created": opCreated, "state": opDeletion,
			"resource": opWritten, "deletedResourceId": opDeletedID, "preview": opPreview, "blockedBy": opBlockers,
		},
		rolePreview: {
			"kind": opPreviewKind, "namespace": opNamespace, "name": opName, "uid": opPreviewUID, "generation": opGeneration,
			"specJSON": opSpecJSON, "statusJSON": opStatusJSON, "manifest": opManifest,
		},
		roleWarning: {"code": opWarningCode, "message": opMessage, "path": opPlace, "field": opPlaceText},
		roleDependency: {
			"resourceId": opOtherID, "kind": opOtherKind, "namespace": opOtherNamespace, "name": opOtherName, "path": opOtherPath, "state": opOtherState,
			"guarded": opOtherGuarded, "resource": opOther,
		},
		roleNamespace: {"name": opNamespaceName, "counts": opNamespaceCounts, "kind": opCountKind, "count": opCount},
		roleSummary:   {"unreadableCount": opUnreadableSummary, "groups": opGroups, "keys": opGroupKeys, "count": opGroupCount, "path": opGroupPath, "value": opGroupValue},
		roleChange:    {"type": opChangeType, "cursor": opChangeCursor, "revision": opChangeRevision, "resourceId": opChangeID, "resource": opChanged},
	}
}

func (c *compiler) rootField(def *ast.Definition, f *field) {
	root, ok := c.engine.roots[fieldName{def.Name, f.node.Name}]
	if !ok {
		f.op = opCore
		return
	}
	f.op, f.kind, f.verb, f.merge = root.op, root.kind, root.verb, root.merge
	if f.op == opList {
		c.connection(f)
	}
	c.arguments(f)
}

func (c *compiler) resourceField(t *typeInfo, f *field) {
	k, name := t.kind, f.node.Name
	o, ok := c.engine.ops[roleResource][name]
	if inv := k.inverses[name]; inv != nil {
		f.op, f.inverse, f.kind = opInverse, inv, inv.kind
		c.connection(f)
		c.arguments(f)
		return
	} else if !ok {
		c.refField(t, k.Name, f)
		return
	}
	switch f.op = o; o {
	case opConst:
		f.constant = k.quoted
	case opAPIVersion, opAllowed:
		f.kind = k
	case opObject:
		f.slot = map[string]int{"spec": body.SlotSpec, "status": body.SlotStatus}[name]
	case opConditions:
		c.conditions(k, f)
	case opManifest:
		c.arguments(f)
	case opDependencies, opDependents, opBlockedBy:
		f.targets = c.selects(f.set, "nodes", "state") || c.selects(f.set, "nodes", "resource") || c.selects(f.set, "edges", "node", "state") || c.selects(f.set, "edges", "node", "resource")
		c.connection(f)
		c.arguments(f)
	}
}

// conditions compiles the field of the conditions, which are in the status.
func (c *compiler) conditions(k *kindInfo, f *field) {
	f.op, f.constant = opConst, []byte("null")
	if k.Conditions() != nil {
		f.op, f.slot = opConditions, body.SlotStatus
		f.inner, _ = k.body.Fields[body.SlotStatus].Shape.Slot("conditions")
	}
}

func (c *compiler) refField(t *typeInfo, owner string, f *field) {
	f.ref = t.refs[f.node.Name]
	if f.ref == nil {
		panic(&compileError{owner + "." + f.node.Name})
	}
	f.op, f.kind = opRef, f.ref.kind
	if f.ref.list {
		f.op = opRefs
		c.connection(f)
		c.arguments(f)
	}
}

func (c *compiler) shapeField(t *typeInfo, f *field) {
	slot, ok := t.slots[f.node.Name]
	if !ok {
		c.refField(t, t.shape.Name, f)
		return
	}
	sf := &t.shape.Fields[slot]
	f.slot, f.enum = slot, sf.EnumNames
	switch {
	case sf.Type == descriptor.TypeMap:
		f.op = opMap
	case sf.Type == descriptor.TypeObject && sf.List:
		f.op = opObjects
	case sf.Type == descriptor.TypeObject:
		f.op = opObject
	case sf.List:
		f.op = opScalars
	case sf.Type == descriptor.TypeEnum:
		f.op = opEnum
	case sf.Type == descriptor.TypeFloat:
		f.op = opFloat
	case sf.Type == descriptor.TypeTime:
		f.op = opTime
	default:
		f.op = opScalar
	}
	f.otherwise = effective(f, sf.Default)
}

// effective returns the default of a field of a body as the API shows it.
func effective(f *field, stored []byte) (out []byte) {
	switch {
	case stored == nil:
		return nil
	case f.op == opEnum:
		return appendEnum(nil, f, stored)
	case f.op == opFloat:
		return appendFloat(nil, stored)
	case f.op == opTime:
		out, _ = appendStoredTime(nil, stored)
		return out
	}
	return appendScalar(nil, stored)
}

// connection sets which facts of a connection are read with its page.
func (c *compiler) connection(f *field) {
	f.changeCursor = c.selects(f.set, "changeCursor")
	f.total = c.selects(f.set, "totalCount")
	f.ahead = c.selects(f.set, "pageInfo", "hasNextPage") || c.selects(f.set, "pageInfo", "hasPreviousPage")
}

// selectedFields are the fields of a selection set, fragments expanded.
func selectedFields(set ast.SelectionSet) iter.Seq[*ast.Field] {
	return func(yield func(*ast.Field) bool) {
		for _, s := range set {
			var fragment ast.SelectionSet
			switch s := s.(type) {
			case *ast.Field:
				if !yield(s) {
					return
				}
			case *ast.InlineFragment:
				fragment = s.SelectionSet
			case *ast.FragmentSpread:
				fragment = s.Definition.SelectionSet
			}
			for f := range selectedFields(fragment) {
				if !yield(f) {
					return
				}
			}
		}
	}
}

// selects reports whether a selection has a field at a path of names.
func (c *compiler) selects(set ast.SelectionSet, path ...string) bool {
	return slices.ContainsFunc(set, func(s ast.Selection) bool {
		switch s := s.(type) {
		case *ast.Field:
			return s.Name == path[0] && c.included(s.Directives) && (len(path) == 1 || c.selects(s.SelectionSet, path[1:]...))
		case *ast.InlineFragment:
			return c.included(s.Directives) && c.selects(s.SelectionSet, path...)
		case *ast.FragmentSpread:
			f := c.doc.Fragments.ForName(s.Name)
			return f != nil && c.included(s.Directives) && c.selects(f.SelectionSet, path...)
		}
		return false
	})
}

// count adds to the number of fields.
func (c *compiler) count(fields int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.fields += fields; c.weigh != nil {
		c.weigh(fields)
	}
}

// kept calls weigh with the number of fields, now and when it grows.
func (c *compiler) kept(weigh func(fields int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.weigh = weigh
	weigh(c.fields)
}

// arguments evaluates the arguments of a field if no variable is in them.
func (c *compiler) arguments(f *field) {
	if literal := c.literal(f.node); literal != nil {
		args := *literal
		args.ask(f)
		f.args = &args
	}
}

// literal returns the arguments that a field has wherever it stands, nil if a variable is in them.
func (c *compiler) literal(node *ast.Field) *arguments {
	c.mu.Lock()
	defer c.mu.Unlock()
	out, known := c.literals[node]
	if known {
		return out
	}
	if !slices.ContainsFunc(node.Arguments, func(a *ast.Argument) bool { return hasVariable(a.Value) }) {
		out = &arguments{values: map[string]any{}}
		c.engine.read(out, node, nil, func(name string, v any) {
			values, texts := inputSize(v)
			out.steps += inputSteps(name, values, texts)
		})
	}
	c.literals[node] = out
	return out
}

func hasVariable(v *ast.Value) bool {
	return v.Kind == ast.Variable || slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return hasVariable(c.Value) })
}
