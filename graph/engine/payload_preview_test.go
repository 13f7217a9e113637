package engine_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A dry run shows what would be stored as a preview, and never as a resource, which a
// client's cache would take for the stored one by its id.
func TestADryRunAnswersAPreviewAndNoResource(t *testing.T) {
	g := networked(t)
	const fields = `dryRun network { id } preview { kind namespace name uid generation spec: specJSON statusJSON manifest }`
	in := func(mtu int) string {
		return fmt.Sprintf(`spec: {cloudCredentialsRef: {cloudName: "c", secretName: "s"}, resource: {mtu: %d}}`, mtu)
	}
	// shown is the payload of a mutation, without the manifest and the status, which are
	// text that has to have hints in it.
	shown := func(write string, hints ...string) map[string]any {
		t.Helper()
		got := g.do(`mutation { write: `+write+` }`, nil)
		var out struct{ Write map[string]any }
		if err := json.Unmarshal(got.Data, &out); err != nil || len(got.Errors) > 0 {
			t.Fatalf("%s: %v %v", write, err, got.Errors)
		}
		preview, _ := out.Write["preview"].(map[string]any)
		for _, hint := range hints {
			if text := fmt.Sprint(preview["statusJSON"], preview["manifest"]); !strings.Contains(text, hint) {
				t.Errorf("%s: no %q in %s", write, hint, text)
			}
		}
		delete(preview, "statusJSON")
		delete(preview, "manifest")
		return out.Write
	}
	preview := func(uid any, generation, mtu int) map[string]any {
		return map[string]any{"dryRun": true, "network": nil, "preview": map[string]any{
			"kind": "Network", "namespace": "default", "name": "n", "uid": uid, "generation": float64(generation),
			"spec": map[string]any{"cloudCredentialsRef": map[string]any{"cloudName": "c", "secretName": "s"}, "resource": map[string]any{"mtu": float64(mtu)}},
		}}
	}
	wants := func(want, got map[string]any) {
		t.Helper()
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
	wants(preview(nil, 1, 1500), shown(`createNetwork(input: {name: "n", dryRun: true, `+in(1500)+`}) { `+fields+` }`, "The resource is available", "mtu: 1500"))
	g.wants(`{ network(name: "n") { id } }`, `{"network":null}`)
	wants(map[string]any{"dryRun": false, "network": map[string]any{"id": "AQJOZXR3b3JrAAJkZWZhdWx0AAJuAA"}, "preview": nil}, shown(`createNetwork(input: {name: "n", `+in(1500)+`}) { `+fields+` }`))
	var stored struct {
		Network struct {
			Metadata struct{ UID, Revision string }
		}
	}
	if err := json.Unmarshal(g.do(`{ network(name: "n") { metadata { uid revision } } }`, nil).Data, &stored); err != nil {
		t.Fatal(err)
	}
	uid, revision := stored.Network.Metadata.UID, stored.Network.Metadata.Revision
	for _, write := range []string{
		`updateNetwork(input: {name: "n", expectedRevision: "` + revision + `", dryRun: true, ` + in(1400) + `})`,
		`patchNetwork(input: {name: "n", expectedRevision: "` + revision + `", dryRun: true, spec: {resource: {mtu: 1400}}})`,
		`upsertNetwork(input: {name: "n", dryRun: true, ` + in(1400) + `})`,
	} {
		wants(preview(uid, 2, 1400), shown(write+` { `+fields+` }`, "mtu: 1400"))
	}
	wants(preview(uid, 1, 1500), shown(`updateNetworkStatus(input: {name: "n", expectedRevision: "`+revision+`", dryRun: true, status: {cloudId: "seen"}}) { `+fields+` }`, "seen"))
	wants(preview(uid, 1, 1500), shown(`deleteNetwork(input: {name: "n", dryRun: true}) { `+fields+` }`))
	manifest := strings.NewReplacer("\n", `\n`, `"`, `\"`).Replace("apiVersion: openstack.k-orc.cloud/v1alpha1\nkind: Network\nmetadata: {name: n}\nspec: {cloudCredentialsRef: {cloudName: c, secretName: s}, resource: {mtu: 1300}}\n")
	wants(preview(uid, 2, 1300), shown(`applyManifest(input: {manifest: "`+manifest+`", dryRun: true}) { `+strings.Replace(fields, "network", "network: resource", 1)+` }`, "mtu: 1300"))
	g.wants(`{ network(name: "n") { metadata { revision } } }`, `{"network":{"metadata":{"revision":"`+revision+`"}}}`)
}
