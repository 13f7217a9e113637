package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
)

// How often each process is killed. On Redis the gateway that is started in the place of
// one that was killed waits for seconds until it judges what waits, so there is an end.
const (
	leastKills = 4
	mostKills  = 12
)

// fate is what becomes of the resources of a family.
type fate int

const (
	stays fate = iota
	isDeleted
	isDetached
	fates
)

// family are ten resources that need each other.
type family struct {
	*controlled
	number int
	fate   fate
	// lives is how often all are made and deleted before their fate.
	lives int
	rnd   *rand.Rand

	mu sync.Mutex // guards all below
	// external is the id of the network that others made in the cloud.
	external string
	// left are the owners of the objects that the cloud keeps though their resources go.
	left map[string]bool
}

// member is one of them.
type member struct{ kind, name, spec string }

func (f *family) members() []member {
	n := f.number
	managed := func(kind, name, resource string) member {
		onDelete := "delete"
		if f.fate == isDetached {
			onDelete = "detach"
		}
		return member{kind, fmt.Sprintf("%s-%d", name, n), `managedOptions: {onDelete: ` + onDelete + `}, resource: {` + resource + `}`}
	}
	out := []member{
		managed("Project", "project", `description: family`),
		managed("Network", "net", fmt.Sprintf(`projectRef: project-%d, mtu: 1400`, n)),
		managed("SecurityGroup", "group", fmt.Sprintf(`projectRef: project-%d`, n)),
		managed("Router", "router", fmt.Sprintf(`externalGateways: [{networkRef: net-%d}]`, n)),
		{"Network", fmt.Sprintf("imported-%d", n), fmt.Sprintf(`managementPolicy: unmanaged, import: {filter: {name: external-%d}}`, n)},
	}
	for i := range 2 {
		out = append(out, managed("Subnet", fmt.Sprintf("subnet%d", i), fmt.Sprintf(`networkRef: net-%d, ipVersion: 4, cidr: 10.0.%d.0/24`, n, i)))
	}
	for i := range 3 {
		out = append(out, managed("Port", fmt.Sprintf("port%d", i), fmt.Sprintf(`networkRef: net-%d, addresses: [{subnetRef: subnet%d-%d}], securityGroupRefs: [group-%d]`, n, i%2, n, n)))
	}
	f.rnd.Shuffle(len(out), func(i, j int) { out[i], out[j] = out[j], out[i] })
	return out
}

// insist repeats what fails while a gateway is away, or while a namesake is still going.
func insist(ctx context.Context, do func() error) error {
	late := time.Now().Add(2 * patience)
	for {
		err := do()
		var e *client.Error
		if err == nil || errors.As(err, &e) && !e.Extensions.Retryable && e.Extensions.Code != "BEING_DELETED" && e.Extensions.Code != "CONFLICT" {
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(5 * time.Millisecond):
		}
		if time.Now().After(late) {
			return err
		}
	}
}

// live makes the family and deletes it as often as it is to, and does then with it what
// its fate is.
func (f *family) live(ctx context.Context) error {
	members := f.members()
	for range f.lives {
		if err := f.makeAll(ctx, members); err != nil {
			return err
		}
		if err := f.deleteAll(ctx, members); err != nil {
			return err
		}
	}
	err := f.makeAll(ctx, members)
	if err == nil && f.fate == isDetached {
		err = f.detached(ctx, members)
	}
	if err != nil || f.fate == stays {
		return err
	}
	return f.deleteAll(ctx, members)
}

func (f *family) deleteAll(ctx context.Context, members []member) error {
	f.rnd.Shuffle(len(members), func(i, j int) { members[i], members[j] = members[j], members[i] })
	for _, m := range members {
		err := insist(ctx, func() error {
			_, err := f.client.Delete(ctx, client.DeleteRequest{Kind: f.kind(m.kind), Name: m.name})
			var e *client.Error
			if errors.As(err, &e) && e.Extensions.Code == "NOT_FOUND" {
				return nil
			}
			return err
		})
		if err != nil {
			return fmt.Errorf("delete %s: %w", m.name, err)
		}
	}
	return nil
}

