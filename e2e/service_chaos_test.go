package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/redistest"
)

const (
	// counters are teams whose size is how often somebody has incremented it.
	counters = 12
	// passing are teams that come and go.
	passing = 20
)

// count is what is known of the increments of one counter.
type count struct{ acknowledged, unknown atomic.Int64 }

// chaos is a resource service behind two gateways on one Redis, while somebody kills all of them.
type chaos struct {
	t        *testing.T
	random   *rand.Rand
	service  *teamService
	open     func(i int) *gateway
	gateways [2]atomic.Pointer[gateway]
	counts   [counters]count
}

// newChaos starts a service and two gateways, which ask it by a protocol at the address that front returns.
func newChaos(t *testing.T, seed uint64, protocol remote.Protocol, front func(*teamService) string) *chaos {
	t.Helper()
	c := &chaos{t: t, random: rand.New(rand.NewPCG(seed, 0)), service: startTeams(t)}
	shards := "1"
	if seed%4 >= 2 {
		shards = "4"
	}
	redis := redistest.Start(t).URL()
	catalogue := teamCatalogue(t)
	config := servicesFile(t, front(c.service), protocol)
	var ports [2]int
	for i := range ports {
		var err error
		ports[i], err = redistest.FreePort()
		if err != nil {
			t.Fatal(err)
		}
	}
	c.open = func(i int) (opened *gateway) {
		listen := fmt.Sprintf("127.0.0.1:%d", ports[i])
		// Another process may have the port for a moment.
		redistest.Await(t, "the gateway starts on its port", func() (err error) {
			opened, err = tryStart(t, "", "--listen", listen, "--catalogue", catalogue, "--config", config,
				"--redis", redis, "--redis-shards", shards)
			return err
		})
		return opened
	}
	for i := range c.gateways {
		c.gateways[i].Store(c.open(i))
	}
	for i := range counters {
		made, err := c.service.ask("Write", map[string]any{"ifAbsent": true, "resource": newTeam("count", counter(i), 0)})
		if err != nil || made.Outcome != "DONE" {
			t.Fatalf("%+v, %v", made, err)
		}
	}
	return c
}

// readPause is the pause after a read that failed, since somebody was killed and is being started.
const readPause = 20 * time.Millisecond

func counter(i int) string { return fmt.Sprintf("n%d", i) }

// increment increments random counters until ctx is done, by a way of its own: 0 and 1 are the gateways, 2 the service.
func (c *chaos) increment(ctx context.Context, random *rand.Rand, way int) {
	for ctx.Err() == nil {
		n := random.IntN(counters)
		done, known := false, true
		if way == 2 {
			done, known = c.incrementThere(counter(n))
		} else {
			done, known = c.incrementHere(c.gateways[way].Load(), counter(n))
		}
		switch {
		case done:
			c.counts[n].acknowledged.Add(1)
		case !known:
			c.counts[n].unknown.Add(1)
			time.Sleep(readPause)
		}
	}
}

// incrementThere increments a counter at the service, and reports whether that was acknowledged; if it was not, also
// whether it is known that nothing was changed.
func (c *chaos) incrementThere(name string) (done, known bool) {
	read, err := c.service.ask("Get", map[string]any{"keys": []any{newTeam("count", name, 0).Key}})
	if err != nil || len(read.Got) != 1 || read.Got[0].Resource == nil {
		time.Sleep(readPause)
		return false, true
	}
	was := read.Got[0].Resource
	wrote, err := c.service.ask("Write", map[string]any{"ifTag": was.Tag, "resource": newTeam("count", name, was.Spec.Size+1)})
	return err == nil && wrote.Outcome == "DONE", err == nil
}

// incrementHere is incrementThere at a gateway.
func (c *chaos) incrementHere(g *gateway, name string) (done, known bool) {
	read, err := g.send(`query($n: String!) { team(namespace: "count", name: $n) { metadata { revision } spec { size } } }`,
		map[string]any{"n": name})
	size, there := read.get("team", "spec", "size").(float64)
	if err != nil || len(read.Errors) > 0 || !there {
		time.Sleep(readPause)
		return false, true
	}
	wrote, err := g.send(`mutation($i: PatchTeamInput!) { patchTeam(input: $i) { team { id } } }`, map[string]any{"i": map[string]any{
		"namespace": "count", "name": name, "expectedRevision": read.get("team", "metadata", "revision"),
		"spec": map[string]any{"size": size + 1},
	}})
	if err != nil {
		return false, false
	}
	return len(wrote.Errors) == 0, decided(wrote)
}

// decided reports whether an answer says what became of a write.
func decided(a answer) bool {
	for _, e := range a.Errors {
		code := fmt.Sprint(e.Extensions["code"])
		if e.Extensions["outcome"] != nil || code == "TIMEOUT" || code == "INTERNAL" {
			return false
		}
	}
	return true
}

