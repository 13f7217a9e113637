package engine

import (
	"strconv"
	"sync"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/ast"
)

// maxTruths is the maximum number of plans that are kept for an operation. There is one for each combination of values
// of its Boolean variables.
const maxTruths = 64

// plans has the plans of all documents in the server's cache. The zero value is empty. Safe for concurrent use.
type plans struct {
	mu   sync.RWMutex // guards docs and all below
	docs map[*ast.QueryDocument]*document
}

// document has the plans of a cached document.
type document struct {
	weigh func(fields int) // is called with the number of fields that were added
	// plans maps an operation and the values of its Boolean variables to a plan.
	plans map[*ast.OperationDefinition]map[string]*plan
}

// Keep makes the engine keep the plans of a document until [Engine.Forget]. Whenever the engine keeps another plan, it
// calls weigh with the number of the plan's fields. It calls weigh again when selections on interfaces add fields to a
// kept plan. A field takes about 300 bytes.
func (e *Engine) Keep(doc *ast.QueryDocument, weigh func(fields int)) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	if e.plans.docs == nil {
		e.plans.docs = map[*ast.QueryDocument]*document{}
	}
	if e.plans.docs[doc] == nil {
		e.plans.docs[doc] = &document{weigh: weigh, plans: map[*ast.OperationDefinition]map[string]*plan{}}
	}
}

// Forget drops the plans of a document.
func (e *Engine) Forget(doc *ast.QueryDocument) {
	e.plans.mu.Lock()
	defer e.plans.mu.Unlock()
	delete(e.plans.docs, doc)
}

// plan returns the plan of an operation, compiling it if necessary.
func (e *Engine) plan(oc *graphql.OperationContext) (*plan, error) {
	var space [32]byte
	truth := space[:0]
	for _, v := range oc.Operation.VariableDefinitions {
		if isBoolean(v) {
			truth = strconv.AppendBool(truth, oc.Variables[v.Variable] == true)
		}
	}
	var known *plan
	e.plans.mu.RLock()
	d := e.plans.docs[oc.Doc]
	if d != nil {
		known = d.plans[oc.Operation][string(truth)]
	}
	e.plans.mu.RUnlock()
	if known != nil {
		return known, nil
	}
	p, err := e.compile(oc)
	if err != nil || d == nil {
		return p, err
	}
	e.plans.mu.Lock()
	if d.plans[oc.Operation] == nil {
		d.plans[oc.Operation] = map[string]*plan{}
	}
	of := d.plans[oc.Operation]
	known = of[string(truth)]
	kept := known == nil && len(of) < maxTruths
	if kept {
		p.number = e.answers.NewPlan()
		of[string(truth)] = p
	}
	e.plans.mu.Unlock()
	if known != nil {
		return known, nil
	}
	if kept {
		p.compiler.kept(d.weigh)
	}
	return p, nil
}

func isBoolean(v *ast.VariableDefinition) bool { return v.Type.NamedType == "Boolean" }
