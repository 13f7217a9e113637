package service_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// TestUpdate_FinalizersAreRemovedWhateverHasBecomeOfTheSpec stores a spec that another catalogue
// does not accept, or that it cannot even read.
func TestUpdate_FinalizersAreRemovedWhateverHasBecomeOfTheSpec(t *testing.T) {
	x := 1.0
	room := func(change func(*descriptor.Shape)) []descriptor.Kind {
		k := servicetest.Building()[0]
		k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "size", Type: descriptor.TypeInt}, descriptor.Field{Name: "owner", Type: descriptor.TypeString})
		change(k.Spec)
		return []descriptor.Kind{k}
	}
	for name, change := range map[string]func(*descriptor.Shape){
		"a limit is lower": func(s *descriptor.Shape) { s.Fields[1].Constraint.Max = &x },
		"a rule is new":    func(s *descriptor.Shape) { s.Rules = []descriptor.Rule{{CEL: "self.size < 5", Message: "small"}} },
		"a rule wants a change": func(s *descriptor.Shape) {
			s.Rules = []descriptor.Rule{{CEL: "self.size < oldSelf.size", Message: "shrinks"}}
		},
		"a field is required":                  func(s *descriptor.Shape) { s.Fields[2].Required = true },
		"a field is of another type":           func(s *descriptor.Shape) { s.Fields[1].Type = descriptor.TypeBoolean },
		"a field is gone and another required": func(s *descriptor.Shape) { s.Fields[1].Name, s.Fields[1].Required = "width", true },
	} {
		for _, deleted := range []bool{false, true} {
			t.Run(name+map[bool]string{true: ", of what is being deleted"}[deleted], func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					store, err := memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { _ = store.Close() })
					before := openHouseOf(t, store, room(func(*descriptor.Shape) {}))
					before.Create("Room", "r", `{"title":"a","size":9}`)
					if err := before.patch("Room", "r", "", finalizers("example.org/a", "example.org/b")); err != nil {
						t.Fatal(err)
					}
					if deleted {
						before.Delete("Room", "r")
					}
					h := openHouseOf(t, store, room(change))
					h.Start()
					if err := h.patch("Room", "r", "", without("example.org/a")); err != nil {
						t.Fatal(err)
					}
					if now := h.Get("Room", "r"); now.Finalizers != 1 || !bytes.Contains(now.Body, []byte(`"spec":{"size":9,"title":"a"}`)) {
						t.Errorf("%d finalizers, %s", now.Finalizers, now.Body)
					}
					if err := h.patch("Room", "r", "", without("example.org/b")); err != nil {
						t.Fatal(err)
					}
					if deleted {
						h.Becomes("Room", "r", "none")
					} else if now := h.Get("Room", "r"); now.Finalizers != 0 {
						t.Errorf("%d finalizers", now.Finalizers)
					} else if err := h.patch("Room", "r", `{"title":"b","size":10}`, without("example.org/b")); servicetest.CodeOf(err) != failure.CodeValidationFailed {
						t.Errorf("a patch of the spec: %v", err)
					}
				})
			})
		}
	}
}

func TestUpdate_FinalizersAreRemovedIfSensitiveValuesAreDamaged(t *testing.T) {
	store := servicetest.OpenMemory(t)
	f, _ := sealed(t, store)
	revision := f.upsertSafe(fullSafe).Resource.Stored.Revision.String()
	patch := func(patch any, m service.MetadataPatch) error {
		w, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, MetadataPatch: m, Patch: patch})
		if err == nil {
			revision = w.Resource.Stored.Revision.String()
		}
		return err
	}
	if err := patch(nil, finalizers("example.org/x")); err != nil {
		t.Fatal(err)
	}
	damaged := f.Put(safeKey().Sensitive(), backend.Put{UID: f.get(safeKey()).UID, Body: backend.EncodeBody([]byte(`{"pin":`))})
	if err := patch(json.RawMessage(`{"owner":"eve"}`), without("example.org/x")); servicetest.CodeOf(err) != failure.CodeUnreadable {
		t.Errorf("a patch of the spec: %v", err)
	}
	if err := patch(nil, without("example.org/x")); err != nil || f.get(safeKey()).Finalizers != 0 {
		t.Errorf("a patch of the finalizers: %v", err)
	}
	if got := f.get(damaged.Key); !bytes.Equal(got.Body, damaged.Body) {
		t.Errorf("the sensitive values are %s", got.Body)
	}
}
