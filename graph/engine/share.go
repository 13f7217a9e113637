package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"maps"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/graph/stream"
)

var _ stream.Execution = (*execution)(nil)

// Changes is part of [stream.Execution].
func (s *execution) Changes() *change.Stream { return s.changes }

// Key is part of [stream.Execution]: the document and which operation of it, the
// variables, what else was asked, the view, and what the caller may do. Where the client resumed makes no difference, nor
// who asks: callers with equal rights see the same.
func (s *execution) Key() stream.Key {
	oc := s.oc
	variables := oc.Variables
	for _, name := range []string{"after", "snapshot"} {
		if v := onlyFor(oc, s.field(), name); v != "" {
			if len(variables) == len(oc.Variables) {
				variables = maps.Clone(variables)
			}
			delete(variables, v)
		}
	}
	rights := ""
	if r := s.changes.Rights(); r != nil {
		rights = r.Key()
	}
	h := sha256.New()
	// Encoding sorts the keys of maps. Nothing else is in coerced variables and in extensions.
	err := json.NewEncoder(h).Encode([]any{oc.RawQuery, oc.Operation.Name, variables, oc.Extensions, s.caller.View, rights})
	if err != nil { // then it is equal to none
		_, _ = fmt.Fprintf(h, "%p", s)
	}
	return stream.Key(h.Sum(nil))
}

// onlyFor is the variable that is an argument of the root field and stands nowhere else:
// where it is declared and where it is used. It is "" if there is none.
func onlyFor(oc *graphql.OperationContext, f *field, argument string) string {
	a := f.node.Arguments.ForName(argument)
	if a == nil || a.Value == nil || a.Value.Kind != ast.Variable || named(oc.RawQuery, a.Value.Raw) != 2 {
		return ""
	}
	return a.Value.Raw
}

// named is how often a document names a variable, whatever stands between the sign and
// the name; 0 if it is not a document.
func named(document, variable string) (n int) {
	l := lexer.New(&ast.Source{Input: document})
	for sign := false; ; {
		token, err := l.ReadToken()
		switch {
		case err != nil:
			return 0
		case token.Kind == lexer.EOF:
			return n
		case sign && token.Kind == lexer.Name && token.Value == variable:
			n++
		}
		if token.Kind != lexer.Comment {
			sign = token.Kind == lexer.Dollar
		}
	}
}

// Follow is part of [stream.Execution]. It keeps no plan and no memory of its own: what follows
// another is mostly silent.
func (s *execution) Follow(leader stream.Execution) {
	s.plan, s.run, s.pending = leader.(*execution).plan, nil, nil
}

// Resume is part of [stream.Execution].
func (s *execution) Resume(cursor string, replaced bool) { s.cursor, s.retired = cursor, replaced }

// Ended is part of [stream.Execution].
func (s *execution) Ended() bool { return s.retired || s.waiting.Err() != nil }

// lead begins an execution that equal subscriptions share, in the place of the first.
func (e *Engine) lead(ctx context.Context, oc *graphql.OperationContext, p *plan, first *execution) graphql.ResponseHandler {
	s := &execution{
		engine: e, oc: oc, plan: p, caller: first.caller, changes: first.changes.HandOver(), state: stream.From(ctx), everyKind: first.everyKind, cursor: first.cursor,
	}
	first.Follow(s)
	s.waiting = join(ctx, true, s.changes.Close, e.sets(s.everyKind)...)
	s.state.Lead(s.waiting, s)
	return s.nextForAll
}

// nextForAll is the answer for the next change; nil if there is none now, or at the end.
func (s *execution) nextForAll(ctx context.Context) *graphql.Response {
	c := s.state.Take(budget.With(s.waiting, budget.From(ctx)))
	if c == nil {
		return nil
	}
	return s.answer(ctx, c)
}
