package hub_test

import (
	"testing"
	"testing/synctest"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
)

func TestWatcher_AWatchCoversSomethingElseFromOneDeliveryOn(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		named := func(name string) func(backend.Key) bool { return func(k backend.Key) bool { return k.Name == name } }
		w := f.live(hub.Watch{Covers: named("a")})
		defer w.Close()
		f.write(0, "a", "b")
		f.write(1, "a", "b")
		synctest.Wait()
		var at backend.Position
		d, ok, err := w.Cover(named("b"), func() { at = f.Position() })
		if err != nil || !ok || len(d.Events) != 2 || at.IsZero() {
			t.Fatalf("%+v %v %v, the hub is at %v", d, ok, err, at)
		}
		f.write(0, "a", "b")
		names, _ := f.all(w, 1)
		f.want(names, "b")
		w.Close()
		if _, ok, err := w.Cover(named("a"), func() { t.Error("called") }); ok || err == nil {
			t.Errorf("a watch that has ended: %v %v", ok, err)
		}
	})
}

func TestWatcher_AWatchThatReadsTheLogCoversWhatItDid(t *testing.T) {
	inBubble(t, hub.Config{}, func(f *fixture) {
		start, err := f.store.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		f.write(0, "a", "b")
		w := f.watch(hub.Watch{From: start})
		defer w.Close()
		if _, ok, err := w.Cover(func(backend.Key) bool { return false }, func() { t.Error("called") }); ok || err != nil {
			t.Errorf("%v %v", ok, err)
		}
		names, _ := f.all(w, 2)
		f.want(names, "a b")
	})
}
