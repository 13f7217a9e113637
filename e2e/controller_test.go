package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/redistest"
)

// finalizer is that of the example controller.
const finalizer = "example.org/cloud"

// controlled is a gateway whose managed resources the example controller keeps in step
// with the simulated cloud.
type controlled struct {
	*testing.T
	cloud      *simulatedCloud
	controller *program
	client     *client.Client
	kinds      []client.Kind
}

// startControlled runs the three processes. Of the cloud the flags are given.
func startControlled(t *testing.T, flags ...string) *controlled {
	t.Helper()
	return startControlledBy(t, start(t, ""), flags...)
}

// startControlledBy runs the controller and the cloud beside a gateway.
func startControlledBy(t *testing.T, g *gateway, flags ...string) *controlled {
	t.Helper()
	h := &controlled{T: t, cloud: startCloud(t, flags...)}
	h.controller = example(t, "controller", "--server", g.address, "--cloud", h.cloud.address, "--poll", "50ms")
	var err error
	if h.client, err = client.New(client.Config{Server: g.address}); err != nil {
		t.Fatal(err)
	}
	h.credentials()
	// Resources that are made before are nobody's.
	h.until("the controller has the kinds", func() error {
		if h.kinds, err = h.client.DescribedKinds(t.Context()); err != nil {
			return err
		}
		for _, k := range h.kinds {
			if k.Field("spec.managementPolicy") != nil && !k.Controlled {
				return fmt.Errorf("nobody has kind %s", k.Name)
			}
		}
		return nil
	})
	return h
}

// in is the same for a subtest.
func (h *controlled) in(t *testing.T) *controlled {
	sub := *h
	sub.T = t
	return &sub
}

// credentials makes the Secret that all resources here name.
func (h *controlled) credentials() {
	h.Helper()
	h.secret("cloud-config", "clouds: {openstack: {auth: {token: "+cloudToken+"}}}")
}

// secret makes a Secret with the credentials of clouds.
func (h *controlled) secret(name, clouds string) {
	h.Helper()
	h.apply("v1", "Secret", name, fmt.Sprintf("stringData: {clouds.yaml: %q}", clouds))
}

func (h *controlled) until(what string, cond func() error) {
	h.Helper()
	redistest.Await(h, what, cond)
}

// apply makes a resource; body is the rest of its manifest.
func (h *controlled) apply(apiVersion, kind, name, body string) {
	h.Helper()
	manifest := fmt.Sprintf("apiVersion: %s\nkind: %s\nmetadata: {name: %s}\n%s\n", apiVersion, kind, name, body)
	if _, err := h.client.Apply(h.Context(), client.ApplyRequest{Manifest: manifest}); err != nil {
		h.Fatalf("%s\n%v", manifest, err)
	}
}

// spec makes a managed kind's resource; spec is the inside of its spec, besides the credentials.
func (h *controlled) spec(kind, name, spec string) {
	h.Helper()
	h.apply("openstack.k-orc.cloud/v1alpha1", kind, name, `spec: {cloudCredentialsRef: {cloudName: openstack, secretName: cloud-config}, `+spec+`}`)
}

func (h *controlled) kind(name string) client.Kind {
	h.Helper()
	k, err := client.FindKind(h.kinds, name)
	if err != nil {
		h.Fatal(err)
	}
	return k
}

// get returns a resource; one of no kind and no name if there is none.
func (h *controlled) get(kind, name string) *client.Resource {
	h.Helper()
	r, err := h.client.Get(h.Context(), h.kind(kind), "", name, "")
	if err != nil {
		h.Fatal(err)
	}
	if r == nil {
		r = &client.Resource{}
	}
	return r
}

// statusOf is the part of a status that all kinds here have.
func statusOf(r *client.Resource) (out struct {
	ID           string
	LastSyncTime string
	Resource     map[string]any
}) {
	_ = json.Unmarshal(r.Status, &out)
	return out
}

