package catalogue_test

import (
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
)

// shelf is a kind; change makes another catalogue of it.
func shelf(change func(k *descriptor.Kind)) []descriptor.Kind {
	k := descriptor.Kind{
		Name: "Shelf", Scope: descriptor.Namespaced,
		Spec: &descriptor.Shape{Name: "ShelfSpec", Fields: []descriptor.Field{
			{Name: "width", Type: descriptor.TypeInt, Required: true}, {Name: "label", Type: descriptor.TypeString},
			{Name: "colour", Type: descriptor.TypeEnum, Enum: &descriptor.Enum{Name: "Colour", Values: []descriptor.EnumValue{{Name: "RED", Stored: "red"}, {Name: "BLUE", Stored: "blue"}}}},
			{Name: "owner", Type: descriptor.TypeObject, Shape: &descriptor.Shape{Name: "Owner", Fields: []descriptor.Field{{Name: "name", Type: descriptor.TypeString}}}},
		}},
		References: []descriptor.Reference{{Path: "spec.label", Kind: "Label", Guarded: true}},
	}
	if change != nil {
		change(&k)
	}
	return []descriptor.Kind{k}
}

func field(k *descriptor.Kind, name string) *descriptor.Field { return k.Spec.Field(name) }

// changes are those that a catalogue may undergo, and what is said of them.
func changes() map[string]struct {
	change func(k *descriptor.Kind)
	want   []string
} {
	return map[string]struct {
		change func(k *descriptor.Kind)
		want   []string
	}{
		"nothing": {nil, nil},
		"a new field": {func(k *descriptor.Kind) {
			k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "depth", Type: descriptor.TypeInt})
		}, []string{"Shelf.spec.depth is new"}},
		"a new required field": {func(k *descriptor.Kind) {
			k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "depth", Type: descriptor.TypeInt, Required: true})
		}, []string{"Shelf.spec.depth is new and required: what is stored does not have it and cannot be read (breaking)"}},
		"a new object with a required field": {func(k *descriptor.Kind) {
			k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: "box", Type: descriptor.TypeObject, Shape: &descriptor.Shape{Name: "Box", Fields: []descriptor.Field{{Name: "size", Type: descriptor.TypeInt, Required: true}}}})
		}, []string{"Shelf.spec.box is new"}},
		"a field removed":          {func(k *descriptor.Kind) { k.Spec.Fields = k.Spec.Fields[:3] }, []string{"Shelf.spec.owner is gone: what is stored of it is not shown any more (breaking)"}},
		"another type":             {func(k *descriptor.Kind) { field(k, "width").Type = descriptor.TypeString }, []string{"Shelf.spec.width was Int and is String: resources that have it cannot be read (breaking)"}},
		"a list of what was one":   {func(k *descriptor.Kind) { field(k, "label").List = true }, []string{"Shelf.spec.label was String and is a list of String: resources that have it cannot be read (breaking)"}},
		"a field newly required":   {func(k *descriptor.Kind) { field(k, "label").Required = true }, []string{"Shelf.spec.label is required now: resources without it cannot be read (breaking)"}},
		"a field required no more": {func(k *descriptor.Kind) { field(k, "width").Required = false }, []string{"Shelf.spec.width is not required any more: it can be null in answers (breaks clients)"}},
		"an enum value removed":    {func(k *descriptor.Kind) { field(k, "colour").Enum.Values = field(k, "colour").Enum.Values[:1] }, []string{`Shelf.spec.colour has no value "blue" any more: resources that have it cannot be written with it (breaking)`}},
		"an enum value added": {func(k *descriptor.Kind) {
			e := field(k, "colour").Enum
			e.Values = append(e.Values, descriptor.EnumValue{Name: "GREEN", Stored: "green"})
		}, []string{`Shelf.spec.colour has the new value "green" (dangerous)`}},
		"another scope": {func(k *descriptor.Kind) { k.Scope = descriptor.Global }, []string{"kind Shelf was NAMESPACED and is GLOBAL: keys of its resources mean others (breaking)"}},
		"a status": {func(k *descriptor.Kind) {
			k.Status = &descriptor.Shape{Name: "S", Fields: []descriptor.Field{{Name: "load", Type: descriptor.TypeFloat}}}
		}, []string{"Shelf.status is new"}},
		"another kind":           {func(k *descriptor.Kind) { k.Name = "Rack" }, []string{"kind Rack is new", "kind Shelf is gone: its resources are kept and not served (breaking)"}},
		"a guard dropped":        {func(k *descriptor.Kind) { k.References[0].Guarded = false }, []string{"Shelf.spec.label is not guarded any more: what it refers to can be deleted while it is relied on (breaking)"}},
		"a reference dropped":    {func(k *descriptor.Kind) { k.References = nil }, []string{"Shelf.spec.label does not refer to kind Label any more: nothing waits for what it names, or keeps it from being deleted (breaking)"}},
		"a reference to another": {func(k *descriptor.Kind) { k.References[0].Kind = "Sign" }, []string{"Shelf.spec.label does not refer to kind Label any more: nothing waits for what it names, or keeps it from being deleted (breaking)"}},
		"a reference and a guard added": {func(k *descriptor.Kind) {
			k.References = append(k.References, descriptor.Reference{Path: "spec.owner.name", Kind: "Person", Guarded: true})
		}, []string{"Shelf.spec.owner.name refers to kind Person now (dangerous)"}},
		"given to a service": {func(k *descriptor.Kind) { k.Service = "crm" }, []string{`kind Shelf is owned by service "crm" now, and was stored by the gateway itself (dangerous)`}},
		"another default":    {func(k *descriptor.Kind) { field(k, "label").Default = "x" }, nil},
	}
}

