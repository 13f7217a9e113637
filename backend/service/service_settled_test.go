package service_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// unsettled says what is not as it has to be once nobody writes any more: the first
// thing found; "" for nothing.
func (h *house) unsettled(namespace string) string {
	h.T.Helper()
	all := h.all(namespace)
	relied := map[backend.Key]bool{}
	for key, r := range all {
		k, err := h.Compiled.Find(key.Kind)
		if err != nil {
			h.T.Fatal(err)
		}
		st, err := kind.StateOf(r)
		if err != nil {
			return err.Error()
		}
		bound := map[backend.Key]bool{}
		for _, ref := range r.Refs {
			bound[ref.Key] = ref.Bound
		}
		var lines []string
		for _, ref := range k.Rows.Refs(key.Namespace, st.Spec) {
			name := ref.Key.Kind + "/" + ref.Key.Name
			target, waits := all[ref.Key], slices.Contains(st.Meta.Waits, name)
			switch {
			case ref.Key == key && waits:
				return fmt.Sprintf("%s waits for itself", key)
			case bound[ref.Key] != (ref.Guarded && !waits):
				return fmt.Sprintf("%s: bound %v, waits %v for %s", key, bound[ref.Key], waits, ref.Key)
			case bound[ref.Key] && target == nil:
				return fmt.Sprintf("%s relies on %s, which is not there", key, ref.Key)
			case bound[ref.Key]:
				relied[ref.Key] = true
			}
			if !waits || r.Deleting { // what is being deleted is not judged any more
				continue
			}
			switch {
			case target == nil:
				lines = append(lines, "Waiting for "+name+" to be created")
			case target.Deleting:
				lines = append(lines, "Waiting for "+name+" to be deleted")
			case h.hasConditions(target) && h.SaysOf(target.Key) != "True":
				lines = append(lines, "Waiting for "+name+" to be ready")
			default:
				return fmt.Sprintf("%s waits for %s, which is ready", key, ref.Key)
			}
		}
		if !h.hasConditions(r) {
			continue
		}
		slices.SortFunc(lines, func(a, b string) int {
			return cmp.Or(cmp.Compare(a[:strings.Index(a, "/")], b[:strings.Index(b, "/")]), cmp.Compare(a, b))
		})
		want := "True"
		if len(lines) > 0 {
			want = strings.Join(lines, "\n")
		}
		if got := h.SaysOf(key); got != want && !r.Deleting {
			return fmt.Sprintf("%s says %q, want %q", key, got, want)
		}
	}
	for key, r := range all {
		if r.Deleting && !relied[key] {
			return fmt.Sprintf("%s is being deleted and nobody relies on it", key)
		}
	}
	return ""
}

// all are the resources of a namespace.
func (h *house) all(namespace string) map[backend.Key]*backend.Resource {
	h.T.Helper()
	out := map[backend.Key]*backend.Resource{}
	for _, k := range h.Compiled.All() {
		page, err := h.Store.Range(h.T.Context(), backend.Range{Kind: k.Name, Namespace: namespace, Limit: 1000})
		if err != nil {
			h.T.Fatal(err)
		}
		for _, r := range page.Resources {
			out[r.Key] = r
		}
	}
	return out
}

func (h *house) hasConditions(r *backend.Resource) bool {
	k, err := h.Compiled.Find(r.Kind)
	if err != nil {
		h.T.Fatal(err)
	}
	return k.Conditions != nil
}

// change does something at random, as a client does who does not know what others do.
func (h *house) change(rng *rand.Rand) error {
	of := []string{"Room", "Guest", "Door", "Door", "Key", "Key"}[rng.IntN(6)]
	name := fmt.Sprint(rng.IntN(4))
	ref := func() string { return fmt.Sprint(rng.IntN(5)) }
	spec := map[string]string{
		"Room": `{"title":"` + ref() + `"}`, "Guest": `{"title":"` + ref() + `"}`, "Door": `{"roomRef":"` + ref() + `"}`,
		"Key": `{"doorRefs":["` + ref() + `"],"guestRef":"` + ref() + `","keyRef":"` + ref() + `"}`,
	}[of]
	ctx, c, id := h.T.Context(), access.Caller{}, servicetest.InDefault(of, name)
	var err error
	switch rng.IntN(10) {
	case 0, 1, 2:
		_, err = h.Writer.Create(access.WithCaller(ctx, c), service.CreateRequest{Identity: id, Spec: json.RawMessage(spec)})
	case 3, 4:
		_, err = h.Writer.Upsert(access.WithCaller(ctx, c), service.UpsertRequest{Identity: id, Spec: json.RawMessage(spec)})
	case 5:
		var got []*backend.Resource
		if got, err = h.Store.Get(ctx, backend.Key{Kind: of, Namespace: "default", Name: name}); err == nil && got[0] != nil {
			_, err = h.Writer.Patch(access.WithCaller(ctx, c), service.PatchRequest{Identity: id, ExpectedRevision: got[0].Revision.String(), Patch: json.RawMessage(spec)})
		}
	case 6:
		labels := service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: []service.Label{{Key: "n", Value: ref()}}}}
		_, err = h.Writer.Upsert(access.WithCaller(ctx, c), service.UpsertRequest{Identity: id, Spec: json.RawMessage(spec), Metadata: labels})
	default:
		_, err = h.Writer.Delete(access.WithCaller(ctx, c), service.DeleteRequest{Identity: id})
	}
	switch servicetest.CodeOf(err) {
	case failure.CodeNotFound, failure.CodeAlreadyExists, failure.CodeConflict, failure.CodeBeingDeleted:
		return nil
	}
	return err
}

func TestService_WhateverClientsDoEverythingSettles(t *testing.T) {
	onEachStore(t, func(t *testing.T, h *house) {
		rounds, seed := 6, rand.Uint64()
		if testing.Short() {
			rounds = 2
		}
		t.Log("seed", seed)
		other := openHouse(t, h.Store)
		other.Start()
		for round := range rounds {
			stop := h.Start()
			var all sync.WaitGroup
			for client := range 4 {
				all.Go(func() {
					rng := rand.New(rand.NewPCG(seed, uint64(round*10+client)))
					for n := range 150 {
						of := h
						if n%2 == 0 {
							of = other
						}
						if err := of.change(rng); err != nil {
							t.Error(err)
							return
						}
						if client == 0 && n == 75 { // another gateway goes on in the middle
							stop()
						}
					}
				})
			}
			all.Wait()
			last := ""
			t.Cleanup(func() {
				if t.Failed() && last != "" {
					t.Logf("seed %d, round %d: %s", seed, round, last)
				}
			})
			other.Until("everything settles", func() bool { last = other.unsettled("default"); return last == "" })
		}
	})
}
