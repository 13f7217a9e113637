package engine

import (
	"math"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
)

// introspection counts the values that a selection on the schema writes, before
// the core executes it. Fields that are merged, skipped or deprecated count as well, so the count may be too high but
// never too low. A selection on a type is counted once and the number used again.
type introspection struct {
	schema    *ast.Schema
	fragments ast.FragmentDefinitionList
	known     map[shown]int
}

// shown is a selection on a type.
type shown struct {
	set *ast.Selection // its first element
	typ string
}

// descriptionBytes of a description or an alias cost as much as one more value.
const descriptionBytes = 64

// maxIntrospection stands for all larger counts.
const maxIntrospection = math.MaxInt32

const (
	// introspectedBytes is the memory that a value of the schema takes until the answer is complete.
	introspectedBytes = 100
	// longIntrospection is the number of values from which an introspection takes longer than
	// most operations.
	longIntrospection = 5000
)

// chargeIntrospection charges the values that introspection among the fields will write.
func (r *run) chargeIntrospection(fields []field) {
	for i := range fields {
		f := &fields[i]
		if f.op != opCore || f.node.Name != "__schema" && f.node.Name != "__type" {
			continue
		}
		in := introspection{schema: r.engine.schema, fragments: r.oc.Doc.Fragments, known: map[shown]int{}}
		n := 0
		if f.node.Name == "__schema" {
			n = in.root(f.set)
		} else if name, ok := f.node.ArgumentMap(r.oc.Variables)["name"].(string); ok {
			n = in.definition(f.set, in.schema.Types[name])
		}
		r.charge(f, budget.SchemaValue*n)
		r.hold(f, r.spent.budget.Hold(r.ctx, n*introspectedBytes))
		if n > longIntrospection {
			r.spent.budget.Long(r.ctx)
			r.checkContext(f)
		}
	}
}

// corePlaces is an estimate of how many places of the core's answer a field stands in, like the fields of all kinds.
const corePlaces = 1000

// checkAliases halts if the answer of the core may be too long because of the document's aliases. The core cannot be stopped
// while it writes.
func (r *run) checkAliases(fields []field) {
	in := introspection{fragments: r.oc.Doc.Fragments}
	n, left := 0, r.spent.budget.Left(budget.Bytes)
	for i := range fields {
		f := &fields[i]
		if f.op != opCore || f.node.Name == "__schema" || f.node.Name == "__type" {
			continue
		}
		if n = min(n+in.names(f.set), maxIntrospection); n > left/corePlaces {
			r.exceed(budget.Bytes, f, max(n*corePlaces, left+1))
		}
	}
}

// names returns the bytes of the aliases of a selection, up to maxIntrospection.
func (in *introspection) names(set ast.SelectionSet) (n int) {
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			if s.Alias != s.Name {
				n += len(s.Alias)
			}
			n += in.names(s.SelectionSet)
		case *ast.InlineFragment:
			n += in.names(s.SelectionSet)
		case *ast.FragmentSpread:
			if f := in.fragments.ForName(s.Name); f != nil {
				n += in.names(f.SelectionSet)
			}
		}
		n = min(n, maxIntrospection)
	}
	return n
}

// each returns the number of fields of a selection and of the values below them.
func (in *introspection) each(set ast.SelectionSet, below func(*ast.Field) int) int {
	n := 0
	for _, s := range set {
		switch s := s.(type) {
		case *ast.Field:
			n += 1 + len(s.Alias)/descriptionBytes + below(s)
		case *ast.InlineFragment:
			n += in.each(s.SelectionSet, below)
		case *ast.FragmentSpread:
			if f := in.fragments.ForName(s.Name); f != nil {
				n += in.each(f.SelectionSet, below)
			}
		}
		n = min(n, maxIntrospection)
	}
	return n
}