// says waits until the condition Progressing, and with it Available, says something.
func (h *controlled) says(kind, name, reason, message string) *client.Resource {
	h.Helper()
	var r *client.Resource
	h.until(fmt.Sprintf("%s/%s says %q", kind, name, message), func() error {
		r = h.get(kind, name)
		p, a := r.Condition("Progressing"), r.Condition("Available")
		if p.Reason != reason || p.Message != message {
			return fmt.Errorf("Progressing: %+v", p)
		}
		if done := reason == "Success" || reason == "InvalidConfiguration" || reason == "UnrecoverableError"; done == (p.Status == "True") {
			return fmt.Errorf("Progressing is %s with reason %s", p.Status, reason)
		}
		if want := map[bool]string{true: "True", false: "False"}[reason == "Success"]; a.Status != want {
			return fmt.Errorf("Available: %+v", a)
		}
		if reason != "Success" && (a.Reason != p.Reason || a.Message != p.Message) {
			return fmt.Errorf("Available %+v does not copy Progressing %+v", a, p)
		}
		if p.ObservedGeneration != r.Metadata.Generation || p.LastTransitionTime == "" {
			return fmt.Errorf("Progressing: %+v of generation %d", p, r.Metadata.Generation)
		}
		return nil
	})
	return r
}

// ready waits until a resource is available.
func (h *controlled) ready(kind, name string) *client.Resource {
	h.Helper()
	return h.says(kind, name, "Success", "OpenStack resource is up to date")
}

// laterIsReady makes a network and waits until it is ready: by then the controller has
// seen all that changed before.
func (h *controlled) laterIsReady(name string) {
	h.Helper()
	h.spec("Network", name, `resource: {}`)
	h.ready("Network", name)
}

func (h *controlled) delete(kind, name string) {
	h.Helper()
	if _, err := h.client.Delete(h.Context(), client.DeleteRequest{Kind: h.kind(kind), Name: name}); err != nil {
		h.Fatal(err)
	}
}

func (h *controlled) gone(kind, name string) {
	h.Helper()
	h.until(kind+"/"+name+" is gone", func() error {
		if r := h.get(kind, name); r.Kind != "" {
			return fmt.Errorf("it is there: %s", r.Status)
		}
		return nil
	})
}

// one is the object of a resource, of which there is just one.
func (h *controlled) one(r *client.Resource) cloudObject {
	h.Helper()
	found := h.cloud.of(r.Metadata.UID)
	if len(found) != 1 {
		h.Fatalf("%s/%s has %d objects in the cloud", r.Kind, r.Metadata.Name, len(found))
	}
	return found[0]
}

