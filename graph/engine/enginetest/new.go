package enginetest

import (
	"testing"

	"github.com/vektah/gqlparser/v2/ast"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/core"
	"github.com/sluicegw/sluice/graph/engine"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/resolvers"
)

// New returns an engine for a service with the kinds of a catalogue; nil means the embedded catalogue. The functions in
// with change the configuration of the engine. An error ends the test.
func New(t testing.TB, catalogue *kinds.Schema, svc *service.Service, with ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	var err error
	if catalogue == nil {
		if catalogue, err = kinds.Embedded(); err != nil {
			t.Fatal(err)
		}
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	return NewOf(t, api, svc, with...)
}

// NewOf is like [New], but takes the schema of the API, for example the schema of a released version.
func NewOf(t testing.TB, api *ast.Schema, svc *service.Service, with ...func(*engine.Config)) *engine.Engine {
	t.Helper()
	cfg := engine.Config{
		Service: svc, Schema: api, Core: core.NewExecutableSchema(core.Config{Schema: api, Resolvers: resolvers.New(svc)}),
	}
	for _, change := range with {
		change(&cfg)
	}
	e, err := engine.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// ByHand returns the schema of the fields with hand-written resolvers.
func ByHand() *ast.Schema { return core.NewExecutableSchema(core.Config{}).Schema() }
