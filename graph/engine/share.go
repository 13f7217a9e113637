package engine

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/lexer"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/graph/stream"
)

var (
	_ stream.Subscription = (*subscription)(nil)
	_ stream.Answerer     = (*subscription)(nil)
)

// errReplaced is the end of a shared execution whose catalogue is not served any more.
var errReplaced = errors.New("the catalogue was replaced")

// met says that the subscription can go on together with equal ones, if the transport
// shares executions.
func (s *subscription) met() bool {
	if !s.state.Shares() {
		return false
	}
	switch s.changes.Moment() {
	case change.AtState:
		s.state.Meet(s, stream.AtState)
	case change.AtStateAgain:
		s.state.Meet(s, stream.AtStateAgain)
	case change.AtRest:
		s.state.Meet(s, stream.AtRest)
	default:
		return false
	}
	return true
}

// Key is part of [stream.Subscription]: the document and which operation of it, the
// variables, what else was asked, and who asks. Where the client resumed makes no difference.
func (s *subscription) Key() stream.Key {
	oc := s.oc
	variables := oc.Variables
	for _, name := range []string{"after", "snapshot"} {
		if v := onlyFor(oc, s.field(), name); v != "" {
			if len(variables) == len(oc.Variables) {
				variables = copyOf(variables)
			}
			delete(variables, v)
		}
	}
	h := sha256.New()
	// Encoding sorts the keys of maps. Nothing else is in coerced variables and in extensions.
	err := json.NewEncoder(h).Encode([]any{oc.RawQuery, oc.Operation.Name, variables, oc.Extensions, s.caller.Identity, s.caller.View})
	if err != nil { // then it is equal to none
		_, _ = fmt.Fprintf(h, "%p", s)
	}
	return stream.Key(h.Sum(nil))
}

func copyOf(m map[string]any) map[string]any {
	out := make(map[string]any, len(m))
	for k, v := range m {
		out[k] = v
	}
	return out
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

// Join is part of [stream.Subscription].
func (s *subscription) Join(leader stream.Subscription, at stream.Moment) (seen uint64, ok bool) {
	l := leader.(*subscription)
	if at != stream.AtRest {
		s.changes.Quit()
		ok = true
	} else {
		seen, ok = s.changes.Join(l.changes)
	}
	if ok {
		s.follow(l)
	}
	return seen, ok
}

// follow keeps no plan and no memory of its own: what follows another is mostly silent.
func (s *subscription) follow(l *subscription) { s.plan, s.run, s.pending = l.plan, nil, nil }

// Level is part of [stream.Subscription].
func (s *subscription) Level(leader stream.Subscription) (seen uint64, ok bool) {
	return s.changes.Level(leader.(*subscription).changes)
}

// Answer is part of [stream.Answerer].
func (s *subscription) Answer(event any) { s.pending = append(s.pending, event.(change.Change)) }

// Resume is part of [stream.Subscription].
func (s *subscription) Resume(from stream.Return) {
	s.cursor = from.Cursor
	switch {
	case errors.Is(from.Err, errReplaced):
		s.retired = true
	case from.Lagged && from.Place == nil:
		s.changes.Resume(nil, s.changes.Lagged(from.Cursor))
	default:
		place, _ := from.Place.(*change.Place)
		s.changes.Resume(place, from.Err)
	}
}

// Ended is part of [stream.Subscription].
func (s *subscription) Ended() bool { return s.retired || s.waiting.Err() != nil }

// lead begins an execution that equal subscriptions share, in the place of the first.
func (e *Engine) lead(ctx context.Context, oc *graphql.OperationContext, p *plan, first *subscription) graphql.ResponseHandler {
	s := &subscription{
		engine: e, oc: oc, plan: p, caller: first.caller, changes: first.changes.HandOver(), state: stream.From(ctx), everyKind: first.everyKind, cursor: first.cursor,
	}
	first.follow(s)
	s.waiting = join(ctx, (*stream.Group).JoinShared, s.changes.Close, e.groups(s.everyKind)...)
	context.AfterFunc(s.waiting, s.state.Lead.Notify)
	s.state.Meet(s, stream.Leads)
	return s.nextForAll
}

// nextForAll is the answer for the next change; nil if there is none now, or at the end.
func (s *subscription) nextForAll(ctx context.Context) *graphql.Response {
	step := stream.Step{}
	var err error
	if len(s.pending) == 0 && !s.Ended() {
		if s.changes.Finishing() && s.state.Lead.Late() {
			s.changes.Late()
		}
		s.place = s.changes.Place()
		s.pending, step.Wait, err = s.changes.Poll(budget.With(s.waiting, budget.From(ctx)), s.state.Lead.Notify)
	}
	if s.place != nil {
		step.Place = s.place
	}
	switch {
	case s.Ended():
		step.Err = errReplaced
	case err != nil:
		step.Err = err
	case len(s.pending) > 0:
		c := &s.pending[0]
		s.pending = s.pending[1:]
		s.state.Push(c.Cursor)
		step.Event, step.Number, step.Mark = *c, c.Number, c.Stored == nil
		step.More = len(s.pending) > 0
		step.Live = !step.More && s.changes.Place() == nil
		s.state.Take(step)
		return s.answer(ctx, c)
	}
	s.state.Take(step)
	return nil
}
