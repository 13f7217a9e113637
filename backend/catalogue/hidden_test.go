package catalogue_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// labelled stores a shelf that holds a label, which is stored too.
func (f *fixture) labelled(name, label string) {
	f.Helper()
	to := backend.Key{Kind: "Label", Namespace: "default", Name: label}
	for _, action := range []backend.Action{
		{Key: to, Op: backend.OpPut, Put: backend.Put{UID: "l" + label, Body: backend.EncodeBody([]byte(`{"spec":{}}`))}},
		{Key: backend.Key{Kind: "Shelf", Namespace: "default", Name: name}, Op: backend.OpPut, Put: backend.Put{
			UID: name, Body: backend.EncodeBody([]byte(`{"spec":{"width":1,"label":"` + label + `"}}`)), Declared: "d", Refs: []backend.Ref{{Key: to, Bound: true}},
		}},
	} {
		if _, err := f.store.Apply(f.Context(), backend.Batch{RequestID: name + label + action.Key.Kind, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{action}}); err != nil {
			f.Fatal(err)
		}
	}
}

func other() []descriptor.Kind { return shelf(func(k *descriptor.Kind) { k.Name = "Rack" }) }

func ownerless() []descriptor.Kind {
	return shelf(func(k *descriptor.Kind) { k.Spec.Fields = k.Spec.Fields[:3] })
}

func TestAccept_CountsWhatHasTheFieldThatIsGone(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1,"owner":{"name":"x"}}}`)
	f.put("b", `{"spec":{"width":1}}`)
	f.put("c", `{"spec":{"width":1}}`)
	err := f.accept(ownerless(), false)
	const want = "Shelf.spec.owner is gone: what is stored of it is not shown any more (breaking); resources that have it: 1"
	if err == nil || err.Reasons[0] != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestAccept_SaysWhatTheResourcesOfAKindThatIsGoneHold(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	for name, label := range map[string]string{"a": "l1", "b": "l2", "c": "l3", "d": "l4", "e": "l5"} {
		f.labelled(name, label)
	}
	f.put("f", `{"spec":{"width":1}}`)
	err := f.accept(other(), false)
	want := "kind Shelf is gone: its resources are kept and not served (breaking); resources of the kind: 6; they keep Label/default/l1, Label/default/l2, Label/default/l3 and 2 more from being deleted"
	if err == nil || err.Reasons[0] != want {
		t.Errorf("%v\nwant %s", err, want)
	}
}

func TestAccept_ARecordedCatalogueThatHidesResourcesNeedsTheFlagUnlessAGatewayStarts(t *testing.T) {
	f := setup(t)
	for _, kinds := range [][]descriptor.Kind{other(), append(other(), shelf(nil)...)} {
		if err := f.accept(kinds, false); err != nil {
			t.Fatal(err)
		}
	}
	f.labelled("a", "l")
	const says = "kind Shelf is gone: its resources are kept and not served (breaking); resources of the kind: 1; they keep Label/default/l from being deleted"
	if err := f.accept(other(), false); err == nil || err.Final || err.Reasons[0] != says {
		t.Errorf("an apply: %v", err)
	}
	if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: other(), Start: true}); err != nil {
		t.Errorf("a start: %v", err)
	}
	if logged := f.log.FilterMessageSnippet("hides what has been stored since").All(); len(logged) != 1 || logged[0].ContextMap()["change"] != says {
		t.Errorf("logged %v", logged)
	}
	if err := f.accept(append(other(), shelf(nil)...), false); err != nil {
		t.Errorf("back to the one that hides nothing: %v", err)
	}
	if err := f.accept(other(), true); err != nil {
		t.Errorf("with the flag: %v", err)
	}
}

func TestDiff_HintsAtTheNameThatAFieldHasNow(t *testing.T) {
	renamed := shelf(func(k *descriptor.Kind) { field(k, "label").Name = "title"; k.References = nil })
	plain := shelf(func(k *descriptor.Kind) { k.References = nil })
	var got []string
	for _, d := range catalogue.Diff(catalogue.OutlineOf(plain), catalogue.OutlineOf(renamed)) {
		got = append(got, d.String())
	}
	want := []string{`Shelf.spec.label is gone: what is stored of it is not shown any more; if title is its new name, @stored(as: "label") there keeps the values (breaking)`, "Shelf.spec.title is new"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	two := shelf(func(k *descriptor.Kind) {
		k.References = nil
		field(k, "label").Name = "title"
		k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "text", Type: descriptor.TypeString})
	})
	for _, d := range catalogue.Diff(catalogue.OutlineOf(plain), catalogue.OutlineOf(two)) {
		if strings.Contains(d.What, "new name") {
			t.Errorf("with two candidates: %s", d)
		}
	}
}
