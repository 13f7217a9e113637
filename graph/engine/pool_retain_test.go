package engine_test

import (
	"context"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/kinds"
)

// watchedStore counts which of the resources that its ranges answered are still in memory.
type watchedStore struct {
	backend.Store
	alive atomic.Int64
}

func (s *watchedStore) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := backend.Ranges(ctx, s.Store, rs)
	for i := range pages {
		for j, r := range pages[i].Resources {
			own := *r
			s.alive.Add(1)
			runtime.AddCleanup(&own, func(alive *atomic.Int64) { alive.Add(-1) }, &s.alive)
			pages[i].Resources[j] = &own
		}
	}
	return pages, err
}

func TestAStreamKeepsNothingOfTheEventsThatItHasAnswered(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	store := &watchedStore{}
	g := newGateway(t, catalogue, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	})
	g.put("Project", "p", spec(map[string]any{}))
	g.put("Network", "n", spec(map[string]any{"projectRef": "p"}))
	const ports = 20
	for i := range ports {
		g.put("Port", fmt.Sprint("p", i), spec(map[string]any{"networkRef": "n"}))
	}
	oc, errs := g.prepare(`subscription { resourceChanges(kinds: ["Network"], snapshot: true) { type resource { ... on Network { ports { nodes { network { ports { nodes { id } } } } } } } } }`, nil)
	if errs != nil {
		t.Fatal(errs)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	running := make(chan error, 1)
	go func() { running <- g.svc.Run(ctx) }()
	next := subscribe(ctx, g.engine, oc)
	met := 0
	for i := 0; met < 30; {
		var res *graphql.Response
		if res = next().Response; res == nil {
			t.Fatal("the stream has ended")
		}
		if strings.Contains(string(res.Data), `"nodes":[{"`) {
			met++
		}
		if i == 0 && !strings.Contains(string(res.Data), "IN_SYNC") {
			continue // the state comes first
		}
		i++
		g.put("Network", "n", spec(map[string]any{"projectRef": "p", "mtu": 1000 + i}))
	}
	for range 1000 { // cleanups run some time after the collection that finds them
		if runtime.GC(); store.alive.Load() == 0 {
			break
		}
	}
	if n := store.alive.Load(); n > 0 {
		t.Errorf("%d resources are in memory after %d events that showed %d each", n, met, 2*ports)
	}
	runtime.KeepAlive(next)
	cancel()
	<-running
}
