package service_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestApply_PublishedManifestsEndInTheSameStateInWhateverOrder applies them in many orders,
// first without the Secrets that they name, then with them.
func TestApply_PublishedManifestsEndInTheSameStateInWhateverOrder(t *testing.T) {
	root := kindstest.Published(t)
	sets := map[string][]string{"samples": kindstest.Manifests(t, "samples"), "cirros and local-config": kindstest.Manifests(t, "examples/cirros", "examples/local-config")}
	examples, err := os.ReadDir(filepath.Join(root, "examples"))
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range examples {
		if files, _ := filepath.Glob(filepath.Join(root, "examples", e.Name(), "*.yaml")); e.Name() != "cirros" && len(files) > 0 {
			sets[e.Name()] = kindstest.Manifests(t, "examples/"+e.Name())
		}
	}
	random := 10
	if testing.Short() {
		random = 0
	}
	onEach(t, kindstest.Kinds(t), func(t *testing.T, h *house) {
		h.Start()
		for _, name := range slices.Sorted(maps.Keys(sets)) {
			without, with := "", ""
			for order := range 2 + random {
				docs := slices.Clone(sets[name])
				switch order {
				case 0:
				case 1:
					slices.Reverse(docs)
				default:
					rnd := rand.New(rand.NewPCG(7, uint64(order)))
					rnd.Shuffle(len(docs), func(i, j int) { docs[i], docs[j] = docs[j], docs[i] })
				}
				namespace := fmt.Sprintf("%s-%d", strings.ReplaceAll(name, " ", "-"), order)
				h.applyAll(namespace, docs)
				state := h.settled(namespace)
				if order == 0 {
					without = state
				}
				if state != without {
					t.Fatalf("%s in order %d without secrets:\n%s\nin the first order:\n%s", name, order, state, without)
				}
				h.applyAll(namespace, h.secrets(namespace))
				state = h.settled(namespace)
				if order == 0 {
					with = state
				}
				if state != with || state == without {
					t.Fatalf("%s in order %d with secrets:\n%s\nin the first order:\n%s", name, order, state, with)
				}
			}
		}
	})
}

func (h *house) applyAll(namespace string, docs []string) {
	h.T.Helper()
	for _, doc := range docs {
		doc = strings.ReplaceAll(doc, "\n  namespace: default\n", "\n")
		if _, err := h.Writer.Apply(h.T.Context(), service.ApplyRequest{Manifest: doc, Namespace: &namespace}); err != nil {
			h.T.Fatalf("%v\n%s", err, doc)
		}
	}
}

// settled is the state of a namespace once nothing changes any more: a line for each
// resource, with what its conditions say.
func (h *house) settled(namespace string) string {
	h.T.Helper()
	last := ""
	defer func() {
		if h.T.Failed() {
			h.T.Log(last)
		}
	}()
	h.Until(namespace+" settles", func() bool { last = h.unsettled(namespace); return last == "" })
	var lines []string
	for key := range h.all(namespace) {
		if key.Kind != "Secret" {
			lines = append(lines, key.Kind+"/"+key.Name+": "+h.SaysOf(key))
		}
	}
	slices.Sort(lines)
	return strings.Join(lines, "\n")
}

// secrets are the Secrets that the resources of a namespace name.
func (h *house) secrets(namespace string) (out []string) {
	seen := map[string]bool{}
	for _, r := range h.all(namespace) {
		for _, ref := range r.Refs {
			if ref.Key.Kind == "Secret" && !seen[ref.Key.Name] {
				seen[ref.Key.Name] = true
				out = append(out, "apiVersion: v1\nkind: Secret\nmetadata:\n  name: "+ref.Key.Name+"\nstringData:\n  clouds.yaml: secret\n")
			}
		}
	}
	return out
}
