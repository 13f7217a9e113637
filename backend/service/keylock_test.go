package service_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestKeylock_UnconditionalWritesOfOneResourceAreNeverAConflict(t *testing.T) {
	t.Parallel()
	for name, open := range servicetest.Embedded() {
		store := open(t)
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, gateways: %d", name, n), func(t *testing.T) {
				gws := servicetest.Gateways(t, store, n)
				var wg sync.WaitGroup
				for c := range 64 {
					wg.Go(func() {
						s := gws[c%n]
						for i := range 5 {
							spec := map[string]any{"title": fmt.Sprint(c, "-", i)}
							if _, err := s.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: spec}); err != nil {
								t.Errorf("upsert: %v", err)
							}
							manifest := fmt.Sprintf("{apiVersion: example.org/v1, kind: Widget, metadata: {name: a}, spec: {title: %d-%d}}", i, c)
							if _, err := s.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: manifest}); err != nil {
								t.Errorf("apply: %v", err)
							}
						}
					})
				}
				wg.Wait()
			})
		}
	}
}

func TestKeylock_AnEditOfTheSpecAmongStatusWritesIsNeverAConflict(t *testing.T) {
	t.Parallel()
	for name, open := range servicetest.Embedded() {
		store := open(t)
		for _, n := range []int{1, 2} {
			t.Run(fmt.Sprintf("%s, gateways: %d", name, n), func(t *testing.T) {
				gws := servicetest.Gateways(t, store, n)
				editor := gws[n-1]
				if _, err := editor.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: map[string]any{"title": "A"}}); err != nil {
					t.Fatal(err)
				}
				ctx, stop := context.WithCancel(t.Context())
				var wg sync.WaitGroup
				for c := range 16 {
					wg.Go(func() {
						s := gws[c%n]
						for i := 0; ctx.Err() == nil; i++ {
							if got, err := s.Reader.Get(ctx, servicetest.Named("a")); err == nil {
								_, _ = s.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: got.Stored.Revision.String(), Status: map[string]any{"id": fmt.Sprint(c, "-", i)}})
							}
						}
					})
				}
				for i := range 100 {
					got, err := editor.Reader.Get(ctx, servicetest.Named("a"))
					if err != nil {
						t.Fatal(err)
					}
					r := got.Stored.Revision.String()
					if i%2 == 0 {
						_, err = editor.Writer.Update(ctx, service.UpdateRequest{Identity: servicetest.Named("a"), ExpectedRevision: r, Spec: map[string]any{"title": fmt.Sprint(i)}})
					} else {
						_, err = editor.Writer.Patch(ctx, service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: r, Patch: map[string]any{"title": fmt.Sprint(i)}})
					}
					if err != nil {
						t.Fatalf("edit %d: %v", i, err)
					}
				}
				stop()
				wg.Wait()
			})
		}
	}
}

// contested is a store in which another gateway is always faster.
type contested struct{ *memory.Store }

func (s contested) Apply(_ context.Context, b backend.Batch) (backend.Result, error) {
	return backend.Result{}, &backend.ConditionError{Key: b.Actions[0].Key, Err: backend.ErrConflict}
}

func TestKeylock_AWriteThatLosesEveryRaceIsAbortedWhenTheRequestsTimeIsOver(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := setup(t)
		f.CreateWidget("a", `{"title":"A"}`)
		s := servicetest.Gateways(t, contested{f.Store}, 1)[0]
		for name, c := range map[string]struct{ limit, took time.Duration }{
			"with a deadline":    {5 * time.Second, 5 * time.Second},
			"without a deadline": {0, 30 * time.Second},
		} {
			ctx, cancel := t.Context(), func() {}
			if c.limit > 0 {
				ctx, cancel = context.WithTimeout(ctx, c.limit)
			}
			begin := time.Now()
			var wg sync.WaitGroup
			for range 3 { // the others wait for their turn
				wg.Go(func() {
					_, err := s.Writer.Upsert(ctx, service.UpsertRequest{Identity: servicetest.Named("a"), Spec: map[string]any{"title": "B"}})
					var e *failure.Error
					if !errors.As(err, &e) || e.Code != failure.CodeAborted || !e.Retryable {
						t.Errorf("%s: %v", name, err)
					}
				})
			}
			wg.Wait()
			cancel()
			if took := time.Since(begin); took != c.took {
				t.Errorf("%s: it took %v, want %v", name, took, c.took)
			}
		}
	})
}

// slowStore takes a second for each batch.
type slowStore struct{ *memory.Store }

func (s slowStore) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	time.Sleep(time.Second)
	return s.Store.Apply(ctx, b)
}

// observed keeps the values that it takes.
type observed struct {
	mu     sync.Mutex
	values []float64
}

func (o *observed) Observe(value float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.values = append(o.values, value)
}

func TestKeylock_TellsWhichResourceIsWrittenMostAndHowLongWritesWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		kept, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = kept.Close() }()
		waits := &observed{}
		svc, err := service.New(service.Config{
			Kinds: servicetest.Building(), Store: slowStore{kept}, Observe: service.Observers{LockWait: waits},
		})
		if err != nil {
			t.Fatal(err)
		}
		var writers sync.WaitGroup
		write := func(name string) {
			writers.Go(func() {
				req := service.UpsertRequest{
					Identity: kind.Identity{Kind: "Room", Name: name}, Spec: map[string]any{},
				}
				if _, err := svc.Writer.Upsert(t.Context(), req); err != nil {
					t.Errorf("%s: %v", name, err)
				}
			})
			synctest.Wait()
		}
		for _, name := range []string{"hot", "hot", "cold", "hot"} {
			write(name)
		}
		want := []service.LockState{
			{Kind: "Room", Namespace: "default", Name: "hot", Writers: 3},
			{Kind: "Room", Namespace: "default", Name: "cold", Writers: 1},
		}
		busiest, locked := svc.Writer.Locks(10)
		if diff := cmp.Diff(want, busiest); diff != "" || locked != 2 {
			t.Errorf("%d are locked: %s", locked, diff)
		}
		if busiest, locked := svc.Writer.Locks(1); len(busiest) != 1 || locked != 2 {
			t.Errorf("%v of %d", busiest, locked)
		}
		writers.Wait()
		if _, locked := svc.Writer.Locks(10); locked != 0 {
			t.Errorf("%d are still locked", locked)
		}
		if len(waits.values) != 2 || waits.values[0] != 1 {
			t.Errorf("the waits are %v, of two writers for a second each write", waits.values)
		}
	})
}