func (f *family) makeAll(ctx context.Context, members []member) error {
	for i, m := range members {
		if i == f.rnd.IntN(len(members)) || i == len(members)-1 {
			if err := f.makeExternal(ctx); err != nil {
				return err
			}
		}
		manifest := fmt.Sprintf("apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: %s\nmetadata: {name: %s}\nspec: {cloudCredentialsRef: {cloudName: openstack, secretName: cloud-config}, %s}\n", m.kind, m.name, m.spec)
		err := insist(ctx, func() error {
			_, err := f.client.Apply(ctx, client.ApplyRequest{Manifest: manifest})
			return err
		})
		if err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// makeExternal makes the network that is imported, once.
func (f *family) makeExternal(ctx context.Context) error {
	owner := fmt.Sprintf("others-%d", f.number)
	return insist(ctx, func() error {
		var out cloudObject
		err := f.cloud.do("POST", "/v1/Network", map[string]any{"owner": owner, "properties": map[string]any{"name": fmt.Sprintf("external-%d", f.number)}}, &out)
		if err != nil && !strings.Contains(err.Error(), "409") {
			return err
		}
		var found []cloudObject
		if err := f.cloud.do("POST", "/v1/Network/search", map[string]any{"owner": owner}, &found); err != nil || len(found) != 1 {
			return fmt.Errorf("%d external networks: %w", len(found), err)
		}
		f.mu.Lock()
		defer f.mu.Unlock()
		f.external = found[0].ID
		return nil
	})
}

// detached waits until all have their objects, and notes these.
func (f *family) detached(ctx context.Context, members []member) error {
	for _, m := range members {
		err := insist(ctx, func() error {
			r, err := f.client.Get(ctx, f.kind(m.kind), "", m.name, "")
			switch {
			case err != nil:
				return err
			case r == nil || r.Condition("Available").Status != "True":
				return fmt.Errorf("%s is not ready", m.name)
			case !strings.HasPrefix(m.name, "imported"):
				f.mu.Lock()
				defer f.mu.Unlock()
				f.left[r.Metadata.UID] = true
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// asItShould says what is not yet as the fate of the family wants it, and takes from the
// objects those that are there for the family.
func (f *family) asItShould(resources map[string]*client.Resource, objects map[string][]cloudObject) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	take := func(owner, id string) error {
		if got := objects[owner]; len(got) != 1 || id != "" && got[0].ID != id || got[0].State != "ACTIVE" {
			return fmt.Errorf("the cloud has %+v for %s, not one with the id %q", got, owner, id)
		}
		delete(objects, owner)
		return nil
	}
	if err := take(fmt.Sprintf("others-%d", f.number), f.external); err != nil {
		return err
	}
	for owner := range f.left {
		if err := take(owner, ""); err != nil {
			return fmt.Errorf("detached: %w", err)
		}
	}
	for _, m := range f.members() {
		r := resources[m.kind+"/"+m.name]
		wanted := f.fate == stays
		switch {
		case !wanted && r != nil:
			return fmt.Errorf("%s was deleted and is there: finalizers %q, %s", m.name, r.Metadata.Finalizers, r.Status)
		case !wanted:
			continue
		case r == nil:
			return fmt.Errorf("%s is not there", m.name)
		case r.Condition("Available").Status != "True" || r.Condition("Progressing").Status != "False":
			return fmt.Errorf("%s: %s", m.name, r.Status)
		}
		if strings.HasPrefix(m.name, "imported") {
			if id := statusOf(r).ID; id != f.external {
				return fmt.Errorf("%s is %q, not %q", m.name, id, f.external)
			}
			continue
		}
		if len(r.Metadata.Finalizers) != 1 {
			return fmt.Errorf("%s has the finalizers %q", m.name, r.Metadata.Finalizers)
		}
		if err := take(r.Metadata.UID, statusOf(r).ID); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return nil
}

// seed is that of the environment, or a random one.
func seed(t *testing.T) uint64 {
	t.Helper()
	n := rand.Uint64()
	if text := os.Getenv("SLUICE_TEST_SEED"); text != "" {
		var err error
		if n, err = strconv.ParseUint(text, 10, 64); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("SLUICE_TEST_SEED=%d", n)
	return n
}

// TestAllIsWhereItShouldBeWhoeverIsKilled has resources come and go while gateway,
// controller and cloud are killed and started again at random.
func TestAllIsWhereItShouldBeWhoeverIsKilled(t *testing.T) {
	t.Parallel()
	const count = 50
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	rnd := rand.New(rand.NewPCG(seed(t), 0))
	data, address := t.TempDir(), freeAddress(t)
	g := start(t, data, "--listen", address)
	h := startControlledBy(t, g, "--work", "30ms", "--latency", "4ms", "--faults", "0.03")

	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	families := make([]*family, count)
	ended := make(chan error, count)
	for i := range families {
		f := &family{controlled: h, number: i, fate: fate(rnd.IntN(int(fates))), lives: rnd.IntN(4), rnd: rand.New(rand.NewPCG(rnd.Uint64(), 0)), left: map[string]bool{}}
		if f.fate == isDetached {
			f.lives = 0 // what is left of a life that was cut short nobody can say
		}
		families[i] = f
		go func() {
			err := f.live(ctx)
			if err != nil {
				err = fmt.Errorf("family %d: %w", f.number, err)
			}
			ended <- err
		}()
	}
	kills := [3]int{}
	for running := count; running > 0 || slices.Min(kills[:]) < leastKills; {
		select {
		case err := <-ended:
			if running--; err != nil {
				t.Error(err)
			}
		case <-time.After(rand.N(300 * time.Millisecond)):
			victim := rnd.IntN(len(kills))
			if kills[victim] == mostKills {
				continue
			}
			kills[victim]++
			switch victim {
			case 0:
				g.kill()
				g = start(t, data, "--listen", address)
			case 1:
				h.controller.kill()
				h.controller.start()
			case 2:
				h.cloud.kill()
				h.cloud.start()
			}
		}
	}
	t.Logf("killed: the gateway %d times, the controller %d times, the cloud %d times", kills[0], kills[1], kills[2])
	h.until("all is where it should be", func() error {
		resources, objects, err := h.everything()
		for _, f := range families {
			if err == nil {
				err = f.asItShould(resources, objects)
			}
		}
		for owner, left := range objects {
			if err == nil {
				err = fmt.Errorf("the cloud still has %+v of %s", left, owner)
			}
		}
		return err
	})
}

// everything is what the gateway and the cloud have: by kind and name, and by owner.
func (h *controlled) everything() (map[string]*client.Resource, map[string][]cloudObject, error) {
	resources, objects := map[string]*client.Resource{}, map[string][]cloudObject{}
	for _, k := range h.kinds {
		if k.Field("spec.managementPolicy") == nil {
			continue
		}
		for r, err := range h.client.List(h.Context(), client.ListRequest{Kind: k}) {
			if err != nil {
				return nil, nil, err
			}
			resources[r.Kind+"/"+r.Metadata.Name] = r
		}
	}
	all, err := h.cloud.all()
	for _, o := range all {
		objects[o.Owner] = append(objects[o.Owner], o)
	}
	return resources, objects, err
}
