package server

import (
	"context"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/99designs/gqlgen/graphql/errcode"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"github.com/vektah/gqlparser/v2/parser"

	"github.com/sluicegw/sluice/backend/service"
)

// documentLimits refuses a document that is too large before it is validated:
// validation takes time that grows with the square of some of its parts.
type documentLimits struct {
	limits Limits
	hidden bool // the schema
	seen   graphql.Cache[bool]
}

var _ interface {
	graphql.OperationParameterMutator
	graphql.HandlerExtension
} = documentLimits{}

func newDocumentLimits(l Limits, hidden bool) documentLimits {
	return documentLimits{limits: l, hidden: hidden, seen: newShort[bool]()}
}

// ExtensionName is the name in gqlgen's errors.
func (documentLimits) ExtensionName() string { return "DocumentLimits" }

// Validate accepts every schema.
func (documentLimits) Validate(graphql.ExecutableSchema) error { return nil }

// MutateOperationParameters checks a document that was not seen before.
func (d documentLimits) MutateOperationParameters(ctx context.Context, p *graphql.RawParams) *gqlerror.Error {
	if ok, _ := d.seen.Get(ctx, p.Query); ok {
		return nil
	}
	doc, err := parser.ParseQueryWithTokenLimit(&ast.Source{Input: p.Query}, d.limits.Tokens)
	if err != nil {
		if isTokenLimit(err) {
			return exceeded("tokens", "limit-tokens", d.limits.Tokens)
		}
		var known *gqlerror.Error
		if !errors.As(err, &known) {
			known = gqlerror.Errorf("the document does not parse")
		}
		errcode.Set(known, errcode.ParseFailed)
		return known
	}
	c := counter{limits: d.limits, hidden: d.hidden, fragments: map[string]*ast.FragmentDefinition{}, sizes: map[string]size{}}
	if len(doc.Fragments) > d.limits.Fragments {
		return exceeded("fragments", "limit-fragments", d.limits.Fragments)
	}
	for _, f := range doc.Fragments {
		c.fragments[f.Name] = f
	}
	for _, o := range doc.Operations {
		c.add(c.set(o.SelectionSet))
	}
	for _, f := range doc.Fragments {
		c.fragment(f.Name)
	}
	if c.err == nil {
		d.seen.Add(ctx, p.Query, true)
	}
	return c.err
}

// isTokenLimit recognises the parser's own refusal; it has no sentinel.
func isTokenLimit(err error) bool {
	var e *gqlerror.Error
	return errors.As(err, &e) && len(e.Message) > len(tokenLimitText) && e.Message[:len(tokenLimitText)] == tokenLimitText
}

const tokenLimitText = "exceeded token limit"

func exceeded(what, key string, limit int) *gqlerror.Error {
	return &gqlerror.Error{
		Message:    fmt.Sprintf("the document has more %s than the %d that are accepted (configuration key %s)", what, limit, key),
		Extensions: map[string]any{"code": string(service.CodeLimitExceeded), "limit": limit, "key": key},
	}
}

// size is the extent of a selection set, fragments expanded.
type size struct {
	fields, depth int
	schemas       int // fields named __schema: each answers with the whole schema
}

// counter measures each selection set and each fragment once, whatever it is used for.
type counter struct {
	limits    Limits
	hidden    bool
	fragments map[string]*ast.FragmentDefinition
	sizes     map[string]size
	aliases   int
	total     int
	err       *gqlerror.Error
}

func (c *counter) refuse(what, key string, limit int) {
	if c.err == nil {
		c.err = exceeded(what, key, limit)
	}
}

func (c *counter) add(s size) {
	c.total += s.fields
	if c.total > c.limits.Fields {
		c.refuse("fields", "limit-fields", c.limits.Fields)
	}
	if s.schemas > c.limits.Introspections {
		c.refuse("introspections of the schema", "limit-introspections", c.limits.Introspections)
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
			s = c.set(sel.SelectionSet)
			s = size{fields: s.fields + 1, depth: s.depth + 1, schemas: s.schemas}
			if sel.Name == "__schema" {
				s.schemas++
			}
			if c.hidden && (sel.Name == "__schema" || sel.Name == "__type") && c.err == nil {
				c.err = &gqlerror.Error{Message: "introspection is switched off (configuration key hide-schema)", Extensions: map[string]any{"code": string(service.CodeForbidden)}}
			}
			name = sel.Alias
			if sel.Alias != sel.Name {
				c.aliases++
			}
		case *ast.InlineFragment:
			s = c.set(sel.SelectionSet)
			name = "... on " + sel.TypeCondition
		case *ast.FragmentSpread:
			s = c.fragment(sel.Name)
			name = "... " + sel.Name
		}
		if seen[name]++; seen[name] > c.limits.Repeats {
			c.refuse("repetitions of one field", "limit-repeats", c.limits.Repeats)
		}
		out.fields = min(out.fields+s.fields, c.limits.Fields+1)
		out.depth = max(out.depth, s.depth)
		out.schemas = min(out.schemas+s.schemas, c.limits.Introspections+1)
		if c.err != nil {
			return out
		}
	}
	if c.aliases > c.limits.Aliases {
		c.refuse("aliases", "limit-aliases", c.limits.Aliases)
	}
	if out.fields > c.limits.Fields {
		c.refuse("fields", "limit-fields", c.limits.Fields)
	}
	return out
}

// fragment measures a fragment once. One that contains itself counts as empty
// there; validation refuses it.
func (c *counter) fragment(name string) size {
	if s, ok := c.sizes[name]; ok {
		return s
	}
	f := c.fragments[name]
	if f == nil {
		return size{}
	}
	c.sizes[name] = size{}
	s := c.set(f.SelectionSet)
	c.sizes[name] = s
	return s
}
