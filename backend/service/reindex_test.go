package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

func TestReindex(t *testing.T) {
	t.Run("an index that is new to stored data serves once Run has rebuilt it, and the resources did not change", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := open(t)
			a := join(t, store, older)
			for i := range 700 {
				ns := fmt.Sprint("ns", i%2)
				id := kind.Identity{Kind: "Widget", Name: fmt.Sprintf("w%03d", i), Namespace: &ns}
				if _, err := a.Create(t.Context(), access.Caller{}, service.CreateRequest{Identity: id, Spec: json.RawMessage(fmt.Sprintf(`{"title":"t","weight":%d}`, 100+i))}); err != nil {
					t.Fatal(err)
				}
			}
			b := join(t, store, newer)
			b.want("weight", 142, "", "w042") // at once, by a scan
			before, _ := store.Range(t.Context(), backend.Range{Kind: "Widget", Limit: 700})
			time.Sleep(time.Hour) // of the bubble
			b.run()
			synctest.Wait()
			b.want("weight", 142, "spec.weight", "w042")
			after, _ := store.Range(t.Context(), backend.Range{Kind: "Widget", Limit: 700})
			for i, r := range after.Resources {
				old := before.Resources[i]
				if r.Revision != old.Revision || !r.UpdatedAt.Equal(old.UpdatedAt) || string(r.Body) != string(old.Body) || r.Fingerprint == old.Fingerprint {
					t.Fatalf("%s: %+v became %+v", r.Key, old.Envelope, r.Envelope)
				}
			}
			a.want("title", "t", "", namesOf(after.Resources)[:100]...) // the older gateway scans
		})
	})
	t.Run("a gateway without Run answers by scan what it did not write", func(t *testing.T) {
		store := open(t)
		a, b := join(t, store, older), join(t, store, newer)
		b.create("x", `{"title":"t","weight":100}`)
		b.want("weight", 100, "spec.weight", "x")
		a.create("y", `{"title":"t","weight":100}`)
		b.want("weight", 100, "", "x", "y")
	})
	t.Run("what an older gateway writes is repaired, and the older gateway never rebuilds", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := open(t)
			a := join(t, store, older)
			a.create("x", `{"title":"t","weight":100}`)
			stopA := a.run()
			synctest.Wait()
			b := join(t, store, newer)
			b.run()
			synctest.Wait()
			own := b.stored("x").Fingerprint
			for i := range 20 {
				a.create(fmt.Sprint("y", i), `{"title":"t","weight":100}`)
				if got := b.fingerprints(); got[own] != i+1 {
					t.Fatalf("fingerprints %v", got)
				}
				b.by("weight", 100)
				time.Sleep(3 * time.Second) // of the bubble
				synctest.Wait()
				if got := b.fingerprints(); got[own] != i+2 {
					t.Fatalf("fingerprints %v after the repair", got)
				}
				if _, by := b.by("weight", 100); by != "spec.weight" {
					t.Fatalf("found by index %q", by)
				}
			}
			time.Sleep(time.Hour) // of the bubble
			synctest.Wait()
			if got := a.fingerprints(); got[own] != 21 {
				t.Errorf("the older gateway rebuilt: %v", got)
			}
			stopA()
			// Started anew it is still the older one.
			join(t, store, older).run()
			time.Sleep(time.Hour) // of the bubble
			synctest.Wait()
			if got := a.fingerprints(); got[own] != 21 {
				t.Errorf("the older gateway rebuilt after a restart: %v", got)
			}
		})
	})
	t.Run("after the way back to the older release its definition holds again", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := open(t)
			for _, change := range []func(*descriptor.Kind){older, newer, older} {
				g := join(t, store, change)
				stop := g.run()
				synctest.Wait()
				if len(g.fingerprints()) == 0 {
					g.create("x", `{"title":"t","weight":100}`)
				}
				time.Sleep(2 * time.Minute) // of the bubble
				synctest.Wait()
				g.by("title", "t")
				g.want("title", "t", "spec.title", "x")
				stop()
			}
		})
	})
	t.Run("a rebuild that was cut short goes on after a restart", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			data := &memory.Data{}
			store, err := memory.Open(memory.Config{Data: data})
			if err != nil {
				t.Fatal(err)
			}
			a := join(t, store, older)
			for i := range 400 {
				a.create(fmt.Sprintf("w%03d", i), `{"title":"t","weight":100}`)
			}
			b := join(t, store, newer)
			ctx, cancel := context.WithCancel(t.Context())
			b.spy.onApply = func(n int) {
				if n == 4 { // the record, two batches of 64, and no more
					cancel()
				}
			}
			if err := b.Run(ctx); err != nil {
				t.Fatal(err)
			}
			if got := b.fingerprints(); len(got) != 2 {
				t.Fatalf("fingerprints %v", got)
			}
			for _, s := range []*memory.Store{a.spy.Store, b.spy.Store, store} {
				_ = s.Close()
			}
			if store, err = memory.Open(memory.Config{Data: data}); err != nil {
				t.Fatal(err)
			}
			defer store.Close()
			b = join(t, store, newer)
			b.run()
			synctest.Wait()
			if got := b.fingerprints(); len(got) != 1 {
				t.Fatalf("fingerprints %v", got)
			}
		})
	})
	t.Run("a body that cannot be read keeps no other from its index, and is tried again at the next start", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := open(t)
			g := join(t, store, newer)
			g.create("x", `{"title":"t","weight":100}`)
			good := g.create("y", `{"title":"t","weight":100}`).Resource.Stored
			bad := good.Key
			g.put(bad, backend.Put{UID: "u", Body: []byte("jnonsense")})
			stop := g.run()
			synctest.Wait()
			g.want("weight", 100, "spec.weight", "x")
			stop()
			// It becomes readable by the store alone, as with a key that was missing.
			r := g.stored("y")
			g.put(bad, backend.Put{UID: "u", Body: good.Body, Fingerprint: r.Fingerprint})
			join(t, store, newer).run()
			synctest.Wait()
			g.want("weight", 100, "spec.weight", "x", "y")
		})
	})
	t.Run("a record of a newer release is left alone", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			store := open(t)
			a, b := join(t, store, older), join(t, store, newer)
			a.create("x", `{"title":"t","weight":100}`)
			rev := a.put(definitionsKey(), backend.Put{UID: "u", Body: []byte(`j{"format":2}`)}).Revision
			b.run()
			time.Sleep(time.Minute) // of the bubble
			synctest.Wait()
			got, _ := store.Get(t.Context(), definitionsKey())
			if got[0].Revision != rev {
				t.Error("it was overwritten")
			}
			b.want("weight", 100, "", "x")
		})
	})
}