func TestTheExampleControllerActsOnTheManagedProfile(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms", "--latency", "2ms")
	t.Run("objects are made once what they need is ready", func(t *testing.T) {
		h := h.in(t)
		h.spec("Subnet", "s", `resource: {networkRef: net, ipVersion: 4, cidr: 10.0.0.0/24}`)
		h.says("Subnet", "s", "Waiting", "Waiting for Network/net to be created")
		h.spec("Network", "net", `resource: {mtu: 1400, tags: [a]}`)
		s, n := h.ready("Subnet", "s"), h.ready("Network", "net")
		subnet, network := h.one(s), h.one(n)
		if statusOf(n).ID != network.ID || statusOf(s).ID != subnet.ID || statusOf(n).LastSyncTime == "" {
			t.Errorf("%s and %s", n.Status, s.Status)
		}
		if subnet.Properties["networkRef"] != network.ID || len(subnet.Uses) != 1 || subnet.Properties["name"] != "s" {
			t.Errorf("the cloud has %+v", subnet)
		}
		if shown := statusOf(n).Resource; shown["mtu"] != 1400.0 || shown["status"] != "ACTIVE" || shown["name"] != "net" {
			t.Errorf("the status shows %v", shown)
		}
		if len(n.Metadata.Finalizers) != 1 || n.Metadata.Finalizers[0] != finalizer {
			t.Errorf("finalizers %q", n.Metadata.Finalizers)
		}
		h.delete("Network", "net")
		h.laterIsReady("after-net")
		if r := h.get("Network", "net"); r.Metadata.DeletionRequestedAt == nil || h.one(r).State != "ACTIVE" || r.Condition("Available").Status != "True" {
			t.Errorf("while the subnet is there, the network says %s", r.Status)
		}
		h.delete("Subnet", "s")
		h.gone("Network", "net")
		if left := append(h.cloud.of(n.Metadata.UID), h.cloud.of(s.Metadata.UID)...); len(left) != 0 {
			t.Errorf("the cloud still has %+v", left)
		}
	})
	t.Run("a changed spec changes the object, and what the cloud refuses is said", func(t *testing.T) {
		h := h.in(t)
		h.spec("Network", "changed", `resource: {mtu: 1400}`)
		before := h.ready("Network", "changed")
		h.spec("Network", "changed", `resource: {mtu: 9100}`)
		h.says("Network", "changed", "InvalidConfiguration", "the cloud refused it: refused: the cloud carries packets of at most 9000 bytes")
		h.spec("Network", "changed", `resource: {mtu: 9000}`)
		h.until("the object is changed", func() error {
			if o := h.one(before); o.Properties["mtu"] != 9000.0 || o.ID != statusOf(before).ID {
				return fmt.Errorf("%+v", o)
			}
			return nil
		})
		h.ready("Network", "changed")
	})
	t.Run("onDelete detach leaves the object", func(t *testing.T) {
		h := h.in(t)
		h.spec("Network", "left", `managedOptions: {onDelete: detach}, resource: {}`)
		r := h.ready("Network", "left")
		h.delete("Network", "left")
		h.gone("Network", "left")
		if o := h.one(r); o.State != "ACTIVE" {
			t.Errorf("%+v", o)
		}
	})
	t.Run("an object that was made and not noted is adopted", func(t *testing.T) {
		h := h.in(t)
		h.controller.kill()
		h.spec("Network", "orphan", `resource: {}`)
		uid := h.get("Network", "orphan").Metadata.UID
		var made cloudObject
		if err := h.cloud.do("POST", "/v1/Network", map[string]any{"owner": uid, "properties": map[string]any{"name": "orphan"}}, &made); err != nil {
			t.Fatal(err)
		}
		h.controller.start()
		if r := h.ready("Network", "orphan"); statusOf(r).ID != made.ID || h.one(r).ID != made.ID {
			t.Errorf("%s, not %s", r.Status, made.ID)
		}
	})
	t.Run("the credentials are those of the Secret", func(t *testing.T) {
		h := h.in(t)
		h.apply("openstack.k-orc.cloud/v1alpha1", "Network", "poor", `spec: {cloudCredentialsRef: {cloudName: mine, secretName: purse}, resource: {}}`)
		h.says("Network", "poor", "Waiting", "Waiting for Secret/purse to be created")
		h.secret("purse", "clouds: {}")
		h.says("Network", "poor", "TransientError", `Secret/purse has no cloud "mine" in its clouds.yaml`)
		h.secret("purse", "clouds: {mine: {auth: {token: wrong}}}")
		h.says("Network", "poor", "TransientError", "the cloud answered 401 Unauthorized: the token is not known")
		h.secret("purse", "clouds: {mine: {auth: {token: "+cloudToken+"}}}")
		h.ready("Network", "poor")
		if log := h.controller.log.String(); strings.Contains(log, cloudToken) {
			t.Errorf("the token is in the log:\n%s", log)
		}
	})
	t.Run("the controller cleans up last", func(t *testing.T) {
		h := h.in(t)
		h.spec("Network", "held", `resource: {}`)
		r := h.ready("Network", "held")
		patch := func(p client.MetadataPatch) {
			t.Helper()
			p.Kind, p.Name, p.ExpectedRevision = h.kind("Network"), "held", h.get("Network", "held").Metadata.Revision
			if _, err := h.client.PatchMetadata(t.Context(), p); err != nil {
				t.Fatal(err)
			}
		}
		patch(client.MetadataPatch{AddFinalizers: []string{"example.org/dns"}})
		h.delete("Network", "held")
		h.says("Network", "held", "Progressing", "Waiting for finalizer "+finalizer+" to be removed\nWaiting for finalizer example.org/dns to be removed")
		h.laterIsReady("after-held")
		if o := h.one(r); o.State != "ACTIVE" {
			t.Errorf("while another holds the resource, the object is %s", o.State)
		}
		patch(client.MetadataPatch{RemoveFinalizers: []string{"example.org/dns"}})
		h.gone("Network", "held")
		if left := h.cloud.of(r.Metadata.UID); len(left) != 0 {
			t.Errorf("%+v", left)
		}
	})
}