func TestAccept_WhatIsDifferentIsTold(t *testing.T) {
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, d := range catalogue.Diff(catalogue.OutlineOf(shelf(nil)), catalogue.OutlineOf(shelf(c.change))) {
				got = append(got, d.String())
			}
			if diff := cmp.Diff(c.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAccept_WhatWasWriteOnlyStaysSo(t *testing.T) {
	writeOnly := shelf(func(k *descriptor.Kind) { field(k, "label").WriteOnly = true })
	for _, c := range []struct {
		from, to []descriptor.Kind
		want     []string
	}{
		{writeOnly, shelf(nil), []string{"Shelf.spec.label was @writeOnly and is not: what is stored would be shown (breaking)"}},
		{shelf(nil), writeOnly, []string{"Shelf.spec.label is @writeOnly now: it is not shown any more (breaks clients)"}},
		{writeOnly, writeOnly, nil},
	} {
		var got []string
		for _, d := range catalogue.Diff(catalogue.OutlineOf(c.from), catalogue.OutlineOf(c.to)) {
			got = append(got, d.String())
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Error(diff)
		}
	}
	f := setup(t)
	if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: writeOnly}); err != nil {
		t.Fatal(err)
	}
	var refused *catalogue.RefusedError
	if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: shelf(nil)}); !errors.As(err, &refused) || refused.Final {
		t.Errorf("a catalogue that shows the field: %v", err)
	}
	if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: shelf(nil), AllowBreaking: true}); err != nil {
		t.Errorf("and with the flag: %v", err)
	}
}

// fixture is a store and what its gate logs.
type fixture struct {
	*testing.T
	store *memory.Store
	gate  catalogue.Gate
	// places of what is offered to the gate.
	places catalogue.Places
	log    *observer.ObservedLogs
}

func setup(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	core, log := observer.New(zap.InfoLevel)
	return &fixture{T: t, store: store, gate: catalogue.Gate{Store: store, Logger: zap.New(core)}, log: log}
}

// put stores a shelf.
func (f *fixture) put(name, text string) {
	f.Helper()
	if _, err := f.store.Apply(f.Context(), backend.Batch{RequestID: name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
		Key: backend.Key{Kind: "Shelf", Namespace: "default", Name: name}, Op: backend.OpPut, Put: backend.Put{UID: name, Body: backend.EncodeBody([]byte(text))},
	}}}); err != nil {
		f.Fatal(err)
	}
}

func (f *fixture) accept(kinds []descriptor.Kind, allow bool) *catalogue.RefusedError {
	f.Helper()
	err := f.gate.Accept(f.Context(), catalogue.Candidate{Kinds: kinds, AllowBreaking: allow, Places: f.places})
	var refused *catalogue.RefusedError
	if err != nil && !errors.As(err, &refused) {
		f.Fatal(err)
	}
	return refused
}

func TestAccept_ABreakingCatalogueNeedsTheFlag(t *testing.T) {
	for name, c := range changes() {
		t.Run(name, func(t *testing.T) {
			f := setup(t)
			if err := f.accept(shelf(nil), false); err != nil {
				t.Fatalf("the first catalogue of an empty store: %v", err)
			}
			breaking := strings.Contains(strings.Join(c.want, "\n"), "(breaking)")
			refused := f.accept(shelf(c.change), false)
			if (refused != nil) != breaking {
				t.Fatalf("refused: %v, breaking: %v", refused, breaking)
			}
			if refused == nil {
				return
			}
			if !strings.Contains(refused.Error(), strings.TrimSuffix(c.want[len(c.want)-1], " (breaking)")) || !strings.Contains(refused.Error(), "--allow-breaking") {
				t.Errorf("it says %q", refused)
			}
			if err := f.accept(shelf(c.change), true); err != nil {
				t.Errorf("with the flag: %v", err)
			}
			// What was accepted once needs no flag again, the one before it neither.
			for _, kinds := range [][]descriptor.Kind{shelf(c.change), shelf(nil)} {
				if err := f.accept(kinds, false); err != nil {
					t.Errorf("again: %v", err)
				}
			}
		})
	}
}

