package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// faulty is the way from a gateway to a service: calls are slow, answers get lost, changes come late, repeatedly and in
// any order, and lists are old, but not older than a position that was asked for before.
type faulty struct {
	*ownertest.Service

	mu     sync.Mutex // guards all below
	random *rand.Rand
	healed bool
	late   []backend.Key
	listed map[string]owner.Page
}

// chance reports whether something happens that does once in n times, until the way is healed.
func (f *faulty) chance(n int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.healed && f.random.IntN(n) == 0
}

func (f *faulty) heal() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.healed = true
}

// pause takes a while, sometimes a long one.
func (f *faulty) pause() {
	f.mu.Lock()
	d := time.Duration(f.random.IntN(5)) * time.Millisecond
	if f.random.IntN(20) == 0 {
		d *= 200
	}
	healed := f.healed
	f.mu.Unlock()
	if !healed {
		time.Sleep(d)
	}
}

func (f *faulty) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	f.pause()
	if f.chance(50) {
		return nil, errLost
	}
	out, err := f.Service.Get(ctx, keys)
	f.pause()
	return out, err
}

func (f *faulty) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	page, err := f.Service.List(ctx, kind, token, 7)
	f.mu.Lock()
	old, known := f.listed[token]
	if err == nil && (!known || f.random.IntN(2) == 0) {
		f.listed[token] = page
	}
	f.mu.Unlock()
	if known && f.chance(2) {
		page = old
	}
	f.pause()
	return page, err
}

func (f *faulty) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	if f.chance(30) {
		return owner.Changes{}, errLost
	}
	out, err := f.Service.Changes(ctx, position, min(wait, 200*time.Millisecond))
	if err != nil {
		return out, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if position == "" {
		clear(f.listed) // lists are no older than the position that was asked for before them
		return out, nil
	}
	keys := append(f.late, out.Keys...)
	f.late = nil
	f.random.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	out.Keys = nil
	for _, key := range keys {
		if !f.healed && f.random.IntN(3) == 0 {
			f.late = append(f.late, key)
			continue
		}
		out.Keys = append(out.Keys, key)
		if f.random.IntN(4) == 0 {
			out.Keys = append(out.Keys, key)
		}
	}
	return out, nil
}

func (f *faulty) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	f.pause()
	switch {
	case f.chance(20):
		return owner.Answer{}, owner.ErrNotSent
	case f.chance(10): // on its way there
		return owner.Answer{}, errLost
	}
	a, err := f.Service.Write(ctx, w)
	f.pause()
	if f.chance(2) { // on its way back
		return owner.Answer{}, errLost
	}
	return a, err
}

func (f *faulty) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	f.pause()
	a, err := f.Service.Delete(ctx, d)
	f.pause()
	if f.chance(4) {
		return owner.Answer{}, errLost
	}
	return a, err
}

// increments counts the increments of counters.
type increments struct {
	mu             sync.Mutex // guards both
	acked, unknown map[string]int
}

func (i *increments) note(name string, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	known, _ := errors.AsType[*failure.Error](err)
	switch {
	case err == nil:
		i.acked[name]++
	case known != nil && known.Outcome == failure.OutcomeApplied:
		i.acked[name]++
	case known == nil || known.Outcome != "" || known.Code == failure.CodeInternal:
		i.unknown[name]++
	}
}

// model is a run of random writes by two gateways and the service's own team.
type model struct {
	*teamWorld
	ways    []*faulty
	until   time.Time
	counted increments
	// restores reports whether the service is put back to an older copy of its data in the middle.
	restores bool
}

func (m *model) loop(seed uint64, do func(r *rand.Rand)) {
	r := rand.New(rand.NewPCG(seed, 7))
	for time.Now().Before(m.until) {
		do(r)
		time.Sleep(time.Duration(r.IntN(20)) * time.Millisecond)
	}
}

// increment adds one to a counter, by a gateway or at the service.
func (m *model) increment(r *rand.Rand) {
	name := fmt.Sprint("c", r.IntN(4))
	i := r.IntN(3)
	if i == 2 {
		is, _ := m.teams.Show(teamKey(name))
		size := sizeOf(m.t, is)
		a, err := m.teams.Write(m.t.Context(), owner.Write{Resource: ownedTeam(name, size+1), IfTag: is.Tag})
		if err == nil && a.Outcome == owner.Done {
			m.counted.note(name, nil)
		}
		return
	}
	now := m.stored("Team", name)
	if now == nil {
		return
	}
	ctx, cancel := context.WithTimeout(m.t.Context(), time.Duration(1+r.IntN(3000))*time.Millisecond)
	defer cancel()
	_, err := m.resize(ctx, i, name, now.Revision.String(), bodyOf(m.t, now).Spec.Size+1)
	m.counted.note(name, err)
}

func sizeOf(t *testing.T, r owner.Resource) int {
	var spec struct{ Size int }
	if err := json.Unmarshal(r.Spec, &spec); err != nil {
		t.Error(err)
	}
	return spec.Size
}

// churn makes and removes teams, and apps that are bound to them.
func (m *model) churn(r *rand.Rand) {
	name := fmt.Sprint("x", r.IntN(6))
	i := r.IntN(2)
	switch r.IntN(9) {
	case 0:
		_, _ = m.teams.Write(m.t.Context(), owner.Write{Resource: ownedTeam(name, r.IntN(3)), IfAbsent: true})
	case 1:
		m.teams.Remove(teamKey(name))
	case 2:
		members := r.IntN(9)
		m.teams.Update(teamKey(name), func(is *owner.Resource) { is.Status = fmt.Appendf(nil, `{"members":%d}`, members) })
	case 3, 4:
		_, _ = m.upsert(i, name, r.IntN(3))
	case 5:
		_, _ = m.delete(i, "Team", name)
	case 6, 7:
		_, _ = m.create(i, "App", fmt.Sprint("app-", name), `{"teamRef":"`+name+`"}`)
	default:
		_, _ = m.delete(i, "App", fmt.Sprint("app-", name))
	}
}

