package engine

import (
	"iter"
	"slices"
	"strings"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/graph/coercion"
)

// compiler compiles the plan of an operation whose document is valid. If a field has no entry in the tables of types,
// the engine has a bug: the compiler panics with a [compileError], which compile returns as an error. Selections on
// interfaces are compiled while the plan runs; there the panic ends the run.
//
//	object            collects the fields of a selection, and compiles each:
//	  field           finds the entry in the table of the object's type, and compiles the arguments
//	  below           compiles the selection of the field with object; for an abstract type while the plan runs
type compiler struct {
	engine *Engine
	doc    *ast.QueryDocument
	// truths are the values of the Boolean variables that @skip and @include may use.
	truths map[string]any

	mu sync.Mutex // guards the rest, since selections on interfaces are compiled later
	// literals caches the arguments of fields that use no variables; nil for other fields. A field of a fragment is
	// compiled in each place where the fragment is spread.
	literals map[*ast.Field]*arguments
	// fields is the number of fields compiled so far. If the plan is kept, weigh is called whenever the number grows.
	fields int
	weigh  func(fields int)
}

// compileError reports a field that has no entry in the tables.
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

// selected is a field of the answer. set has the selections of all merged fields.
type selected struct {
	*ast.Field
	set ast.SelectionSet
}

// collect is CollectFields of the specification (October 2021, section 6.3.2). It merges fields with the same response
// name, in the order in which they first occur.
func (c *compiler) collect(
	def *ast.Definition, set ast.SelectionSet, visited map[string]bool, out []*selected,
) []*selected {
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

// included reports whether a selection is included according to @skip and @include.
func (c *compiler) included(list ast.DirectiveList) bool { return coercion.Included(list, c.truths) }

// object compiles a selection on an object type. above is the field that has the selection; nil for the root.
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
		f.above = above
		f.alias = s.Alias
		f.node = s.Field
		f.set = s.set
		if s.Name == "__typename" {
			f.write = writeConstant
			f.constant = appendText(nil, def.Name)
			f.nonNull = true
			continue
		}
		f.nonNull = s.Definition.Type.NonNull
		f.list = s.Definition.Type.Elem != nil
		f.elementNonNull = s.Definition.Type.Elem != nil && s.Definition.Type.Elem.NonNull
		c.field(def, f)
		if len(s.set) > 0 && !strings.HasPrefix(s.Name, "__") { // the core alone executes introspection
			c.below(f, s.Definition.Type.Name())
		}
		if f.byCore && c.engine.isRoot(def) {
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

// field sets how a field of the type def is executed.
func (c *compiler) field(def *ast.Definition, f *field) {
	e := c.engine
	if e.isRoot(def) {
		c.rootField(def, f)
		return
	}
	t := e.types[def.Name]
	if t == nil { // a type of the core
		f.byCore = true
		return
	}
	if t.role == roleShape {
		if inside := f.above.inside; inside != nil { // nil below conditions of a kind without conditions
			t = inside
		}
		c.shapeField(t, f)
		return
	}
	if t.role == roleResource && t.kind.inverses[f.node.Name] != nil {
		c.inverse(t.kind.inverses[f.node.Name], f)
		return
	}
	entry, ok := e.derived[t.role].find(t, f.node.Name)
	switch {
	case ok:
		f.derivedField = entry
	case t.role == roleResource:
		c.reference(t, t.kind.Name, f)
		return
	default:
		panic(&compileError{def.Name + "." + f.node.Name})
	}
	if entry.compile != nil {
		entry.compile(c, f, t)
	}
}

func (c *compiler) rootField(def *ast.Definition, f *field) {
	root, ok := c.engine.roots[fieldName{def.Name, f.node.Name}]
	if !ok {
		f.byCore = true
		return
	}
	f.derivedField = root.derivedField
	f.kind = root.kind
	f.input = root.input
	f.verb = root.verb
	f.merge = root.merge
	root.compile(c, f, nil)
}

// inverse compiles a connection of the resources that refer to a resource.
func (c *compiler) inverse(inv *inverse, f *field) {
	f.write = writeLink
	f.link = linkInverse
	f.inverse = inv
	f.kind = inv.kind
	c.connection(f)
}

// reference compiles a field that resolves a reference. t is the type that has the field, and owner its name.
func (c *compiler) reference(t *typeInfo, owner string, f *field) {
	f.ref = t.refs[f.node.Name]
	if f.ref == nil {
		panic(&compileError{owner + "." + f.node.Name})
	}
	f.write = writeLink
	f.link = linkRef
	f.kind = f.ref.kind
	if f.ref.list {
		f.link = linkRefs
		c.connection(f)
	}
}

// shapeField compiles a field of an object in a spec or status.
func (c *compiler) shapeField(t *typeInfo, f *field) {
	slot, ok := t.slots[f.node.Name]
	if !ok {
		c.reference(t, t.shape.Name, f)
		return
	}
	sf := &t.shape.Fields[slot]
	f.slot = slot
	f.inside = t.below[slot]
	f.enum = sf.EnumNames
	f.write = bodyWriter(sf)
	f.otherwise = effective(f, sf)
}

// connection compiles a connection: its arguments, and what must be read with the page.
func (c *compiler) connection(f *field) {
	f.connection = true
	f.changeCursor = c.selects(f.set, "changeCursor")
	f.total = c.selects(f.set, "totalCount")
	f.ahead = c.selects(f.set, "pageInfo", "hasNextPage") || c.selects(f.set, "pageInfo", "hasPreviousPage")
	c.arguments(f)
}

// compileConnection is the function derivedField.compile of connections.
func compileConnection(c *compiler, f *field, _ *typeInfo) { c.connection(f) }

// compileArguments is the function derivedField.compile of fields that need only their arguments.
func compileArguments(c *compiler, f *field, _ *typeInfo) { c.arguments(f) }

// selectedFields yields the fields in a selection set, including those in fragments.
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

// selects reports whether a selection contains the field at a path of names, such as pageInfo, hasNextPage.
func (c *compiler) selects(set ast.SelectionSet, path ...string) bool {
	return slices.ContainsFunc(set, func(s ast.Selection) bool {
		switch s := s.(type) {
		case *ast.Field:
			if s.Name != path[0] || !c.included(s.Directives) {
				return false
			}
			return len(path) == 1 || c.selects(s.SelectionSet, path[1:]...)
		case *ast.InlineFragment:
			return c.included(s.Directives) && c.selects(s.SelectionSet, path...)
		case *ast.FragmentSpread:
			f := c.doc.Fragments.ForName(s.Name)
			return f != nil && c.included(s.Directives) && c.selects(f.SelectionSet, path...)
		}
		return false
	})
}

// count adds to the number of fields of the plan, and calls weigh if the plan is kept.
func (c *compiler) count(fields int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.fields += fields
	if c.weigh != nil {
		c.weigh(fields)
	}
}

// kept sets weigh and calls it with the present number of fields.
func (c *compiler) kept(weigh func(fields int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.weigh = weigh
	weigh(c.fields)
}

// arguments sets f.args if the arguments of the field contain no variable.
func (c *compiler) arguments(f *field) {
	if literal := c.literal(f.node); literal != nil {
		args := *literal
		args.ask(f)
		f.args = &args
	}
}

// literal returns the arguments of a field; nil if they contain a variable.
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
			out.steps += sizeOf(v).steps(name)
		})
	}
	c.literals[node] = out
	return out
}

func hasVariable(v *ast.Value) bool {
	if v.Kind == ast.Variable {
		return true
	}
	return slices.ContainsFunc(v.Children, func(c *ast.ChildValue) bool { return hasVariable(c.Value) })
}
