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

	"github.com/sluicegw/sluice/graph/stream"
)

// Key implements [stream.Execution]. The key depends on the document, the operation, the variables, the extensions and
// the rights of the caller. It does not depend on the cursor from which the client resumes, nor on the name of the
// caller. It need not depend on the version of the API, since each version has groups of its own.
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
	// json sorts the keys of maps.
	err := json.NewEncoder(h).Encode([]any{oc.RawQuery, oc.Operation.Name, variables, oc.Extensions, rights})
	if err != nil { // equal to no other
		_, _ = fmt.Fprintf(h, "%p", s)
	}
	return stream.ShareKey(h.Sum(nil))
}

// onlyFor returns the variable that an argument of the root field uses, if the document uses it nowhere else; otherwise
// "".
func onlyFor(oc *graphql.OperationContext, f *field, argument string) string {
	a := f.node.Arguments.ForName(argument)
	if a == nil || a.Value == nil || a.Value.Kind != ast.Variable || named(oc.RawQuery, a.Value.Raw) != 2 {
		return ""
	}
	return a.Value.Raw
}

// named returns how often a document contains a variable; 0 if the document does not parse. There can be blanks and
// comments between $ and the name.
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

// Follow implements [stream.Execution]. A follower rarely answers by itself, so it shares the plan of its leader and
// drops its run.
func (s *execution) Follow(leader stream.Execution) {
	s.plan = leader.(*execution).plan
	s.run = nil
}

// Lead begins an execution that equal subscriptions share. It takes over the stream of changes from the execution of
// one of them. The shared execution ends with ctx.
func (e *Engine) Lead(ctx context.Context, of stream.Execution) stream.Execution {
	first := of.(*execution)
	s := &execution{
		engine:    e,
		oc:        first.oc,
		plan:      first.plan,
		changes:   first.changes.HandOver(),
		everyKind: first.everyKind,
	}
	s.waiting = join(ctx, true, s.changes.Close, e.sets(s.everyKind)...)
	return s
}