// run runs the model, and checks what is there at the end and on the way.
func (m *model) run(seed uint64) {
	for n := range 4 {
		m.teams.Put(ownedTeam(fmt.Sprint("c", n), 0))
	}
	for i := range 2 {
		way := &faulty{Service: m.teams, random: rand.New(rand.NewPCG(seed, uint64(i))), listed: map[string]owner.Page{}}
		m.ways = append(m.ways, way)
		m.begin(way)
	}
	begin := m.position()
	m.settle()
	m.until = time.Now().Add(20 * time.Second)
	var g sync.WaitGroup
	for n := range uint64(4) {
		g.Go(func() { m.loop(seed*100+n, m.increment) })
		g.Go(func() { m.loop(seed*100+50+n, m.churn) })
	}
	g.Go(func() {
		m.loop(seed*100+99, func(r *rand.Rand) {
			time.Sleep(5 * time.Second)
			m.teams.Expire()
		})
	})
	if m.restores {
		g.Go(func() {
			time.Sleep(8 * time.Second)
			old := m.teams.Backup()
			time.Sleep(6 * time.Second)
			m.teams.Restore(old)
		})
	}
	g.Wait()
	for _, way := range m.ways {
		way.heal()
	}
	m.settle()
	m.nothingIsBoundToNothing()
	if !m.restores {
		m.countersHold()
	}
	for n := range 6 {
		if _, err := m.delete(n%2, "App", fmt.Sprint("app-x", n)); err != nil {
			failureOf(m.t, err, failure.CodeNotFound, "")
		}
	}
	time.Sleep(15 * time.Second) // deletions that wait are swept
	synctest.Wait()
	m.mirrored()
	if !m.restores {
		m.nothingGoesBackwards(m.eventsAfter(begin))
	}
}

func (m *model) countersHold() {
	total := 0
	for name, is := range m.teams.All() {
		if !strings.HasPrefix(name.Name, "c") {
			continue
		}
		acked, size := m.counted.acked[name.Name], sizeOf(m.t, is)
		total += acked
		if size < acked || size > acked+m.counted.unknown[name.Name] {
			m.t.Errorf("%s is %d: %d increments were acknowledged, %d unknown", name, size, acked, m.counted.unknown[name.Name])
		}
	}
	if total < 50 {
		m.t.Errorf("only %d increments were acknowledged", total)
	}
}

// nothingGoesBackwards checks the events: counters only grow, and no uid comes after a later one. What is added where
// nothing was has nothing to be compared with: if it is an older one, it is gone once it was looked at again, which
// takes up to two long pauses of a faulty way.
func (m *model) nothingGoesBackwards(events []backend.Event) {
	sizes, uids := map[string]int{}, map[string]int{}
	older := map[string]time.Time{}
	for i := range events {
		e := &events[i]
		name := e.Resource.Name
		if since, was := older[name]; was && e.Resource.Kind == "Team" && e.Time.Sub(since) > 5*time.Second {
			m.t.Errorf("%s: an older resource stayed for %v", name, e.Time.Sub(since))
		}
		if e.Resource.Kind != "Team" {
			continue
		}
		if e.Type == backend.Deleted {
			delete(older, name)
			continue
		}
		uid, err := strconv.Atoi(strings.TrimPrefix(e.Resource.UID, "teams-"))
		if err != nil || uid < uids[name] && e.Type != backend.Added {
			m.t.Errorf("%s: %s after teams-%d (%v)", name, e.Resource.UID, uids[name], err)
		}
		if uid < uids[name] {
			older[name] = e.Time
			m.t.Logf("%s: %s was added after teams-%d", name, e.Resource.UID, uids[name])
		}
		uids[name] = max(uid, uids[name])
		if !strings.HasPrefix(name, "c") {
			continue
		}
		size := bodyOf(m.t, e.Resource).Spec.Size
		if size < sizes[name] {
			m.t.Errorf("%s: %d after %d", name, size, sizes[name])
		}
		sizes[name] = size
	}
}

func (m *model) nothingIsBoundToNothing() {
	for page, err := range backend.Pages(context.Background(), m.store, backend.Range{Kind: "App", Limit: backend.MaxLimit}) {
		if err != nil {
			m.t.Fatal(err)
		}
		for _, app := range page.Resources {
			for _, key := range app.Bound() {
				if m.stored("Team", key.Name) == nil {
					m.t.Errorf("%s is bound to %s, which is gone", app.Key, key)
				}
			}
			waits := len(bodyOf(m.t, app).Metadata.Waits) > 0
			if target := app.Refs[0].Key; waits && !app.Deleting && m.stored("Team", target.Name) != nil {
				m.t.Errorf("%s waits for %s, which is there", app.Key, target)
			}
		}
	}
}

// TestOwned_TwoGatewaysAgreeWithAServiceBehindAFaultyNetwork runs the model. SLUICE_TEST_SEED repeats a run.
func TestOwned_TwoGatewaysAgreeWithAServiceBehindAFaultyNetwork(t *testing.T) {
	first := servicetest.Setting(t, "SLUICE_TEST_SEED", 1)
	for seed := first; seed < first+servicetest.Sized(20, 4); seed++ {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &model{teamWorld: openTeamWorld(t, ownertest.Full("Team")), restores: seed%4 == 0}
				m.counted = increments{acked: map[string]int{}, unknown: map[string]int{}}
				m.run(seed)
			})
		})
	}
}