func TestTwoDefinitionsRace(t *testing.T) {
	t.Run("whatever call of the store a write of an older gateway comes before, the list has what it wrote", func(t *testing.T) {
		for when := 1; when <= 4; when++ {
			store := open(t)
			a, b := join(t, store, older), join(t, store, newer)
			b.create("x", `{"title":"t","weight":100}`)
			revision := b.create("y", `{"title":"t","weight":100}`).Resource.Stored.Revision.String()
			calls := 0
			b.spy.onRead = func() {
				if calls++; calls == when {
					if _, err := a.update("y", revision, `{"title":"t","weight":100,"heavy":true}`); err != nil {
						t.Error(err)
					}
				}
			}
			if got, _ := b.by("weight", 100); !slices.Equal(got, []string{"x", "y"}) {
				t.Errorf("before call %d: %v", when, got)
			}
		}
	})
	t.Run("while two gateways write and one repairs, no list misses or repeats what matches all the time", func(t *testing.T) {
		store := open(t)
		a, b := join(t, store, older), join(t, store, newer)
		const n = 40
		var want []string
		for i := range n {
			name := fmt.Sprintf("w%02d", i)
			a.create(name, `{"title":"pin","weight":100,"heavy":true}`)
			want = append(want, name)
		}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		var wg sync.WaitGroup
		var byIndex, byScan, done atomic.Int64
		for _, g := range []*gateway{a, b} {
			wg.Go(func() {
				for i := range 300 {
					label := []service.Label{{Key: "round", Value: fmt.Sprint(i)}}
					_, err := g.Upsert(ctx, access.Caller{}, service.UpsertRequest{
						Identity: named(want[i*7%n]), Spec: json.RawMessage(`{"title":"pin","weight":100,"heavy":true}`),
						Metadata: service.Metadata{Labels: service.Optional[[]service.Label]{Set: true, Value: label}},
					})
					var failed *failure.Error
					if err != nil && !(errors.As(err, &failed) && failed.Code == failure.CodeConflict) {
						t.Error(err)
						return
					}
				}
				if done.Add(1) == 2 {
					cancel()
				}
			})
			wg.Go(func() {
				for ctx.Err() == nil {
					field, value := "weight", any(100)
					if g == a {
						field, value = "heavy", true
					}
					got, index := g.by(field, value)
					if !slices.Equal(got, want) {
						t.Errorf("by index %q: %v", index, got)
						return
					}
					if index == "" {
						byScan.Add(1)
					} else {
						byIndex.Add(1)
					}
				}
			})
		}
		wg.Go(func() {
			for ctx.Err() == nil {
				short, stop := context.WithTimeout(ctx, time.Millisecond)
				if err := b.Run(short); err != nil {
					t.Error(err)
				}
				stop()
			}
		})
		wg.Wait()
		t.Logf("%d lists by index, %d by scan", byIndex.Load(), byScan.Load())
	})
}

// definitionsKey is where the gateways of a store keep the record.
func definitionsKey() backend.Key { return backend.Key{Kind: "_index", Name: "definitions"} }
