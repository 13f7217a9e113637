package engine

import (
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// maxTruths is the most plans of one operation that are kept: there is one for each combination of values of the
// variables in @skip and @include.
const maxTruths = 64

// plans are the plans of the documents in the gateway's cache. The zero value
// is ready; safe for concurrent use.
type plans struct {
	mu   sync.Mutex // guards docs and all below
	docs map[*ast.QueryDocument]*document
}

// document has the plans of a document in the cache.
type document struct {
	weigh      func(fields int) // is called with the number of fields that were added
	operations map[*ast.OperationDefinition]*operation
}

type operation struct {
	// variables are the variables in @skip and @include.
	variables []string
	plans     map[string]*plan
}

// Keep makes the engine keep the plans of a document until [Engine.Forget]. It calls weigh with the number of fields
// whenever it keeps more of them; a field takes some 300 bytes.
func (e *Engine) Keep(doc *ast.QueryDocument, weigh func(fields int)) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	if e.plans.docs == nil {
		e.plans.docs = map[*ast.QueryDocument]*document{}
	}
	if e.plans.docs[doc] == nil {
		e.plans.docs[doc] = &document{weigh: weigh, operations: map[*ast.OperationDefinition]*operation{}}
	}
}

// Forget drops the plans of a document.
func (e *Engine) Forget(doc *ast.QueryDocument) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	delete(e.plans.docs, doc)
}

// plan returns the plan of an operation, compiled if necessary.
func (e *Engine) plan(oc *graphql.OperationContext) (*plan, error) {
	e.plans.mu.Lock()
	d := e.plans.docs[oc.Doc]
	if d == nil {
		e.plans.mu.Unlock()
		return e.compile(oc, conditionVariables(oc.Doc, oc.Operation))
	}
	op := d.operations[oc.Operation]
	if op == nil {
		op = &operation{variables: conditionVariables(oc.Doc, oc.Operation), plans: map[string]*plan{}}
		d.operations[oc.Operation] = op
	}
	var space [16]byte
	truth := space[:0]
	for _, name := range op.variables {
		bit := byte('0')
		if b, _ := oc.Variables[name].(bool); b {
			bit = '1'
		}
		truth = append(truth, bit)
	}
	p := op.plans[string(truth)]
	e.plans.mu.Unlock()
	if p != nil {
		return p, nil
	}
	p, err := e.compile(oc, op.variables)
	if err != nil {
		return nil, err
	}
	e.plans.mu.Lock()
	first, kept := op.plans[string(truth)], false
	if first == nil && len(op.plans) < maxTruths {
		op.plans[string(truth)], kept = p, true
	}
	e.plans.mu.Unlock()
	if first != nil {
		return first, nil
	}
	if kept {
		p.compiler.kept(d.weigh)
	}
	return p, nil
}

// conditionVariables returns the variables in @skip and @include.
func conditionVariables(doc *ast.QueryDocument, op *ast.OperationDefinition) []string {
	var out []string
	seen, visited := map[string]bool{}, map[string]bool{}
	directives := func(list ast.DirectiveList) {
		for _, d := range list {
			if d.Name != "skip" && d.Name != "include" {
				continue
			}
			for _, a := range d.Arguments {
				if name := a.Value.Raw; a.Value.Kind == ast.Variable && !seen[name] {
					seen[name] = true
					out = append(out, name)
				}
			}
		}
	}
	var visit func(ast.SelectionSet)
	visit = func(set ast.SelectionSet) {
		for _, s := range set {
			switch s := s.(type) {
			case *ast.Field:
				directives(s.Directives)
				visit(s.SelectionSet)
			case *ast.InlineFragment:
				directives(s.Directives)
				visit(s.SelectionSet)
			case *ast.FragmentSpread:
				directives(s.Directives)
				if f := doc.Fragments.ForName(s.Name); f != nil && !visited[s.Name] {
					visited[s.Name] = true
					visit(f.SelectionSet)
				}
			}
		}
	}
	visit(op.SelectionSet)
	return out
}