func TestAccept_ACatalogueThatWentBackIsTheNewest(t *testing.T) {
	f := setup(t)
	with := func(names ...string) []descriptor.Kind {
		return shelf(func(k *descriptor.Kind) {
			for _, name := range names {
				k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: name, Type: descriptor.TypeInt})
			}
		})
	}
	for _, kinds := range [][]descriptor.Kind{with(), with("depth"), with(), with()} {
		if err := f.accept(kinds, false); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.accept(with("height"), false); err != nil {
		t.Errorf("it breaks nothing in the one that went back: %v", err)
	}
	if err := f.accept(with("height"), false); err != nil {
		t.Errorf("again: %v", err)
	}
	// The one in between is in the record still, and can be gone back to as well.
	if err := f.accept(with("depth"), false); err != nil {
		t.Errorf("the one in between: %v", err)
	}
	if err := f.accept(with("width2"), false); err == nil || !strings.Contains(err.Error(), "Shelf.spec.depth is gone") {
		t.Errorf("error %v", err)
	}
	page, err := f.store.Range(t.Context(), backend.Range{Kind: "_catalogue", Limit: 200})
	if err != nil || len(page.Resources) != 4 { // the list and three outlines
		t.Errorf("%d records, %v", len(page.Resources), err)
	}
}

func TestAccept_AScopeCannotChangeUnderResources(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1}}`)
	global := shelf(func(k *descriptor.Kind) { k.Scope = descriptor.Global })
	if err := f.accept(global, true); err == nil || !err.Final || !strings.Contains(err.Error(), "kind Shelf has NAMESPACED resources (resources of the kind: 1)") {
		t.Errorf("error %v", err)
	}
}

func TestAccept_AScopeThatWasAcceptedOnceIsRefusedOnceThereAreResources(t *testing.T) {
	f := setup(t)
	global := shelf(func(k *descriptor.Kind) { k.Scope = descriptor.Global })
	for _, kinds := range [][]descriptor.Kind{shelf(nil), global, shelf(nil)} {
		if err := f.accept(kinds, true); err != nil {
			t.Fatal(err)
		}
	}
	f.put("a", `{"spec":{"width":1}}`)
	if err := f.accept(global, true); err == nil || !err.Final {
		t.Errorf("error %v", err)
	}
	if err := f.accept(shelf(nil), false); err != nil {
		t.Errorf("the catalogue that made it: %v", err)
	}
}

func TestAccept_AStoreWithoutARecordAcceptsWhatReadsAllThatItHas(t *testing.T) {
	f := setup(t)
	for i := range 1200 { // more than one page
		f.put(fmt.Sprintf("s%04d", i), `{"spec":{"width":1}}`)
	}
	f.put("z", `{"spec":{}}`)
	err := f.accept(shelf(nil), false)
	if err == nil || !strings.Contains(err.Error(), `Shelf default/z cannot be read`) && !strings.Contains(err.Error(), "z cannot be read") {
		t.Fatalf("error %v", err)
	}
	if err := f.accept(shelf(func(k *descriptor.Kind) { field(k, "width").Required = false }), false); err != nil {
		t.Errorf("a catalogue that reads everything: %v", err)
	}
}

func TestAccept_ResourcesOfUnknownKindsAreKeptAndCounted(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1}}`)
	other := shelf(func(k *descriptor.Kind) { k.Name = "Rack" })
	both := append(shelf(nil), other...)
	_ = f.accept(both, false)
	for range 2 {
		if err := f.accept(other, true); err != nil {
			t.Fatal(err)
		}
	}
	if n := f.log.FilterMessageSnippet("are kept and not served").Len(); n != 1 {
		t.Errorf("logged %d times: %v", n, f.log.All())
	}
	if got, err := f.store.Get(t.Context(), backend.Key{Kind: "Shelf", Namespace: "default", Name: "a"}); err != nil || got[0] == nil {
		t.Errorf("%v %v", got, err)
	}
}

func TestAccept_AStoreRemembersTheLastHundredCatalogues(t *testing.T) {
	f := setup(t)
	with := func(n int) []descriptor.Kind {
		return shelf(func(k *descriptor.Kind) {
			k.Spec.Fields = append(k.Spec.Fields, descriptor.Field{Name: fmt.Sprint("f", n), Type: descriptor.TypeInt})
		})
	}
	for n := range 103 {
		if err := f.accept(with(n), true); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.accept(with(5), false); err != nil {
		t.Errorf("one of the last hundred: %v", err)
	}
	if err := f.accept(with(1), false); err == nil {
		t.Error("an older one is still accepted")
	}
	page, err := f.store.Range(t.Context(), backend.Range{Kind: "_catalogue", Limit: 200})
	if err != nil || len(page.Resources) != 101 {
		t.Errorf("%d records, %v", len(page.Resources), err)
	}
}

func TestAccept_GatewaysThatStartTogetherAreAllAccepted(t *testing.T) {
	f := setup(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if err := f.gate.Accept(t.Context(), catalogue.Candidate{Kinds: shelf(nil)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