func TestTheExampleControllerImportsWhatIsThere(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms")
	unmanaged := func(name, how string) { h.spec("Network", name, `managementPolicy: unmanaged, import: {`+how+`}`) }
	t.Run("by id", func(t *testing.T) {
		h := h.in(t)
		id := h.cloud.make("Network", map[string]any{"name": "theirs", "mtu": 1450})
		unmanaged("by-id", "id: "+id)
		r := h.ready("Network", "by-id")
		if s := statusOf(r); s.ID != id || s.Resource["mtu"] != 1450.0 || len(r.Metadata.Finalizers) != 0 {
			t.Errorf("%s with finalizers %q", r.Status, r.Metadata.Finalizers)
		}
		h.delete("Network", "by-id")
		h.gone("Network", "by-id")
		if err := h.cloud.do("GET", "/v1/Network/"+id, nil, &cloudObject{}); err != nil {
			t.Errorf("what was imported is gone: %v", err)
		}
	})
	t.Run("by an id that is not there", func(t *testing.T) {
		h := h.in(t)
		unmanaged("missing", "id: 11111111-1111-4111-8111-111111111111")
		h.says("Network", "missing", "UnrecoverableError", "referenced resource does not exist in OpenStack")
	})
	t.Run("by a filter, once it matches one", func(t *testing.T) {
		h := h.in(t)
		unmanaged("found", `filter: {tags: [wanted], notTags: [decoy]}`)
		h.cloud.make("Network", map[string]any{"name": "decoy", "tags": []string{"wanted", "decoy"}})
		h.says("Network", "found", "Progressing", "Waiting for OpenStack resource to be created externally")
		id := h.cloud.make("Network", map[string]any{"name": "any", "tags": []string{"wanted"}})
		if r := h.ready("Network", "found"); statusOf(r).ID != id {
			t.Errorf("%s, not %s", r.Status, id)
		}
	})
	t.Run("by a filter that matches several", func(t *testing.T) {
		h := h.in(t)
		for range 2 {
			h.cloud.make("Network", map[string]any{"name": "twin"})
		}
		unmanaged("several", `filter: {name: twin}`)
		h.says("Network", "several", "InvalidConfiguration", "found more than one matching OpenStack resource during import")
	})
	t.Run("by a filter with a reference", func(t *testing.T) {
		h := h.in(t)
		h.cloud.make("Subnet", map[string]any{"name": "other"})
		h.spec("Subnet", "of-found", `managementPolicy: unmanaged, import: {filter: {networkRef: found}}`)
		network := h.ready("Network", "found")
		id := h.cloud.make("Subnet", map[string]any{"name": "mine", "networkRef": statusOf(network).ID})
		if r := h.ready("Subnet", "of-found"); statusOf(r).ID != id {
			t.Errorf("%s, not %s", r.Status, id)
		}
	})
}

func TestTheExampleControllerLooksForWhatAChangedImportNames(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms")
	imports := func(how string) { h.spec("Network", "net", `managementPolicy: unmanaged, import: {`+how+`}`) }
	a, b := h.cloud.make("Network", map[string]any{"name": "xa"}), h.cloud.make("Network", map[string]any{"name": "xb"})
	for _, step := range []struct{ how, id string }{{"id: " + a, a}, {"id: " + b, b}, {"filter: {name: xa}", a}, {"filter: {name: xb}", b}, {"id: " + a, a}} {
		imports(step.how)
		if r := h.ready("Network", "net"); statusOf(r).ID != step.id {
			t.Errorf("%s: it shows %s, not %s", step.how, r.Status, step.id)
		}
	}
	for _, step := range []struct{ how, reason, message string }{
		{"id: 11111111-1111-4111-8111-111111111111", "UnrecoverableError", "referenced resource does not exist in OpenStack"},
		{"filter: {name: xc}", "Progressing", "Waiting for OpenStack resource to be created externally"},
	} {
		imports("id: " + a)
		h.ready("Network", "net")
		imports(step.how)
		if s := statusOf(h.says("Network", "net", step.reason, step.message)); s.ID != "" || s.Resource != nil || s.LastSyncTime != "" {
			t.Errorf("%s: it still shows %+v", step.how, s)
		}
	}
}

func TestTheExampleControllerWritesNothingWhileTheCloudIsAtWork(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	h := startControlled(t, "--work", "1s")
	h.laterIsReady("first")
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var events []string
	begin, err := h.client.Position(ctx, h.kind("Network"), "default")
	if err != nil {
		t.Fatal(err)
	}
	h.spec("Network", "net", `resource: {}`)
	h.ready("Network", "net")
	h.delete("Network", "net")
	for change, err := range h.client.Changes(ctx, client.ChangesRequest{Kind: h.kind("Network"), Namespace: "default", Name: "net", After: begin}) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Resource == nil {
			continue
		}
		p := change.Resource.Condition("Progressing")
		if events = append(events, fmt.Sprint(change.Type, " ", p.Message)); change.Type == "DELETED" {
			break
		}
	}
	// Created, held, building, ready, asked to go, going, gone.
	if len(events) > 9 {
		t.Errorf("%d changes: %q", len(events), events)
	}
}

