package e2e_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestAllPublishedManifestsThatCanBecomeReadyDo applies them backwards, first without the
// Secrets that they name, with the controller and the cloud running.
func TestAllPublishedManifestsThatCanBecomeReadyDo(t *testing.T) {
	t.Parallel()
	docs := kindstest.Manifests(t, "samples", "examples/cirros", "examples/local-config")
	h := startControlled(t, "--work", "5ms", "--latency", "1ms")
	namespace := "published"
	slices.Reverse(docs)
	for _, doc := range docs {
		doc = strings.ReplaceAll(doc, "\n  namespace: default\n", "\n")
		if _, err := h.client.Apply(t.Context(), client.ApplyRequest{Manifest: doc, Namespace: namespace}); err != nil {
			t.Fatalf("%v\n%s", err, doc)
		}
	}
	var all world
	h.until("all wait for what is not there", func() error {
		all = h.world(namespace)
		return all.asItShould()
	})
	clouds := fmt.Sprintf("stringData: {password: x, clouds.yaml: %q}", "clouds: {openstack: &o {auth: {token: "+cloudToken+"}}, openstack-admin: *o}")
	for _, name := range all.missingSecrets() {
		doc := fmt.Sprintf("apiVersion: v1\nkind: Secret\nmetadata: {name: %s}\n%s\n", name, clouds)
		if _, err := h.client.Apply(t.Context(), client.ApplyRequest{Manifest: doc, Namespace: namespace}); err != nil {
			t.Fatal(err)
		}
	}
	h.until("all that can become ready are", func() error {
		all = h.world(namespace)
		return all.asItShould()
	})
	ready := 0
	for _, r := range all {
		if all.canBeReady(r) {
			ready++
		}
	}
	if ready < len(all)/2 {
		t.Errorf("%d of %d resources are ready", ready, len(all))
	}
	t.Logf("%d of %d resources are ready", ready, len(all))
}

// inhabitant is a resource with what it refers to.
type inhabitant struct {
	*client.Resource
	uses []client.TreeNode
}

// world are the resources of a namespace, by kind and name.
type world map[string]*inhabitant

func (h *controlled) world(namespace string) world {
	h.Helper()
	out := world{}
	for _, k := range h.kinds {
		for r, err := range h.client.List(h.Context(), client.ListRequest{Kind: k, Namespace: namespace}) {
			if err != nil {
				h.Fatal(err)
			}
			near, err := h.client.Tree(h.Context(), client.TreeRequest{ID: r.ID, Depth: 1})
			if err != nil {
				h.Fatal(err)
			}
			out[r.Kind+"/"+r.Metadata.Name] = &inhabitant{r, near.Dependencies}
		}
	}
	return out
}

// canBeReady reports whether all that a resource refers to can be, and it is made by the
// controller: nobody makes what others are to import.
func (w world) canBeReady(r *inhabitant) bool {
	if r == nil || strings.Contains(string(r.Spec), `"unmanaged"`) {
		return false
	}
	return !slices.ContainsFunc(r.uses, func(n client.TreeNode) bool { return !w.canBeReady(w[n.Kind+"/"+n.Name]) })
}

// asItShould says what is not as it has to be once nothing happens any more.
func (w world) asItShould() error {
	for name, r := range w {
		if r.Kind == "Secret" {
			continue
		}
		a, waits := r.Condition("Available"), r.waits()
		switch {
		case w.canBeReady(r) && a.Status != "True":
			return fmt.Errorf("%s: %+v", name, a)
		case !w.canBeReady(r) && (a.Status != "False" || a.Message != waits):
			return fmt.Errorf("%s, which waits for %q: %+v", name, waits, a)
		}
	}
	return nil
}

// waits is what a resource has to say that cannot be ready.
func (r *inhabitant) waits() string {
	var lines []string
	for _, n := range r.uses {
		line := fmt.Sprintf("Waiting for %s/%s to be %s", n.Kind, n.Name, map[string]string{"MISSING": "created", "NOT_READY": "ready"}[n.State])
		if n.State != "BOUND" && !slices.Contains(lines, line) {
			lines = append(lines, line)
		}
	}
	switch byID := strings.Contains(string(r.Spec), `"import":{"id":`); {
	case len(lines) == 0 && byID:
		return "referenced resource does not exist in OpenStack"
	case len(lines) == 0:
		return "Waiting for OpenStack resource to be created externally"
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// missingSecrets are the Secrets that are named and not there.
func (w world) missingSecrets() (out []string) {
	for _, r := range w {
		for _, n := range r.uses {
			if n.Kind == "Secret" && n.State == "MISSING" && !slices.Contains(out, n.Name) {
				out = append(out, n.Name)
			}
		}
	}
	return out
}
