package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/redistest"
)

// What the gateways are put through.
const (
	manyWriters     = 64
	manyResources   = 100
	manySubscribers = 50 // on each gateway
	writingTime     = 10 * time.Second
)

// replica is the state that one subscriber makes of what it is told.
type replica struct {
	revisions map[string]string
	changes   int
}

// follow makes a replica until the resource named last is told.
func follow(ctx context.Context, c *client.Client, kind client.Kind, ready chan<- struct{}) (*replica, error) {
	r := &replica{revisions: map[string]string{}}
	for change, err := range c.Changes(ctx, client.ChangesRequest{Kind: kind, Snapshot: true, Format: client.JSON}) {
		if err != nil {
			return r, err
		}
		switch change.Type {
		case "RESET":
			clear(r.revisions)
		case "IN_SYNC":
			ready <- struct{}{}
		case "DELETED":
			return r, errors.New("nobody deletes")
		default:
			name := change.Resource.Metadata.Name
			if name == "last" {
				return r, nil
			}
			if r.revisions[name] == change.Revision {
				return r, fmt.Errorf("%s at %s came twice", name, change.Revision)
			}
			r.revisions[name] = change.Revision
			if change.Type != "SNAPSHOT" {
				r.changes++
			}
		}
	}
	return r, errors.New("the stream ended")
}

// hammer updates random resources at the revision read until the time is up,
// and counts what is acknowledged.
func hammer(ctx context.Context, c *client.Client, rnd *rand.Rand, until time.Time, acknowledged *atomic.Int64) error {
	for time.Now().Before(until) {
		name := fmt.Sprint("n", rnd.IntN(manyResources))
		var read struct {
			Network struct{ Metadata struct{ Revision string } }
		}
		if err := c.Do(ctx, `query($n: String!) { network(name: $n) { metadata { revision } } }`, map[string]any{"n": name}, &read); err != nil {
			return err
		}
		err := c.Do(ctx, updateNetwork, map[string]any{"input": map[string]any{
			"name": name, "expectedRevision": read.Network.Metadata.Revision, "spec": spec(map[string]any{"mtu": 68 + rnd.IntN(9000), "description": fmt.Sprint(rnd.Uint64())}),
		}}, nil)
		var failed *client.Error
		switch {
		case err == nil:
			acknowledged.Add(1)
		case errors.As(err, &failed) && failed.Extensions.Code == "CONFLICT":
		default:
			return err
		}
	}
	return nil
}

func TestTwoGatewaysOnOneRedisAgree(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	server := redistest.Start(t)
	callers := newCallers(t)
	var clients [2]*client.Client
	for i := range clients {
		g := callers.start(t, "", "--redis", server.URL())
		c, err := client.New(client.Config{Server: g.address, Token: client.FixedToken(callers.editor)})
		if err != nil {
			t.Fatal(err)
		}
		clients[i] = c
	}
	ctx := t.Context()
	kind, err := clients[0].Kind(ctx, "Network")
	if err != nil {
		t.Fatal(err)
	}
	create := func(name string) {
		t.Helper()
		if err := clients[0].Do(ctx, createNetwork, map[string]any{"input": map[string]any{"name": name, "spec": spec(nil)}}, nil); err != nil {
			t.Fatal(err)
		}
	}
	for i := range manyResources {
		create(fmt.Sprint("n", i))
	}

	ready := make(chan struct{}, 2*manySubscribers)
	replicas := make([]*replica, 2*manySubscribers)
	var followers, writers sync.WaitGroup
	var broken, acknowledged atomic.Int64
	for i := range replicas {
		followers.Go(func() {
			r, err := follow(ctx, clients[i%2], kind, ready)
			if err != nil {
				broken.Add(1)
				ready <- struct{}{}
				t.Errorf("subscriber %d: %v", i, err)
			}
			replicas[i] = r
		})
	}
	for range replicas {
		<-ready
	}
	until := time.Now().Add(writingTime)
	for i := range manyWriters {
		writers.Go(func() {
			if err := hammer(ctx, clients[i%2], rand.New(rand.NewPCG(uint64(i), 0)), until, &acknowledged); err != nil {
				t.Errorf("writer %d: %v", i, err)
			}
		})
	}
	writers.Wait()
	create("last")
	if broken.Load() > 0 || t.Failed() {
		return
	}
	followers.Wait()

	t.Logf("%d writes acknowledged", acknowledged.Load())
	stored := map[string]string{}
	for r, err := range clients[1].List(ctx, client.ListRequest{Kind: kind, Format: client.JSON}) {
		if err != nil {
			t.Fatal(err)
		}
		stored[r.Metadata.Name] = r.Metadata.Revision
	}
	delete(stored, "last")
	for i, r := range replicas {
		if !maps.Equal(r.revisions, stored) {
			t.Errorf("subscriber %d ends at another state than the store", i)
		}
		if int64(r.changes) != acknowledged.Load() {
			t.Errorf("subscriber %d was told %d changes, %d were acknowledged", i, r.changes, acknowledged.Load())
		}
	}
}
