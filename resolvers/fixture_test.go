package resolvers_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/resolvers"
)

// world has resolvers over a service of the embedded catalogue, whose store is empty.
type world struct {
	*resolvers.Resolver
	t   *testing.T
	svc *service.Service
}

func setup(t *testing.T) *world {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store, IndexMemory: -1})
	if err != nil {
		t.Fatal(err)
	}
	return &world{Resolver: resolvers.New(svc), t: t, svc: svc}
}

// create creates a resource in the default namespace, and returns its id.
func (w *world) create(of, name, spec string) string {
	w.t.Helper()
	out, err := w.svc.Writer.Create(w.t.Context(), service.CreateRequest{
		Identity: kind.Identity{Kind: of, Name: name}, Spec: json.RawMessage(spec),
	})
	if err != nil {
		w.t.Fatal(err)
	}
	return kind.GlobalID(out.Resource.Stored.Key)
}

// refused reports an error unless err has this code and path.
func (w *world) refused(what string, err error, code failure.Code, path string) {
	w.t.Helper()
	known, ok := errors.AsType[*failure.Error](err)
	if !ok || known.Code != code || known.Path != path {
		w.t.Errorf("%s: %v, want %s at %q", what, err, code, path)
	}
}
