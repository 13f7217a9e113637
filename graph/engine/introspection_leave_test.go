package engine_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
)

// leavingAfter is a context whose client leaves at the n-th look.
type leavingAfter struct {
	context.Context
	looks atomic.Int64
	at    int64
}

func (c *leavingAfter) Err() error {
	if c.looks.Add(1) > c.at {
		return context.Canceled
	}
	return nil
}

// TestIntrospectionEndsWhenItsClientLeaves although the core executes it in one piece.
func TestIntrospectionEndsWhenItsClientLeaves(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	g := newGateway(t, catalogue, nil)
	var unknown atomic.Int64
	g.exec.SetErrorPresenter(func(ctx context.Context, err error) *gqlerror.Error {
		var known *failure.Error
		if !errors.As(err, &known) || known.Code != failure.CodeTimeout {
			unknown.Add(1)
		}
		return graphql.DefaultErrorPresenter(ctx, err)
	})
	looks := func(at int64) (n int64, data, errs string) {
		ctx := &leavingAfter{Context: t.Context(), at: at}
		oc, failed := g.prepare(`{ __schema { types { fields { name args { name type { name } } type { name } } } } }`, nil)
		if failed != nil {
			t.Fatal(failed)
		}
		oc.DisableIntrospection = false
		next, dispatched := g.exec.DispatchOperation(ctx, oc)
		res := next(dispatched)
		return ctx.looks.Load(), string(res.Data), res.Errors.Error()
	}
	whole, data, errs := looks(1 << 40)
	if errs != "" || len(data) < 10_000 || whole < 3000 {
		t.Fatalf("%d looks, %.200s %s", whole, data, errs)
	}
	n, data, errs := looks(whole / 10)
	if n > whole/2 || data != "null" || !strings.Contains(errs, "its client has left") {
		t.Errorf("%d of %d looks after it had left, %.300s %.300s", n, whole, data, errs)
	}
	if n := unknown.Load(); n > 0 {
		t.Errorf("%d errors are INTERNAL, which operators look into", n)
	}
}
