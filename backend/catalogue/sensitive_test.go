package catalogue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// sealed is a catalogue whose shelves keep their labels apart.
func sealed() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { field(k, "label").WriteOnly, k.Sensitive = true, true })
}

func TestWhatIsSensitiveCannotChangeUnderResources(t *testing.T) {
	for name, c := range map[string]struct {
		before, then []descriptor.Kind
		apart        bool
		says         string
	}{
		"it becomes sensitive": {hidden(), sealed(), false, "kinds/shelf.graphqls:1: kind Shelf has what is @writeOnly with its resources: it cannot become sensitive while they are stored (resources of the kind: 1)"},
		"it was":               {sealed(), hidden(), true, "kinds/shelf.graphqls:1: kind Shelf has what is @writeOnly apart from its resources: it has to stay sensitive while they are stored (resources of the kind: 1)"},
	} {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			f.places = places()
			for _, kinds := range [][]descriptor.Kind{c.before, c.then, c.before} { // without resources the flag is enough
				if err := f.accept(kinds, true); err != nil {
					t.Fatal(err)
				}
			}
			f.put("a", `{"spec":{"width":1}}`)
			if c.apart {
				key := backend.Key{Kind: "Shelf", Namespace: "default", Name: "a"}.Sensitive()
				if _, err := f.store.Apply(t.Context(), backend.Batch{RequestID: "apart", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
					Key: key, Op: backend.OpPut, Put: backend.Put{UID: "a", Body: backend.EncodeBody([]byte(`{"label":"x"}`))},
				}}}); err != nil {
					t.Fatal(err)
				}
			}
			if err := f.accept(c.then, true); err == nil || !err.Final || !strings.Contains(err.Error(), c.says) {
				t.Errorf("it says %v", err)
			}
			if err := f.accept(c.before, false); err != nil {
				t.Errorf("the catalogue that made it: %v", err)
			}
		})
	}
}

func TestASensitiveKindNeedsTheFlagToBecomeNone(t *testing.T) {
	f := setup(t)
	if err := f.accept(sealed(), false); err != nil {
		t.Fatal(err)
	}
	if err := f.accept(hidden(), false); err == nil || err.Final || !strings.Contains(err.Error(), "kind Shelf is not sensitive any more") {
		t.Errorf("it says %v", err)
	}
}
