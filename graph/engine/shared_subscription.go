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

// Changes implements [stream.Execution].
func (s *execution) Changes() *change.Stream { return s.changes }

// Key implements [stream.Execution]. It depends on the document, the operation, the variables, the
// extensions and the rights of the caller, but not on the cursor from which the client resumes, the
// caller's name or the version of the API, as groups belong to one version.
func (s *execution) Key() stream.ShareKey {
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
	// The encoder sorts the keys of maps.
	err := json.NewEncoder(h).Encode([]any{oc.RawQuery, oc.Operation.Name, variables, oc.Extensions, rights})
	if err != nil { // equal to no other
		_, _ = fmt.Fprintf(h, "%p", s)
	}
	return stream.ShareKey(h.Sum(nil))
}

// onlyFor returns the variable that is the value of an argument of the root field, if the document
// uses it nowhere else; else "".
func onlyFor(oc *graphql.OperationContext, f *field, argument string) string {
	a := f.node.Arguments.ForName(argument)
	if a == nil || a.Value == nil || a.Value.Kind != ast.Variable || named(oc.RawQuery, a.Value.Raw) != 2 {
		return ""
	}
	return a.Value.Raw
}

// named returns how often a document names a variable; 0 if it does not parse. Blanks and comments may stand between $
// and the name.
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

// Follow implements [stream.Execution]. It drops plan and run, which a following execution rarely
// needs.
func (s *execution) Follow(leader stream.Execution) {
	s.plan = leader.(*execution).plan
	s.run = nil
	s.pending = nil
}

// Resume implements [stream.Execution].
func (s *execution) Resume(cursor string, replaced bool) { s.cursor, s.retired = cursor, replaced }

// Ended implements [stream.Execution].
func (s *execution) Ended() bool { return s.retired || s.waiting.Err() != nil }

// lead begins an execution that equal subscriptions share. It replaces the first of them.
func (e *Engine) lead(
	ctx context.Context, oc *graphql.OperationContext, p *plan, first *execution,
) graphql.ResponseHandler {
	s := &execution{
		engine:    e,
		oc:        oc,
		plan:      p,
		changes:   first.changes.HandOver(),
		state:     stream.From(ctx),
		everyKind: first.everyKind,
		cursor:    first.cursor,
	}
	first.Follow(s)
	s.waiting = join(ctx, true, s.changes.Close, e.sets(s.everyKind)...)
	s.state.Lead(s.waiting, s)
	return s.nextForAll
}

// nextForAll returns the answer for the next change; nil if there is none now, or at the end.
func (s *execution) nextForAll(ctx context.Context) *graphql.Response {
	c := s.state.Take(budget.With(s.waiting, budget.From(ctx)))
	if c == nil {
		return nil
	}
	return s.answer(ctx, c)
}
