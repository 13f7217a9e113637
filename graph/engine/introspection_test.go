package engine_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/graph/kinds"
)

// TestAnIntrospectionThatIsRefusedCostsLittle: it is counted up to its limit, and its caller pays for no more.
func TestAnIntrospectionThatIsRefusedCostsLittle(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	var lists strings.Builder
	for i := range 90 {
		_, _ = fmt.Fprintf(&lists, "a%d: fields { args { name type { name } } } ", i)
	}
	oc, errs := g.prepare(`{ __schema { types { `+lists.String()+`} } }`, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	oc.DisableIntrospection = false
	const most = 100_000
	spent := budget.New(budget.Limits{budget.Steps: most})
	next, ctx := g.exec.DispatchOperation(budget.With(t.Context(), spent), oc)
	res := next(ctx)
	n := spent.Spent(budget.Steps)
	within := n > most && n <= 4*most // lists that are written at the same time each charge what they have begun
	if string(res.Data) != "null" || !strings.Contains(res.Errors.Error(), "limit-steps") || !within {
		t.Errorf("%d steps, %.100s %v", n, res.Data, res.Errors)
	}
}
