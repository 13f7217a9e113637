package coercion

import (
	"slices"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Document is the result of [Coercer.Document] for a valid document. It never changes.
type Document struct {
	// places maps each operation to the places of variables that [Document.Check] must check, in the order in which
	// they appear in the document.
	places map[*ast.OperationDefinition][]place
}

// place is a place of a variable that does not accept all values of the variable's type.
type place struct {
	variable string
	// wanted is the type that the place accepts.
	wanted *ast.Type
	// guards reports whether the variable must have a value because without one the operation would do more than
	// intended; see [guardsMutation].
	guards bool
	path   *failure.Path
	at     *ast.Position
	// conditions are the directives of the field and of all selections around it. The place is checked only if they
	// include the field.
	conditions *conditions
}

// conditions are the directives of nested selections. directives belongs to the innermost selection, outer to the
// selections around it.
type conditions struct {
	directives ast.DirectiveList
	outer      *conditions
}

// Document coerces the literals of a valid document. It returns an error for each literal that is out of range. The
// result has the places of variables that must be checked when their values are known.
func (c Coercer) Document(doc *ast.QueryDocument) (*Document, gqlerror.List) {
	r := reader{Coercer: c, doc: doc, out: &Document{places: map[*ast.OperationDefinition][]place{}}}
	for _, op := range doc.Operations {
		for _, v := range op.VariableDefinitions {
			r.literal(v.Type, v.DefaultValue)
		}
		r.directives(op.Directives)
		r.literals(op.SelectionSet)
	}
	for _, f := range doc.Fragments {
		r.directives(f.Directives)
		r.literals(f.SelectionSet)
	}
	if len(r.refused) > 0 {
		return nil, r.refused
	}
	for _, op := range doc.Operations {
		if !slices.ContainsFunc(op.VariableDefinitions, func(v *ast.VariableDefinition) bool {
			return !v.Type.NonNull
		}) {
			continue // each variable has a value that its places accept
		}
		r.operation = op
		r.visited = map[string]bool{}
		r.selections(op.SelectionSet, nil, true)
	}
	return r.out, nil
}

// reader is the state of [Coercer.Document].
type reader struct {
	Coercer
	doc     *ast.QueryDocument
	out     *Document
	refused gqlerror.List
	// operation is the operation whose selections are being visited.
	operation *ast.OperationDefinition
	// visited has the names of the fragments that were visited outside of all directives. They need not be visited
	// again.
	visited map[string]bool
}

// literals coerces the literals of a selection set.
func (r *reader) literals(set ast.SelectionSet) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			r.directives(s.Directives)
			for _, a := range s.Arguments {
				r.literal(s.Definition.Arguments.ForName(a.Name).Type, a.Value)
			}
			r.literals(s.SelectionSet)
		case *ast.InlineFragment:
			r.directives(s.Directives)
			r.literals(s.SelectionSet)
		case *ast.FragmentSpread:
			r.directives(s.Directives)
		}
	}
}

func (r *reader) directives(list ast.DirectiveList) {
	for _, d := range list {
		for _, a := range d.Arguments {
			r.literal(d.Definition.Arguments.ForName(a.Name).Type, a.Value)
		}
	}
}

// literal coerces a literal, or adds an error.
func (r *reader) literal(t *ast.Type, v *ast.Value) {
	if v == nil || v.Kind == ast.Variable || v.Kind == ast.NullValue {
		return
	}
	if t.Elem != nil {
		if v.Kind != ast.ListValue {
			r.literal(t.Elem, v)
			return
		}
		for _, child := range v.Children {
			r.literal(t.Elem, child.Value)
		}
		return
	}
	def := r.Schema.Types[t.NamedType]
	if def.Kind == ast.InputObject && v.Kind == ast.ObjectValue {
		for _, child := range v.Children {
			if field := def.Fields.ForName(child.Name); field != nil {
				r.literal(field.Type, child.Value)
			}
		}
		return
	}
	if _, err := literalScalar(def, v, nil); err != nil {
		r.refused = append(r.refused, gqlerror.ErrorPosf(v.Position, "%s", err))
	}
}

// selections visits the variables in a selection set. within are the directives around the set. root reports whether
// its fields are root fields.
func (r *reader) selections(set ast.SelectionSet, within *conditions, root bool) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			inner := r.under(s.Directives, within)
			for _, a := range s.Arguments {
				r.argument(s, a, inner, root)
			}
			r.selections(s.SelectionSet, inner, false)
		case *ast.InlineFragment:
			r.selections(s.SelectionSet, r.under(s.Directives, within), root)
		case *ast.FragmentSpread:
			inner := r.under(s.Directives, within)
			f := r.doc.Fragments.ForName(s.Name)
			if f == nil || r.visited[s.Name] {
				continue
			}
			r.visited[s.Name] = inner == nil
			r.selections(f.SelectionSet, inner, root)
		}
	}
}

