package server_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// warnings, resource and payload are what the stories of verbs ask for.
const (
	warnings = "warnings { code message field }"
	resource = `{
      id
      metadata { namespace name uid revision generation labels { key value } description createdAt updatedAt }
      spec { resource { mtu tags } }
      status { cloudId conditions { type status reason } }
    }`
	payload = `clientMutationId
    dryRun
    ` + warnings + `
    network ` + resource + `
    preview { kind namespace name uid generation specJSON statusJSON manifest }`
)

// spec is that of a network.
func spec(resource map[string]any) map[string]any {
	return map[string]any{"cloudCredentialsRef": map[string]any{"secretName": "cloud", "cloudName": "region-one"}, "resource": resource}
}

// with is an input with more in it.
func with(input map[string]any, more ...any) map[string]any {
	out := map[string]any{}
	for k, v := range input {
		out[k] = v
	}
	for i := 0; i < len(more); i += 2 {
		out[more[i].(string)] = more[i+1]
	}
	return map[string]any{"input": out}
}

// mutation is one root field of the verb, with its input as variable.
func mutation(field, input, selection string) string {
	return "mutation ($input: " + input + "!) {\n  " + field + "(input: $input) {\n    " + selection + "\n  }\n}"
}

// verbs are the stories of the verbs. Each begins with a network net-a, but for that of create.
func verbs() map[string]func(*teller) {
	return map[string]func(*teller){
		"create.txt": func(c *teller) {
			create := mutation("createNetwork", "CreateNetworkInput", payload)
			input := map[string]any{
				"clientMutationId": "form-7", "name": "net-a", "description": "Of the shop",
				"labels": []any{map[string]any{"key": "team", "value": "web"}}, "spec": spec(map[string]any{"mtu": 1500, "tags": []any{"web"}}),
			}
			c.Tell("A client asks what would become of a create. Nothing is stored: there is neither uid nor revision.")
			c.ask(create, with(input, "dryRun", true))
			c.Tell("It creates the network.")
			c.ask(create, with(input))
			c.Tell("The same once more is refused, and so is its dry run.")
			c.ask(create, with(input))
			c.ask(create, with(input, "dryRun", true))
		},
		"update.txt": func(c *teller) {
			update := mutation("updateNetwork", "UpdateNetworkInput", payload)
			input := map[string]any{"name": "net-a", "expectedRevision": c.begin(), "spec": spec(map[string]any{"mtu": 9000})}
			c.Tell("A client asks what an update would change. The revision stays.")
			c.ask(update, with(input, "dryRun", true))
			c.Tell("It updates the network: the whole spec is replaced, so the tags are gone; the labels stay, as they are left out.")
			revision := revisionIn(c.t, c.ask(update, with(input)))
			c.Tell("The same again, by the revision that it has now, changes nothing.")
			c.ask(update, with(input, "expectedRevision", revision))
			c.Tell("By the revision before, it is a conflict.")
			c.ask(update, with(input))
			c.Tell("A client that knows the id needs neither namespace nor name.")
			id := kind.GlobalID(backend.Key{Kind: "Network", Namespace: "default", Name: "net-a"})
			c.ask(update, with(map[string]any{"id": id, "expectedRevision": revision, "spec": spec(map[string]any{"mtu": 1300})}))
		},
		"patch.txt": func(c *teller) {
			patch := mutation("patchNetwork", "PatchNetworkInput", payload)
			input := map[string]any{"name": "net-a", "expectedRevision": c.begin(), "description": "Patched", "spec": map[string]any{"resource": map[string]any{"mtu": nil, "tags": []any{"web", "new"}}}}
			c.Tell("A client asks what a patch would change: the MTU is cleared, the tags are replaced, all else stays.")
			c.ask(patch, with(input, "dryRun", true))
			c.Tell("It patches the network.")
			revision := revisionIn(c.t, c.ask(patch, with(input)))
			c.Tell("A patch that clears the labels alone.")
			c.ask(patch, with(map[string]any{"name": "net-a", "expectedRevision": revision, "labels": nil}))
		},
		"upsert.txt": func(c *teller) {
			upsert := mutation("upsertNetwork", "UpsertNetworkInput", "created\n    "+payload)
			input := map[string]any{"name": "net-b", "spec": spec(map[string]any{"mtu": 1500})}
			c.Tell("A client asks what an upsert would do, and does it.")
			c.ask(upsert, with(input, "dryRun", true))
			c.ask(upsert, with(input))
			c.Tell("The next one finds the network and replaces its spec, whatever its revision is.")
			c.ask(upsert, with(input, "spec", spec(map[string]any{"mtu": 1400}), "dryRun", true))
			c.ask(upsert, with(input, "spec", spec(map[string]any{"mtu": 1400})))
		},
		"status.txt": func(c *teller) {
			status := mutation("updateNetworkStatus", "UpdateNetworkStatusInput", payload)
			input := map[string]any{"name": "net-a", "expectedRevision": c.begin(), "status": map[string]any{
				"cloudId": "5d6b9a0e", "conditions": []any{map[string]any{"type": "Available", "status": "True", "reason": "Success"}},
			}}
			c.Tell("A controller asks whether its status would be taken, and writes it. The generation stays: it counts the spec's changes.")
			c.ask(status, with(input, "dryRun", true))
			revision := revisionIn(c.t, c.ask(status, with(input)))
			c.Tell("Its next status is by the old revision: any change since then is a conflict.")
			c.ask(status, with(input))
			c.Tell("Of a status the size is checked: a network has at most 32 conditions, whatever they say. And each has a type of its own.")
			conditions := make([]any, 33)
			for i := range conditions {
				conditions[i] = map[string]any{"type": fmt.Sprint("Odd", i), "status": "Maybe"}
			}
			c.ask(status, with(input, "expectedRevision", revision, "status", map[string]any{"conditions": conditions}))
			c.ask(status, with(input, "expectedRevision", revision, "status", map[string]any{"conditions": []any{conditions[0], conditions[1], conditions[0]}}))
		},
		"delete.txt": func(c *teller) {
			remove := mutation("deleteNetwork", "DeleteNetworkInput", "clientMutationId\n    dryRun\n    state\n    deletedNetworkId\n    network { metadata { name revision } }\n    preview { namespace name uid }")
			input := map[string]any{"clientMutationId": "button", "name": "net-a", "expectedRevision": c.begin()}
			c.Tell("A client asks what a delete would do, and does it.")
			c.ask(remove, with(input, "dryRun", true))
			c.ask(remove, with(input))
			c.Tell("Now there is nothing to delete. A read of what is absent is null and no error.")
			c.ask(remove, with(input))
			c.ask(`{ network(name: "net-a") { id } }`, nil)
		},
		"deleteWaiting.txt": func(c *teller) {
			const state = "dryRun\n    state\n    deletedNetworkId\n    network { metadata { revision deletionRequestedAt finalizers } status { conditions { type status message } } }"
			remove := mutation("deleteNetwork", "DeleteNetworkInput", state+"\n    blockedBy(first: 1) { totalCount nodes { kind name } pageInfo { hasNextPage } }")
			c.begin()
			for _, name := range []string{"sub-a", "sub-b"} {
				c.must(`mutation ($input: CreateSubnetInput!) { createSubnet(input: $input) { subnet { id } } }`, with(map[string]any{
					"name": name, "spec": spec(map[string]any{"networkRef": "net-a", "cidr": "10.0.0.0/24", "ipVersion": 4}),
				}))
			}
			input := map[string]any{"name": "net-a"}
			c.Tell("A network has two subnets, which rely on it. A client asks what a delete would do, and does it: the deletion waits.")
			c.ask(remove, with(input, "dryRun", true))
			revision := revisionIn(c.t, c.ask(remove, with(input)))
			c.Tell("From now on the spec is frozen.")
			patch := mutation("patchNetwork", "PatchNetworkInput", "network { metadata { revision finalizers } }")
			c.ask(patch, with(map[string]any{"name": "net-a", "expectedRevision": revision, "description": "x"}))
			c.Tell("A controller holds another network, and says so by a finalizer before its deletion is requested.")
			other := revisionIn(c.t, c.must(`mutation ($input: CreateNetworkInput!) { createNetwork(input: $input) { network { metadata { revision } } } }`, with(map[string]any{"name": "net-b", "spec": spec(map[string]any{})})))
			c.ask(patch, with(map[string]any{"name": "net-b", "expectedRevision": other, "addFinalizers": []any{"cloud.example.org/network"}}))
			revision = revisionIn(c.t, c.ask(remove, with(map[string]any{"name": "net-b"})))
			c.Tell("It can add none, and removes its own once it has cleaned up. Then the network goes.")
			c.ask(patch, with(map[string]any{"name": "net-b", "expectedRevision": revision, "addFinalizers": []any{"more"}}))
			c.ask(patch, with(map[string]any{"name": "net-b", "expectedRevision": revision, "removeFinalizers": []any{"cloud.example.org/network"}}))
		},
		"applyManifest.txt": func(c *teller) {
			apply := mutation("applyManifest", "ApplyManifestInput", "dryRun\n    "+warnings+"\n    outcome\n    resource { id metadata { namespace name revision } manifest(format: YAML) }\n    preview { name uid manifest(format: YAML) }")
			const manifest = "apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata:\n  name: net-m\n  labels: {team: web}\nspec:\n  cloudCredentialsRef: {secretName: cloud, cloudName: region-one}\n  resource: {mtu: 1500}\n"
			input := map[string]any{"manifest": manifest}
			c.Tell("A client asks what a manifest would do, and applies it.")
			c.ask(apply, with(input, "dryRun", true))
			c.ask(apply, with(input))
			c.Tell("The same again changes nothing.")
			c.ask(apply, with(input))
			c.Tell("With another MTU it is an update.")
			c.ask(apply, with(input, "manifest", strings.Replace(manifest, "1500", "1400", 1), "dryRun", true))
			c.ask(apply, with(input, "manifest", strings.Replace(manifest, "1500", "1400", 1)))
			c.Tell("With a field that is not known it is refused, and the field is named.")
			c.ask(apply, with(input, "manifest", strings.Replace(manifest, "mtu: 1500", "mtv: 1500", 1)))
		},
	}
}

// begin creates net-a, which is no part of the story, and returns its revision.
func (c *teller) begin() string {
	c.t.Helper()
	c.must(`mutation ($input: CreateSecretInput!) { createSecret(input: $input) { secret { id } } }`, with(map[string]any{"name": "cloud", "spec": map[string]any{}}))
	return revisionIn(c.t, c.must(`mutation ($input: CreateNetworkInput!) { createNetwork(input: $input) { network { metadata { revision } } } }`, with(map[string]any{
		"name": "net-a", "labels": []any{map[string]any{"key": "team", "value": "web"}}, "spec": spec(map[string]any{"mtu": 1500, "tags": []any{"web"}}),
	})))
}

func TestTranscriptsOfTheVerbs(t *testing.T) {
	files := map[string]bool{}
	for file, story := range verbs() {
		files[file] = true
		t.Run(file, func(t *testing.T) {
			name := strings.TrimSuffix(file, ".txt")
			story(tell(t, "verbs/"+file, "The verb "+name+", its request and its answer", stage{}))
		})
	}
	wantFiles(t, "verbs", files)
}
