package server

import (
	"fmt"
	"slices"
	"strings"

	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// exceeded returns the error of a document that exceeds a limit. key is the name of the limit in docs/limits.md.
func exceeded(what, key string, limit int) *gqlerror.Error {
	return &gqlerror.Error{
		Message:    fmt.Sprintf("the document has more %s than the %d that are accepted (%s)", what, limit, key),
		Extensions: map[string]any{"code": string(failure.CodeLimitExceeded), "limit": limit, "setting": key},
	}
}

// size is the size of a selection set with its fragments expanded.
type size struct {
	// selections is the number of fields, inline fragments and fragment spreads. A spread counts even if its fragment
	// is empty or not defined, because validation visits it.
	selections, depth int
}

// counter is the state of checkLimits. It measures each fragment only once, even if there are many spreads of it.
type counter struct {
	limits    Limits
	hidden    bool // introspection is refused
	fragments map[string]*ast.FragmentDefinition
	sizes     map[string]size
	// open are the fragments that contain the one being measured, the outermost first.
	open    []string
	aliases int
	total   int
	err     *gqlerror.Error
}

// checkLimits returns an error if a document exceeds a limit or has a cycle of fragments. Without this check,
// validation could take very long.
func checkLimits(doc *ast.QueryDocument, limits Limits, hidden bool) *gqlerror.Error {
	if len(doc.Fragments) > MaxFragments {
		return exceeded("fragments", "limit-fragments", MaxFragments)
	}
	c := counter{
		limits:    limits,
		hidden:    hidden,
		fragments: map[string]*ast.FragmentDefinition{},
		sizes:     map[string]size{},
	}
	for _, f := range doc.Fragments {
		c.fragments[f.Name] = f
	}
	for _, o := range doc.Operations {
		for _, v := range o.VariableDefinitions {
			c.value(v.DefaultValue, 0)
			c.directives(v.Directives)
		}
		c.directives(o.Directives)
		c.add(c.set(o.SelectionSet))
	}
	for _, f := range doc.Fragments {
		c.directives(f.Directives)
		c.fragment(f.Name)
	}
	return c.err
}

func (c *counter) refuse(what, key string, limit int) {
	if c.err == nil {
		c.err = exceeded(what, key, limit)
	}
}

func (c *counter) add(s size) {
	c.total += s.selections
	if c.total > c.limits.Fields {
		c.refuse("fields", "limit-fields", c.limits.Fields)
	}
	if s.depth > c.limits.Depth {
		c.refuse("levels of nesting", "limit-depth", c.limits.Depth)
	}
}

func (c *counter) set(set ast.SelectionSet) (out size) {
	seen := map[string]int{}
	for _, sel := range set {
		var s size
		name := ""
		switch sel := sel.(type) {
		case *ast.Field:
			name = sel.Alias
			s = c.field(sel)
		case *ast.InlineFragment:
			name = "... on " + sel.TypeCondition
			c.directives(sel.Directives)
			s = c.set(sel.SelectionSet)
		case *ast.FragmentSpread:
			name = "... " + sel.Name
			c.directives(sel.Directives)
			s = c.fragment(sel.Name)
		}
		if seen[name]++; seen[name] > MaxRepeats {
			c.refuse("repetitions of one field", "limit-repeats", MaxRepeats)
		}
		out.selections = min(out.selections+s.selections+1, c.limits.Fields+1)
		out.depth = max(out.depth, s.depth)
		if c.err != nil {
			return out
		}
	}
	if c.aliases > c.limits.Aliases {
		c.refuse("aliases", "limit-aliases", c.limits.Aliases)
	}
	if out.selections > c.limits.Fields {
		c.refuse("fields", "limit-fields", c.limits.Fields)
	}
	return out
}

// field measures a field and its selection set.
func (c *counter) field(f *ast.Field) size {
	c.arguments(f.Arguments)
	c.directives(f.Directives)
	s := c.set(f.SelectionSet)
	s.depth++
	if c.hidden && (f.Name == "__schema" || f.Name == "__type") && c.err == nil {
		c.err = &gqlerror.Error{Message: "introspection is switched off (configuration key hide-introspection)", Extensions: map[string]any{"code": string(failure.CodeForbidden)}}
	}
	if f.Alias != f.Name {
		c.aliases++
	}
	return s
}

// fragment measures a fragment, once. It is an error if the fragment contains itself.
func (c *counter) fragment(name string) size {
	if s, ok := c.sizes[name]; ok {
		return s
	}
	f := c.fragments[name]
	if f == nil {
		return size{}
	}
	if i := slices.Index(c.open, name); i >= 0 {
		c.cycle(f, c.open[i+1:])
		return size{}
	}
	c.open = append(c.open, name)
	s := c.set(f.SelectionSet)
	c.open = c.open[:len(c.open)-1]
	c.sizes[name] = s
	return s
}

// cycle sets the error of a fragment that contains itself by way of others. The message is the same as in validation.
func (c *counter) cycle(f *ast.FragmentDefinition, via []string) {
	if c.err != nil {
		return
	}
	way := ""
	if len(via) > 0 {
		way = ` via "` + strings.Join(via, `", "`) + `"`
	}
	c.err = gqlerror.ErrorPosf(f.Position, `Cannot spread fragment "%s" within itself%s.`, f.Name, way)
	errcode.Set(c.err, errcode.ValidationFailed)
}

func (c *counter) directives(list ast.DirectiveList) {
	for _, d := range list {
		c.arguments(d.Arguments)
	}
}

func (c *counter) arguments(list ast.ArgumentList) {
	for _, a := range list {
		c.value(a.Value, 0)
	}
}

// value measures the nesting of a value. Validation visits a value once for each level above it.
func (c *counter) value(v *ast.Value, depth int) {
	if v == nil || c.err != nil {
		return
	}
	if v.Kind == ast.ListValue || v.Kind == ast.ObjectValue {
		depth++
	}
	if depth > c.limits.Depth {
		c.refuse("levels of nesting", "limit-depth", c.limits.Depth)
	}
	for _, child := range v.Children {
		c.value(child.Value, depth)
	}
}
