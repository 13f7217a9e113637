package reconcile_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
)

// rebinding is a gateway that guards the references of widgets, on a store whose newest catalogue may be another.
type rebinding struct {
	*testing.T
	store backend.Store
	r     *reconcile.Reconciler
	kind  *kind.Kind
}

var widgetKeys = struct{ target, referrer backend.Key }{
	backend.Key{Kind: "Widget", Namespace: "n", Name: "target"},
	backend.Key{Kind: "Widget", Namespace: "n", Name: "referrer"},
}

// accept makes a catalogue the newest of the store.
func (b *rebinding) accept(kinds []descriptor.Kind) {
	b.Helper()
	gate := catalogue.Gate{Store: b.store}
	if err := gate.Accept(b.Context(), catalogue.Candidate{Kinds: kinds, AllowBreaking: true}); err != nil {
		b.Fatal(err)
	}
}

// writeElsewhere stores a widget that refers to another, as a gateway does that does not guard the reference.
func (b *rebinding) writeElsewhere() {
	b.Helper()
	elsewhere, err := kind.Compile(widgets(false))
	if err != nil {
		b.Fatal(err)
	}
	referrer := backend.Put{
		UID:      "referrer",
		Body:     []byte(`j{"spec":{"of":"target"}}`),
		Declared: elsewhere.All()[0].Declared,
		Refs:     []backend.Ref{{Key: widgetKeys.target}},
	}
	for _, a := range []backend.Action{
		{Key: widgetKeys.target, Op: backend.OpPut, Put: backend.Put{UID: "target", Body: []byte(`j{"spec":{}}`)}},
		{Key: widgetKeys.referrer, Op: backend.OpPut, Put: referrer},
	} {
		batch := backend.Batch{
			RequestID: "elsewhere-" + a.Key.Name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{a},
		}
		if _, err := b.store.Apply(b.Context(), batch); err != nil {
			b.Fatal(err)
		}
	}
}

// isBound reports whether the store guards the reference of the widget.
func (b *rebinding) isBound() bool {
	b.Helper()
	got, err := b.store.Get(b.Context(), widgetKeys.referrer)
	if err != nil {
		b.Fatal(err)
	}
	return len(got[0].Refs) == 1 && got[0].Refs[0].Bound
}

// isRebinding reports whether the gateway says that references are still to be taken.
func (b *rebinding) isRebinding() bool {
	b.Helper()
	yes, err := b.r.Rebinding(b.Context(), b.kind)
	if err != nil {
		b.Fatal(err)
	}
	return yes
}

// rebindingTest runs a test with a gateway in a bubble. The gateway runs once start is called.
func rebindingTest(t *testing.T, test func(b *rebinding, start func())) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		compiled, err := kind.Compile(widgets(true))
		if err != nil {
			t.Fatal(err)
		}
		b := &rebinding{T: t, store: store, r: gateway(t, store, widgets(true)), kind: compiled.All()[0]}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error, 1)
		ran := false
		test(b, func() {
			ran = true
			go func() { done <- b.r.Run(ctx) }()
		})
		cancel()
		if ran {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// TestRebinding_EndsWithTheScan: nothing waits longer than until no rebind of an earlier catalogue can be applied any
// more (a second), and the references were taken.
func TestRebinding_EndsWithTheScan(t *testing.T) {
	rebindingTest(t, func(b *rebinding, start func()) {
		b.accept(widgets(false))
		b.writeElsewhere()
		b.accept(widgets(true))
		began := time.Now()
		start()
		for b.isRebinding() {
			time.Sleep(time.Millisecond) // of the bubble
		}
		if took := time.Since(began); took > 1200*time.Millisecond {
			b.Errorf("it took %v", took)
		}
		if !b.isBound() {
			b.Error("the reference is not guarded")
		}
	})
}

// TestRebinding_ByAGatewayThatSawNoOtherCatalogue: another catalogue was the newest between two looks of a gateway at
// the shard, and a gateway that has it has written a widget.
func TestRebinding_ByAGatewayThatSawNoOtherCatalogue(t *testing.T) {
	for offset := range 25 {
		rebindingTest(t, func(b *rebinding, start func()) {
			b.accept(widgets(false))
			b.accept(widgets(true))
			start()
			time.Sleep(5*time.Second + time.Duration(offset)*50*time.Millisecond) // of the bubble, as all that follow
			if b.isRebinding() {
				b.Fatal("the references have not been taken")
			}
			b.accept(widgets(false))
			b.writeElsewhere()
			synctest.Wait() // the gateway has seen the change
			b.accept(widgets(true))
			for range 1000 {
				if !b.isRebinding() {
					break
				}
				time.Sleep(10 * time.Millisecond)
			}
			if !b.isBound() {
				b.Errorf("after %d looks the reference is not guarded, and nothing waits for it", offset)
			}
		})
	}
}