func TestTheExampleControllerLooksAgainAsOftenAsItIsTold(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms")
	h.spec("Network", "managed", `resyncPeriod: 100ms, resource: {mtu: 1400}`)
	id := h.cloud.make("Network", map[string]any{"name": "theirs"})
	h.spec("Network", "unmanaged", `resyncPeriod: 100ms, managementPolicy: unmanaged, import: {id: `+id+`}`)
	managed := h.ready("Network", "managed")
	h.ready("Network", "unmanaged")

	var changed cloudObject
	at := "/v1/Network/" + statusOf(managed).ID
	if err := h.cloud.do("PUT", at, map[string]any{"properties": map[string]any{"name": "managed", "mtu": 68}}, &changed); err != nil {
		t.Fatal(err)
	}
	h.until("what was changed outside is changed back", func() error {
		if o := h.one(managed); o.Properties["mtu"] != 1400.0 {
			return fmt.Errorf("%+v", o)
		}
		return nil
	})
	for _, at := range []string{at, "/v1/Network/" + id} {
		if err := h.cloud.do("DELETE", at, nil, &cloudObject{}); err != nil {
			t.Fatal(err)
		}
	}
	h.says("Network", "unmanaged", "UnrecoverableError", "resource has been deleted from OpenStack")
	h.until("what was deleted outside is made anew", func() error {
		now := h.ready("Network", "managed")
		if got := statusOf(now).ID; got == "" || got == statusOf(managed).ID {
			return fmt.Errorf("its id is %q", got)
		}
		return nil
	})
	h.one(managed)
	if p := h.get("Network", "unmanaged"); statusOf(p).ID != "" || strings.Contains(string(p.Status), `"resource"`) {
		t.Errorf("the status still shows %s", p.Status)
	}
	since := h.get("Network", "managed").Condition("Available").LastTransitionTime
	seen := statusOf(h.get("Network", "managed")).LastSyncTime
	h.until("it was looked at again", func() error {
		if now := statusOf(h.get("Network", "managed")).LastSyncTime; now == seen {
			return fmt.Errorf("last at %s", now)
		}
		return nil
	})
	if now := h.ready("Network", "managed").Condition("Available").LastTransitionTime; now != since {
		t.Errorf("Available is True since %s, then since %s", since, now)
	}
	if _, err := time.Parse(time.RFC3339Nano, since); err != nil {
		t.Error(err)
	}
}

func TestAStateThatTheCloudDoesNotTellIsUnknown(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms")
	h.spec("Network", "net", `resyncPeriod: 100ms, resource: {}`)
	h.ready("Network", "net")
	h.cloud.kill()
	h.until("the resource says that the cloud is away", func() error {
		r := h.get("Network", "net")
		p, a := r.Condition("Progressing"), r.Condition("Available")
		if p.Status != "True" || p.Reason != "TransientError" || p.Message != "the cloud does not answer" || a.Status != "Unknown" || a.Reason != p.Reason || a.Message != p.Message || statusOf(r).ID == "" {
			return fmt.Errorf("%s", r.Status)
		}
		return nil
	})
	h.cloud.start()
	h.ready("Network", "net")
}

func TestTheExampleControllerFinishesWhatItBeganWhenItIsStopped(t *testing.T) {
	t.Parallel()
	h := startControlled(t, "--work", "20ms", "--latency", "500ms")
	h.spec("Network", "net", `resource: {}`)
	h.until("the controller has begun", func() error {
		if r := h.get("Network", "net"); len(r.Metadata.Finalizers) == 0 {
			return fmt.Errorf("no finalizer: %s", r.Status)
		}
		return nil
	})
	if err := h.controller.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-h.controller.exited; err != nil {
		t.Errorf("it ended with %v", err)
	}
	h.controller.exited <- nil
	r := h.get("Network", "net")
	if id := statusOf(r).ID; id == "" || h.one(r).ID != id {
		t.Errorf("it left %s", r.Status)
	}
}