// under visits the variables in directives. It returns the conditions of the selections to which the directives apply.
func (r *reader) under(list ast.DirectiveList, within *conditions) *conditions {
	if len(list) == 0 {
		return within
	}
	for _, d := range list {
		for _, a := range d.Arguments {
			path := failure.At("@" + d.Name).Name(a.Name)
			r.value(a.Value, d.Definition.Arguments.ForName(a.Name).Type, place{
				path:       path,
				at:         a.Position,
				conditions: within,
			})
		}
	}
	return &conditions{directives: list, outer: within}
}

// argument visits the variables in an argument.
func (r *reader) argument(f *ast.Field, a *ast.Argument, within *conditions, root bool) {
	p := place{path: failure.At(a.Name), at: a.Position, conditions: within}
	if root {
		p.guards = r.operation.Operation == ast.Subscription && (a.Name == "id" || a.Name == "filter")
	}
	t := f.Definition.Arguments.ForName(a.Name).Type
	if root && r.operation.Operation == ast.Mutation && a.Value.Kind == ast.ObjectValue {
		r.fields(a.Value, t, p, guardsMutation)
		return
	}
	r.value(a.Value, t, p)
}

// guardsMutation reports whether an input field limits what a mutation does. Without it the mutation would accept any
// revision, would not be a dry run, or would use the default namespace.
func guardsMutation(name string) bool {
	return name == "expectedRevision" || name == "dryRun" || name == "namespace"
}

// value visits the variables in a value.
func (r *reader) value(v *ast.Value, t *ast.Type, p place) {
	switch v.Kind {
	case ast.Variable:
		p.variable, p.wanted = v.Raw, t
		if def := r.operation.VariableDefinitions.ForName(v.Raw); def == nil || def.Type.NonNull {
			return
		}
		if t.NonNull || p.guards {
			r.out.places[r.operation] = append(r.out.places[r.operation], p)
		}
	case ast.ListValue:
		if t.Elem == nil { // of a JSON scalar
			return
		}
		for i, child := range v.Children {
			r.value(child.Value, t.Elem, place{
				path:       p.path.Element(i),
				at:         v.Position,
				conditions: p.conditions,
			})
		}
	case ast.ObjectValue:
		r.fields(v, t, p, func(string) bool { return false })
	}
}

// fields visits the variables in an object. guards reports whether a field with a variable must have a value, see
// place.guards.
func (r *reader) fields(v *ast.Value, t *ast.Type, p place, guards func(name string) bool) {
	def := r.Schema.Types[t.Name()]
	if def.Kind != ast.InputObject {
		return
	}
	for _, child := range v.Children {
		field := def.Fields.ForName(child.Name)
		if field == nil {
			continue
		}
		r.value(child.Value, field.Type, place{
			path:       p.path.Name(child.Name),
			at:         child.Position,
			conditions: p.conditions,
			guards:     guards(child.Name),
		})
	}
}

// Check returns an error for the first variable of an operation that is null in a place that accepts no null, or that
// lacks a required value. It ignores selections that @skip and @include leave out. By section 6.4.1 of the
// specification only the field would fail; here, nothing is executed.
func (d *Document) Check(op *ast.OperationDefinition, variables map[string]any) *gqlerror.Error {
	for _, p := range d.places[op] {
		value, given := variables[p.variable]
		if value != nil || given && !p.wanted.NonNull || !given && !p.guards || !p.conditions.hold(variables) {
			continue
		}
		where := p.path.Text(failure.APINames)
		err := gqlerror.ErrorPosf(p.at, "%s: the variable $%s is null; %s is wanted",
			where, failure.Shorten(p.variable), p.wanted)
		if !given {
			err.Message = where + ": the variable $" + failure.Shorten(p.variable) +
				" has no value; give it one, or null for none"
		}
		err.Extensions = map[string]any{
			"code":  string(failure.CodeBadUserInput),
			"path":  p.path.Steps(failure.APINames),
			"field": where,
		}
		return err
	}
	return nil
}

// hold reports whether the directives include the selection when the variables have the given values.
func (c *conditions) hold(variables map[string]any) bool {
	for ; c != nil; c = c.outer {
		if !Included(c.directives, variables) {
			return false
		}
	}
	return true
}

// Included evaluates @skip and @include with coerced variables.
func Included(list ast.DirectiveList, variables map[string]any) bool {
	return len(list) == 0 || !condition(list, "skip", variables, false) && condition(list, "include", variables, true)
}

// condition returns the argument of a directive, or otherwise if there is no such directive.
func condition(list ast.DirectiveList, name string, variables map[string]any, otherwise bool) bool {
	d := list.ForName(name)
	if d == nil {
		return otherwise
	}
	value, _ := literalTree(d.Arguments.ForName("if").Value, variables).(bool)
	return value
}
