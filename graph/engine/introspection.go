package engine

import (
	"context"
	"maps"
	"math"
	"slices"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/budget"
)

// introspection counts the values that a selection on the schema will write, before the core executes it. Merged,
// skipped and deprecated fields are counted too, so the count may be too high but is never too low. Counts of
// selections on a type are cached. Counting stops once the count exceeds most, since the operation is refused anyway.
type introspection struct {
	schema *ast.Schema
	most   int
	known  map[shown]int
}

// shown identifies a selection on a type.
type shown struct {
	set *ast.Selection // its first element
	typ string
}

// descriptionBytes is how many bytes of a description or an alias are charged like one value.
const descriptionBytes = 64

// maxIntrospection is the greatest count. Larger counts are replaced by it.
const maxIntrospection = math.MaxInt32

const (
	// introspectedBytes is the number of bytes of memory that a value takes until the answer is complete.
	introspectedBytes = 100
	// longIntrospection is the number of values above which introspection takes longer than most operations.
	longIntrospection = 5000
)

// chargeIntrospection charges the values that the introspection among the fields will write.
func (r *run) chargeIntrospection(ctx context.Context, fields []field) {
	for i := range fields {
		f := &fields[i]
		if !f.byCore || f.node.Name != "__schema" && f.node.Name != "__type" {
			continue
		}
		most := r.spent.budget.Left(budget.Steps) / budget.SchemaValue
		in := introspection{schema: r.engine.schema, most: min(most, maxIntrospection), known: map[shown]int{}}
		n := 0
		if f.node.Name == "__schema" {
			n = in.count(f.set, in.schema)
		} else if name, ok := f.node.ArgumentMap(r.oc.Variables)["name"].(string); ok {
			n = in.count(f.set, in.schema.Types[name])
		}
		r.charge(f, budget.SchemaValue*n)
		r.hold(ctx, f, r.spent.budget.Hold(ctx, n*introspectedBytes))
		if n > longIntrospection {
			r.spent.budget.Long(ctx)
			r.checkContext(ctx, f)
		}
	}
}

// corePlaces is an estimate of how often a field can occur in an answer of the core, for example once for each kind.
const corePlaces = 1000

// checkAliases halts the run if long aliases might make the answer of the core too long. The core cannot be stopped
// while it writes.
func (r *run) checkAliases(fields []field) {
	n, left := 0, r.spent.budget.Left(budget.Bytes)
	for i := range fields {
		f := &fields[i]
		if !f.byCore || f.node.Name == "__schema" || f.node.Name == "__type" {
			continue
		}
		n = min(n+aliasBytes(f.set), maxIntrospection)
		if n > left/corePlaces {
			r.exceed(budget.Bytes, f, max(n*corePlaces, left+1))
		}
	}
}

// aliasBytes returns the number of bytes of the aliases in a selection, at most maxIntrospection.
func aliasBytes(set ast.SelectionSet) (n int) {
	for f := range selectedFields(set) {
		if f.Alias != f.Name {
			n += len(f.Alias)
		}
		n = min(n+aliasBytes(f.SelectionSet), maxIntrospection)
	}
	return n
}

// count returns the number of values that a selection on an element of the schema will write, or some number above
// in.most.
func (in *introspection) count(set ast.SelectionSet, element any) (n int) {
	if len(set) == 0 {
		return 0
	}
	key, text := shown{set: &set[0]}, ""
	switch e := element.(type) {
	case *ast.Definition:
		if e == nil {
			return 0
		}
		key.typ, text = e.Name, e.Description
	case *ast.Type:
		if e.Elem == nil && !e.NonNull {
			return in.count(set, in.schema.Types[e.NamedType])
		}
		key.typ = e.String()
	case *ast.FieldDefinition:
		text = e.Description
	case *ast.ArgumentDefinition:
		text = e.Description
	case *ast.EnumValueDefinition:
		text = e.Description
	case *ast.DirectiveDefinition:
		text = e.Description
	}
	if n, ok := in.known[key]; ok && key.typ != "" {
		return n
	}
	for f := range selectedFields(set) {
		n += 1 + len(f.Alias)/descriptionBytes
		if f.Name == "description" {
			n += len(text) / descriptionBytes
		}
		in.below(element, f.Name, func(below any) {
			if n <= in.most {
				n += in.count(f.SelectionSet, below)
			}
		})
	}
	if key.typ != "" {
		in.known[key] = n
	}
	return n
}

// below calls visit for each value of an introspection field. For a type and the field "fields", for example, it visits
// the definition of each field of the type.
func (in *introspection) below(element any, field string, visit func(any)) {
	switch e := element.(type) {
	case *ast.Schema:
		switch field {
		case "types":
			visitAll(slices.Collect(maps.Values(e.Types)), visit)
		case "directives":
			visitAll(slices.Collect(maps.Values(e.Directives)), visit)
		case "queryType":
			visit(e.Query)
		case "mutationType":
			visit(e.Mutation)
		case "subscriptionType":
			visit(e.Subscription)
		}
	case *ast.Definition:
		switch {
		case field == "fields" && e.Kind != ast.InputObject, field == "inputFields" && e.Kind == ast.InputObject:
			visitAll(e.Fields, visit)
		case field == "enumValues":
			visitAll(e.EnumValues, visit)
		case field == "possibleTypes" && e.IsAbstractType():
			visitAll(in.schema.GetPossibleTypes(e), visit)
		case field == "interfaces":
			for _, name := range e.Interfaces {
				visit(in.schema.Types[name])
			}
		}
	case *ast.FieldDefinition:
		switch field {
		case "args":
			visitAll(e.Arguments, visit)
		case "type":
			visit(e.Type)
		}
	case *ast.DirectiveDefinition:
		if field == "args" {
			visitAll(e.Arguments, visit)
		}
	case *ast.ArgumentDefinition:
		if field == "type" {
			visit(e.Type)
		}
	case *ast.Type:
		switch {
		case field != "ofType":
		case e.NonNull:
			bare := *e
			bare.NonNull = false
			visit(&bare)
		default:
			visit(e.Elem)
		}
	}
}

func visitAll[T any](list []T, visit func(any)) {
	for _, one := range list {
		visit(one)
	}
}
