package server_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// racer is one client that mixes all verbs.
type racer struct {
	svc *service.Service
	rnd *rand.Rand
	// acknowledged are the revisions of the changes that the client was told of.
	acknowledged []string
}

const raceResources = 50

func (r *racer) step(ctx context.Context, n int) error {
	id := kind.Identity{Kind: "Network", Name: fmt.Sprintf("n%d", r.rnd.IntN(raceResources))}
	spec := map[string]any{
		"cloudCredentialsRef": map[string]any{"secretName": "s", "cloudName": "c"},
		"resource":            map[string]any{"mtu": 100 + n%1000, "description": fmt.Sprint(n)},
	}
	revision := ""
	if res, err := r.svc.Reader.Get(ctx, id); err != nil {
		return err
	} else if res != nil {
		revision = res.Stored.Revision.String()
	}
	var out *service.Written
	var err error
	deleted := false
	switch r.rnd.IntN(6) {
	case 0:
		out, err = r.svc.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: spec})
	case 1:
		out, err = r.svc.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: spec})
	case 2:
		out, err = r.svc.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision, Patch: map[string]any{"resource": map[string]any{"mtu": nil, "description": fmt.Sprint("p", n)}}})
	case 3:
		out, err = r.svc.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: spec})
	case 4:
		out, err = r.svc.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: id, ExpectedRevision: revision, Status: map[string]any{"id": fmt.Sprint(n)}})
	case 5:
		out, err = r.svc.Writer.Delete(ctx, service.DeleteRequest{Identity: id})
		deleted = true
	}
	var known *failure.Error
	switch {
	case err == nil && !deleted && out.Outcome != service.Unchanged:
		r.acknowledged = append(r.acknowledged, out.Resource.Stored.Revision.String())
	case err == nil:
	case !errors.As(err, &known):
		return err
	case known.Code != failure.CodeConflict && known.Code != failure.CodeNotFound && known.Code != failure.CodeAlreadyExists:
		return err
	}
	return nil
}

// TestRacingClients mixes all verbs on few resources. Afterwards the state that
// a listener rebuilt from its events is the store's, and each acknowledged
// write was an event exactly once.
func TestRacingClients(t *testing.T) {
	// The log keeps all: a fast machine makes more changes than are kept by default.
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(t.TempDir(), "sluice.db"), LogEntries: 1 << 30, LogBytes: 1 << 40})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	begin, err := store.Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	steps := 400
	if testing.Short() {
		steps = 40
	}
	racers := make([]*racer, 32)
	var wg sync.WaitGroup
	for i := range racers {
		racers[i] = &racer{svc: svc, rnd: rand.New(rand.NewPCG(uint64(i), 1))}
		wg.Go(func() {
			for n := range steps {
				if err := racers[i].step(t.Context(), n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	state, events := rebuild(t, svc, begin.String())
	acknowledged := 0
	for _, r := range racers {
		for _, revision := range r.acknowledged {
			acknowledged++
			if events[revision] != 1 {
				t.Errorf("the change at %s was acknowledged and is %d events", revision, events[revision])
			}
		}
	}
	page, err := svc.Reader.List(t.Context(), query.ListRequest{Kind: "Network"})
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range page.Edges {
		if r := e.Resource.Stored; state[r.Key] != r.Revision.String() {
			t.Errorf("%s is at %s, the events say %q", r.Key, r.Revision, state[r.Key])
		}
	}
	if len(page.Edges) != len(state) {
		t.Errorf("%d resources are stored, the events leave %d", len(page.Edges), len(state))
	}
	if acknowledged < 100 {
		t.Errorf("only %d writes were acknowledged", acknowledged)
	}
	t.Logf("%d acknowledged writes, %d events", acknowledged, len(events))
}

// rebuild replays all changes after a cursor: the last revision of each key
// that is left, and how often each revision came.
func rebuild(t *testing.T, svc *service.Service, after string) (map[backend.Key]string, map[string]int) {
	t.Helper()
	stream, err := svc.Feed.Changes(t.Context(), change.Request{After: &after})
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Close()
	state, events := map[backend.Key]string{}, map[string]int{}
	for {
		changes, err := stream.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range changes {
			switch c.Type {
			case change.InSync:
				return state, events
			case change.Deleted:
				delete(state, c.Stored.Key)
			default:
				state[c.Stored.Key] = c.Revision
			}
			events[c.Revision]++
		}
	}
}
