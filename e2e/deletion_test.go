package e2e_test

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
)

const watchDeletion = `subscription($after: String) { resourceChanges(kinds: ["Network", "Subnet"], after: $after) { type cursor resource { kind metadata { name } } } }`

// TestANetworkIsGoneOnceAfterItsLastSubnet deletes a network that a hundred subnets rely on,
// and then these from eight clients; meanwhile the gateway is killed.
func TestANetworkIsGoneOnceAfterItsLastSubnet(t *testing.T) {
	t.Parallel()
	const subnets, clients = 100, 8
	rounds := 4
	if testing.Short() {
		rounds = 1
	}
	data := t.TempDir()
	g := start(t, data)
	manifest := "apiVersion: v1\nkind: Secret\nmetadata:\n  name: cloud-config\nstringData:\n  clouds.yaml: x\n"
	if a := g.post(`mutation($m: String!) { applyManifest(input: {manifest: $m}) { outcome } }`, map[string]any{"m": manifest}); a.codes() != "" {
		t.Fatalf("%+v", a)
	}
	for round := range rounds {
		network := fmt.Sprintf("net-%d", round)
		if a := g.create(network, nil); a.codes() != "" {
			t.Fatalf("%+v", a)
		}
		subnet := func(i int) string { return fmt.Sprintf("%s-%d", network, i) }
		each := func(do func(i int)) {
			var all sync.WaitGroup
			for client := range clients {
				all.Go(func() {
					for i := client; i < subnets; i += clients {
						do(i)
					}
				})
			}
			all.Wait()
		}
		each(func(i int) {
			a, err := g.send(`mutation($input: CreateSubnetInput!) { createSubnet(input: $input) { warnings { message } subnet { id } } }`, map[string]any{"input": map[string]any{
				"name": subnet(i), "spec": spec(map[string]any{"networkRef": network, "ipVersion": 4, "cidr": fmt.Sprintf("10.%d.0.0/16", i)}),
			}})
			if err != nil || a.codes() != "" || len(a.get("createSubnet", "warnings").([]any)) > 0 {
				t.Errorf("%v %+v", err, a)
			}
		})
		if t.Failed() {
			return
		}
		s := g.dial()
		s.subscribe("1", watchDeletion, nil)
		cursor := s.next("1").get("resourceChanges", "cursor").(string)
		s.close()
		remove := fmt.Sprintf(`mutation { deleteNetwork(input: {name: %q}) { state blockedBy(first: 100) { totalCount nodes { name } pageInfo { hasNextPage } } } }`, network)
		a := g.must(remove)
		blockers, _ := a.get("deleteNetwork", "blockedBy", "nodes").([]any)
		if a.get("deleteNetwork", "state") != "PENDING" || len(blockers) != subnets || a.get("deleteNetwork", "blockedBy", "pageInfo", "hasNextPage") != false {
			t.Fatalf("%+v", a)
		}
		last := rand.IntN(subnets)
		var deleted atomic.Int32
		dying := g
		each(func(i int) {
			if deleted.Add(1) == int32(last) {
				_ = dying.cmd.Process.Kill()
			}
			_, _ = dying.send(fmt.Sprintf(`mutation { deleteSubnet(input: {name: %q}) { state } }`, subnet(i)), nil)
		})
		if last == 0 {
			_ = dying.cmd.Process.Kill()
		}
		dying.wait()
		g = start(t, data)
		each(func(i int) {
			a, err := g.send(fmt.Sprintf(`mutation { deleteSubnet(input: {name: %q}) { state } }`, subnet(i)), nil)
			if err != nil || a.codes() != "" && a.codes() != "NOT_FOUND" {
				t.Errorf("%v %+v", err, a)
			}
		})
		s = g.dial()
		s.subscribe("1", watchDeletion, map[string]any{"after": cursor})
		left, gone := subnets, 0
		for marker := false; !marker; {
			a := s.next("1")
			kind, name := a.get("resourceChanges", "resource", "kind"), a.get("resourceChanges", "resource", "metadata", "name")
			what := a.get("resourceChanges", "type")
			switch {
			case a.codes() != "":
				t.Fatalf("%+v", a)
			case what == "DELETED" && kind == "Subnet":
				left--
			case what == "DELETED" && name == network:
				if gone++; left != 0 {
					t.Errorf("round %d: the network is gone while %d subnets rely on it (killed at %d)", round, left, last)
				}
				g.must(fmt.Sprintf(`mutation { upsertNetwork(input: {name: "marker-%d", spec: {cloudCredentialsRef: {secretName: "cloud-config", cloudName: "x"}, managementPolicy: MANAGED, resource: {}}}) { created } }`, round))
			case what == "ADDED" && name == fmt.Sprintf("marker-%d", round):
				marker = true
			}
		}
		s.close()
		if gone != 1 {
			t.Errorf("round %d: the network was deleted %d times (killed at %d)", round, gone, last)
		}
	}
}
