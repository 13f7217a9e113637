package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/redistest"
)

// What races: clients on two gateways, that mix all verbs on few resources.
const (
	racers        = 16
	raceSteps     = 60
	raceResources = 50
	lostReplies   = 8
)

// racer is one client.
type racer struct {
	svc *service.Service
	rnd *rand.Rand
	// acknowledged are the revisions that the client was told; deletes are told by
	// none. unknown is the number of outcomes that nobody could tell.
	acknowledged     []backend.Revision
	deletes, unknown int
}

// step reads a resource and changes it.
func (r *racer) step(ctx context.Context, n int) error {
	id := thingNamed(fmt.Sprint("n", r.rnd.IntN(raceResources)))
	title := fmt.Sprint(n, "-", r.rnd.Uint32())
	revision := ""
	if found, err := r.svc.Reader.Get(ctx, id); err != nil {
		return err
	} else if found != nil {
		revision = found.Stored.Revision.String()
	}
	var out *service.Written
	var err error
	deletes := false
	switch r.rnd.IntN(6) {
	case 0:
		out, err = r.svc.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: titled(title)})
	case 1:
		out, err = r.svc.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: titled(title)})
	case 2:
		out, err = r.svc.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision, Patch: titled(title)})
	case 3:
		out, err = r.svc.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: titled(title)})
	case 4:
		out, err = r.svc.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: id, ExpectedRevision: revision, Status: map[string]any{"id": title}})
	case 5:
		out, err = r.svc.Writer.Delete(ctx, service.DeleteRequest{Identity: id})
		deletes = true
	}
	var known *failure.Error
	switch {
	case err == nil && deletes:
		r.deletes++
	case err == nil && out.Outcome != service.Unchanged:
		r.acknowledged = append(r.acknowledged, out.Resource.Stored.Revision)
	case err == nil:
	case !errors.As(err, &known):
		return err
	case known.Outcome == "UNKNOWN":
		r.unknown++
	case known.Code != failure.CodeConflict && known.Code != failure.CodeNotFound && known.Code != failure.CodeAlreadyExists:
		return err
	}
	return nil
}

// Afterwards each change that was acknowledged is in the log once, there are no
// others but those of unknown outcome, and the log leaves what is stored.
func TestApply_ClientsOfTwoGatewaysRace(t *testing.T) {
	t.Parallel()
	s, prefix := server.Server(t), redistest.Prefix()
	p := redistest.NewProxy(t, s.Addr)
	stores := []*redis.Store{openLate(t, s.URL(), prefix), openLate(t, p.URL(), prefix)}
	gateways := []*service.Service{gateway(t, stores[0], "a-", 5*time.Second), gateway(t, stores[1], "b-", 5*time.Second)}
	from, err := stores[0].Position(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	script, resource := redistest.Command("EVALSHA"), redistest.Containing("\x02Thing\x00")
	p.DropReplies(lostReplies, func(args []string) bool { return script(args) && resource(args) })
	all := make([]*racer, racers)
	var wg sync.WaitGroup
	for i := range all {
		all[i] = &racer{svc: gateways[i%2], rnd: rand.New(rand.NewPCG(uint64(i), 1))}
		wg.Go(func() {
			for n := range raceSteps {
				if err := all[i].step(t.Context(), n); err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()

	state := map[backend.Key]backend.Revision{}
	seen := map[backend.Revision]int{}
	deletes := 0
	events := changes(t, stores[0], from, "Thing")
	for _, e := range events {
		seen[e.Revision]++
		state[e.Resource.Key] = e.Revision
		if e.Type == backend.Deleted {
			delete(state, e.Resource.Key)
			deletes++
		}
	}
	acknowledged, deleted, unknown := 0, 0, 0
	for _, r := range all {
		for _, revision := range r.acknowledged {
			if acknowledged++; seen[revision] != 1 {
				t.Errorf("%s was acknowledged and is %d events", revision, seen[revision])
			}
		}
		deleted += r.deletes
		unknown += r.unknown
	}
	if deletes < deleted || len(events) < acknowledged+deleted || len(events) > acknowledged+deleted+unknown {
		t.Errorf("%d events, %d of them deletes; %d and %d were acknowledged, %d are unknown", len(events), deletes, acknowledged, deleted, unknown)
	}
	page, err := stores[1].Range(t.Context(), backend.Range{Kind: "Thing", Limit: backend.MaxLimit})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range page.Resources {
		if state[r.Key] != r.Revision {
			t.Errorf("%s is at %s, the events say %s", r.Key, r.Revision, state[r.Key])
		}
	}
	if len(page.Resources) != len(state) {
		t.Errorf("%d resources are stored, the events leave %d", len(page.Resources), len(state))
	}
	if err := stores[0].Check(t.Context()); err != nil {
		t.Error(err)
	}
	t.Logf("%d acknowledged writes, %d deletes, %d unknown, %d events", acknowledged, deleted, unknown, len(events))
}