func (in *introspection) root(set ast.SelectionSet) int {
	return in.each(set, func(f *ast.Field) (n int) {
		switch f.Name {
		case "types":
			for _, def := range in.schema.Types {
				n = min(n+in.definition(f.SelectionSet, def), maxIntrospection)
			}
		case "directives":
			for _, d := range in.schema.Directives {
				n += in.each(f.SelectionSet, func(f *ast.Field) int {
					if f.Name == "args" {
						return in.arguments(f.SelectionSet, d.Arguments)
					}
					return described(f, d.Description)
				})
			}
		case "queryType":
			n = in.definition(f.SelectionSet, in.schema.Query)
		case "mutationType":
			n = in.definition(f.SelectionSet, in.schema.Mutation)
		case "subscriptionType":
			n = in.definition(f.SelectionSet, in.schema.Subscription)
		}
		return n
	})
}

// described returns what a description costs beyond one value.
func described(f *ast.Field, text string) int {
	if f.Name != "description" {
		return 0
	}
	return len(text) / descriptionBytes
}

// definition counts a selection on a type that has a name.
func (in *introspection) definition(set ast.SelectionSet, def *ast.Definition) int {
	if def == nil || len(set) == 0 {
		return 0
	}
	key := shown{&set[0], def.Name}
	n, ok := in.known[key]
	if !ok {
		n = in.each(set, func(f *ast.Field) int { return in.below(f, def) })
		in.known[key] = n
	}
	return n
}

func (in *introspection) below(f *ast.Field, def *ast.Definition) (n int) {
	types := func(list []*ast.Definition) {
		for _, one := range list {
			n = min(n+in.definition(f.SelectionSet, one), maxIntrospection)
		}
	}
	switch f.Name {
	case "fields":
		if def.Kind == ast.InputObject {
			return 0
		}
		for _, one := range def.Fields {
			n += in.each(f.SelectionSet, func(f *ast.Field) int {
				switch f.Name {
				case "args":
					return in.arguments(f.SelectionSet, one.Arguments)
				case "type":
					return in.reference(f.SelectionSet, one.Type)
				}
				return described(f, one.Description)
			})
			n = min(n, maxIntrospection)
		}
	case "inputFields":
		if def.Kind != ast.InputObject {
			return 0
		}
		for _, one := range def.Fields {
			n = min(n+in.input(f.SelectionSet, one.Description, one.Type), maxIntrospection)
		}
	case "interfaces":
		for _, name := range def.Interfaces {
			types([]*ast.Definition{in.schema.Types[name]})
		}
	case "possibleTypes":
		if def.IsAbstractType() {
			types(in.schema.GetPossibleTypes(def))
		}
	case "enumValues":
		for _, one := range def.EnumValues {
			n += in.each(f.SelectionSet, func(f *ast.Field) int { return described(f, one.Description) })
		}
	}
	return n + described(f, def.Description)
}

func (in *introspection) arguments(set ast.SelectionSet, list ast.ArgumentDefinitionList) (n int) {
	for _, one := range list {
		n = min(n+in.input(set, one.Description, one.Type), maxIntrospection)
	}
	return n
}

// input counts a selection on an argument or a field of an input.
func (in *introspection) input(set ast.SelectionSet, description string, t *ast.Type) int {
	return in.each(set, func(f *ast.Field) int {
		if f.Name == "type" {
			return in.reference(f.SelectionSet, t)
		}
		return described(f, description)
	})
}

// reference counts a selection on the type of a field or an argument, with its lists and
// NonNull.
func (in *introspection) reference(set ast.SelectionSet, t *ast.Type) int {
	var inner *ast.Type
	switch {
	case t.NonNull:
		bare := *t
		bare.NonNull = false
		inner = &bare
	case t.Elem != nil:
		inner = t.Elem
	default:
		return in.definition(set, in.schema.Types[t.NamedType])
	}
	if len(set) == 0 {
		return 0
	}
	key := shown{&set[0], t.String()}
	n, ok := in.known[key]
	if !ok {
		n = in.each(set, func(f *ast.Field) int {
			if f.Name == "ofType" {
				return in.reference(f.SelectionSet, inner)
			}
			return 0
		})
		in.known[key] = n
	}
	return n
}
