package e2e_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

// oneOfEachKind are resources of all kinds that the example controller serves, named
// after their kinds: those that need others come first.
var oneOfEachKind = strings.TrimSpace(`
Trunk portRef: port
Server imageRef: image, flavorRef: flavor, keypairRef: keypair, ports: [{portRef: port}]
FloatingIP floatingNetworkRef: network
ShareNetwork networkRef: network, subnetRef: subnet
Port networkRef: network, addresses: [{subnetRef: subnet}], securityGroupRefs: [securitygroup]
Subnet networkRef: network, ipVersion: 4, cidr: 10.0.0.0/24
Router externalGateways: [{networkRef: network}]
AddressScope ipVersion: 4, projectRef: project
SecurityGroup projectRef: project
Network projectRef: project
RoleAssignment roleRef: role, userRef: user, projectRef: project
ApplicationCredential userRef: user, secretRef: cloud-config
User domainRef: domain
Project domainRef: domain
Group domainRef: domain
Role domainRef: domain
Domain enabled: true
Endpoint interface: internal, serviceRef: service, url: "https://example.org"
Service type: compute
Volume size: 1, volumeTypeRef: volumetype
VolumeType description: fast
ServerGroup policy: anti-affinity
KeyPair publicKey: ssh-ed25519 AAAA
Flavor ram: 1, vcpus: 1, disk: 1
Image content: {diskFormat: qcow2, download: {url: "https://example.org/image"}}
`)

func TestTheExampleControllerServesEachKindOfTheManagedProfile(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	h := startControlled(t, "--work", "20ms")
	made := map[string]bool{}
	var kinds []string
	for line := range strings.Lines(oneOfEachKind) {
		kind, resource, _ := strings.Cut(strings.TrimSpace(line), " ")
		h.spec(kind, strings.ToLower(kind), "resource: {"+resource+"}")
		kinds, made[kind] = append(kinds, kind), true
	}
	for _, k := range h.kinds {
		if k.Field("spec.managementPolicy") != nil && !made[k.Name] {
			t.Errorf("kind %s is not tried", k.Name)
		}
	}
	for _, kind := range kinds {
		r := h.ready(kind, strings.ToLower(kind))
		o := h.one(r)
		if k := h.kind(kind); k.Field("status.id") != nil && statusOf(r).ID != o.ID || statusOf(r).LastSyncTime == "" {
			t.Errorf("%s: %s, not %s", kind, r.Status, o.ID)
		}
		// Guarded references are to objects that are used.
		guarded := map[string]bool{}
		up, err := h.client.Tree(t.Context(), client.TreeRequest{ID: r.ID, Depth: 1})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range up.Dependencies {
			if n.Guarded && n.Kind != "Secret" {
				guarded[n.Kind+n.Name] = true
			}
		}
		if len(o.Uses) != len(guarded) {
			t.Errorf("%s uses %d objects, and has %d guarded references", kind, len(o.Uses), len(guarded))
		}
	}
	for i := range kinds { // those that are needed first
		h.delete(kinds[len(kinds)-1-i], strings.ToLower(kinds[len(kinds)-1-i]))
	}
	for _, kind := range kinds {
		h.gone(kind, strings.ToLower(kind))
	}
	if left, err := h.cloud.all(); err != nil || len(left) > 0 {
		t.Errorf("the cloud still has %s %v", fmt.Sprint(left), err)
	}
}