// churn creates, changes and deletes teams and apps that refer to them, until ctx is done.
func (c *chaos) churn(ctx context.Context, random *rand.Rand, way int) {
	for ctx.Err() == nil {
		name := fmt.Sprintf("x%d", random.IntN(passing))
		app := map[string]any{"namespace": "pass", "name": "app-" + name}
		key := map[string]any{"namespace": "pass", "name": name}
		var err error
		switch choice := random.IntN(6); {
		case way == 2 && choice < 3:
			_, err = c.service.ask("Write", map[string]any{"ifAbsent": true, "resource": newTeam("pass", name, random.IntN(1000))})
		case way == 2:
			_, err = c.service.ask("Delete", map[string]any{"key": newTeam("pass", name, 0).Key})
		case choice < 2:
			_, err = c.gateways[way].Load().send(`mutation($i: UpsertTeamInput!) { upsertTeam(input: $i) { team { id } } }`,
				map[string]any{"i": map[string]any{
					"namespace": "pass", "name": name, "spec": map[string]any{"email": "g@example.org", "size": random.IntN(1000)},
				}})
		case choice < 4:
			_, err = c.gateways[way].Load().send(`mutation($i: DeleteTeamInput!) { deleteTeam(input: $i) { state } }`,
				map[string]any{"i": key})
		case choice < 5:
			app["spec"] = map[string]any{"teamRef": name}
			_, err = c.gateways[way].Load().send(`mutation($i: UpsertAppInput!) { upsertApp(input: $i) { app { id } } }`,
				map[string]any{"i": app})
		default:
			_, err = c.gateways[way].Load().send(`mutation($i: DeleteAppInput!) { deleteApp(input: $i) { state } }`,
				map[string]any{"i": app})
		}
		if err != nil {
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// work lets everybody write while disturb is called, and returns when all have ended.
func (c *chaos) work(seed uint64, disturb func()) {
	ctx, stop := context.WithCancel(c.t.Context())
	var all sync.WaitGroup
	for way := range 3 {
		all.Go(func() { c.increment(ctx, rand.New(rand.NewPCG(seed, uint64(way)+1)), way) })
		all.Go(func() { c.churn(ctx, rand.New(rand.NewPCG(seed, uint64(way)+11)), way) })
	}
	disturb()
	stop()
	all.Wait()
}

// disturb kills the service and the gateways for a while, and also puts back an older copy of the service's state if
// restores is set.
func (c *chaos) disturb(long time.Duration, restores bool) {
	end := time.Now().Add(long)
	var old map[string][]byte
	for time.Now().Before(end) {
		time.Sleep(time.Duration(200+c.random.IntN(400)) * time.Millisecond)
		switch i := c.random.IntN(5); {
		case i < 2:
			c.gateways[i].Load().kill()
			c.gateways[i].Store(c.open(i))
		case restores && i == 2 && old == nil:
			c.service.kill()
			old = c.service.files()
			c.service.start()
		case restores && i < 4 && old != nil:
			c.service.kill()
			c.service.restore(old)
			old = nil
			c.service.start("--restored")
		default:
			c.service.kill()
			time.Sleep(time.Duration(c.random.IntN(300)) * time.Millisecond)
			c.service.start()
		}
	}
}

// agree waits until both gateways show what the service has, which it returns.
func (c *chaos) agree() map[string]team {
	c.t.Helper()
	var owned map[string]team
	redistest.Await(c.t, "both gateways show what the service has", func() error {
		var err error
		owned, err = c.service.teams()
		if err != nil {
			return err
		}
		for i := range c.gateways {
			shown, err := c.gateways[i].Load().shownTeams()
			if err != nil {
				return err
			}
			if err := sameTeams(owned, shown); err != nil {
				return fmt.Errorf("gateway %d: %w", i, err)
			}
		}
		return nil
	})
	return owned
}

// checkCounts fails the test unless each acknowledged increment was made once.
func (c *chaos) checkCounts(owned map[string]team) {
	c.t.Helper()
	total := int64(0)
	for i := range counters {
		n := &c.counts[i]
		size := int64(owned["count/"+counter(i)].Spec.Size)
		if least := n.acknowledged.Load(); size < least || size > least+n.unknown.Load() {
			c.t.Errorf("%s is %d after %d acknowledged increments and %d of unknown outcome", counter(i), size, least, n.unknown.Load())
		}
		total += n.acknowledged.Load()
	}
	c.t.Logf("%d increments were acknowledged", total)
	if total == 0 {
		c.t.Error("no increment was acknowledged")
	}
}

// settle waits until each app is available exactly if its team is there, and returns the teams. They may change until
// then: a deletion that waited is made once no app holds the team, and one that a gateway was about to make when it was
// killed is decided within a minute.
func (c *chaos) settle() map[string]team {
	c.t.Helper()
	end := time.Now().Add(time.Minute + 2*patience)
	for {
		owned := c.agree()
		err := c.appsFollow(owned)
		if err == nil {
			return owned
		}
		if time.Now().After(end) {
			c.t.Fatalf("apps are not available as their teams are there: %v", err)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// appsFollow returns an error that names an app which is not available though its team is there, or is without it.
func (c *chaos) appsFollow(owned map[string]team) error {
	a, err := c.gateways[1].Load().send(`{ apps(first: 500) { nodes {
		metadata { name } spec { teamRef } status { conditions { type status message } } } } }`, nil)
	if err != nil || len(a.Errors) > 0 {
		return fmt.Errorf("%v, %w", a.Errors, err)
	}
	nodes, _ := a.get("apps", "nodes").([]any)
	for i := range nodes {
		name := fmt.Sprint(a.get("apps", "nodes", i, "spec", "teamRef"))
		_, there := owned["pass/"+name]
		conditions, _ := a.get("apps", "nodes", i, "status", "conditions").([]any)
		for _, condition := range conditions {
			condition := condition.(map[string]any)
			if condition["type"] == "Available" && (condition["status"] == "True") != there {
				return fmt.Errorf("the app of %s says %v; its team is there: %v", name, condition, there)
			}
		}
	}
	return nil
}

// fold is what a subscriber makes of the changes that it is told.
type fold struct {
	mu    sync.Mutex
	specs map[string]string
}

func (f *fold) take(change *client.Change) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if change.Type == "RESET" {
		clear(f.specs)
	}
	if change.Resource == nil {
		return
	}
	key := keyOfChange(change)
	if change.Type == "DELETED" {
		delete(f.specs, key)
		return
	}
	body, err := change.Resource.Body()
	if err != nil {
		f.specs[key] = err.Error()
		return
	}
	spec, _ := body["spec"].(map[string]any)
	f.specs[key] = fmt.Sprint(spec["email"], " ", spec["size"])
}

// keyOfChange returns the namespace and the name of a resource that has changed.
func keyOfChange(change *client.Change) string {
	namespace := ""
	if of := change.Resource.Metadata.Namespace; of != nil {
		namespace = *of
	}
	return namespace + "/" + change.Resource.Metadata.Name
}

// checkFold waits until a fold is the state of the service.
func (c *chaos) checkFold(f *fold, owned map[string]team) {
	c.t.Helper()
	redistest.Await(c.t, "the fold of the stream is the state", func() error {
		f.mu.Lock()
		defer f.mu.Unlock()
		for key := range f.specs {
			if _, there := owned[key]; !there {
				return fmt.Errorf("%s is in the fold alone", key)
			}
		}
		for key, r := range owned {
			if want := fmt.Sprint(r.Spec.Email, " ", r.Spec.Size); f.specs[key] != want {
				return fmt.Errorf("%s is %q in the fold, and %q", key, f.specs[key], want)
			}
		}
		return nil
	})
}

// overGRPC is a front for [newChaos] that asks the service by Connect and is itself asked by gRPC.
func overGRPC(t *testing.T) func(s *teamService) string {
	return func(s *teamService) string {
		client, err := remote.New(remote.Config{Name: "teams", Address: s.address})
		if err != nil {
			t.Fatal(err)
		}
		front := httptest.NewUnstartedServer(remote.Handler(client))
		front.Config.Protocols = new(http.Protocols)
		front.Config.Protocols.SetUnencryptedHTTP2(true)
		front.Start()
		t.Cleanup(client.Close)
		t.Cleanup(front.Close) // after the gateways, which wait in it for changes
		return front.URL
	}
}

func TestResourceService_NothingIsLostWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	seeds, long := uint64(10), 2500*time.Millisecond
	if testing.Short() {
		seeds, long = 1, 1500*time.Millisecond
	}
	for seed := range seeds {
		restores := seed%2 == 1
		protocol := remote.ConnectJSON
		if seed >= 5 {
			protocol = remote.GRPC
		}
		t.Run(fmt.Sprintf("seed %d, restored %v, %s", seed, restores, protocol), func(t *testing.T) {
			front := func(s *teamService) string { return s.address }
			if protocol == remote.GRPC {
				front = overGRPC(t)
			}
			c := newChaos(t, seed, protocol, front)
			ctx, stop := context.WithCancel(t.Context())
			folded := &fold{specs: map[string]string{}}
			ended := c.gateways[0].Load().followTeams(ctx, client.ChangesRequest{Snapshot: true}, folded.take)
			c.work(seed, func() { c.disturb(long, restores) })
			begin := time.Now()
			c.agree()
			t.Logf("both gateways agree with the service after %s", time.Since(begin).Round(time.Millisecond))
			owned := c.settle()
			if !restores {
				c.checkCounts(owned)
			}
			c.checkFold(folded, owned)
			stop()
			if err := <-ended; !errors.Is(err, context.Canceled) && !strings.Contains(err.Error(), "ended") {
				t.Errorf("the stream ended with %v", err)
			}
		})
	}
}
