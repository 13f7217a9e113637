package reconcile_test

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/reconcile"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// widgets are a kind whose resources refer to one another, if they may be guarded or not.
func widgets(guard bool) []descriptor.Kind {
	spec := &descriptor.Shape{Name: "WidgetSpec", Fields: []descriptor.Field{{Name: "of", Type: descriptor.TypeString}}}
	return []descriptor.Kind{{
		Name: "Widget", Singular: "widget", Plural: "widgets", Scope: descriptor.Namespaced, Spec: spec,
		References: []descriptor.Reference{{Path: "spec.of", Kind: "Widget", Guarded: guard}},
	}}
}

// gateway is a reconciler of kinds over a store.
func gateway(t *testing.T, store backend.Store, kinds []descriptor.Kind) *reconcile.Reconciler {
	t.Helper()
	compiled, err := kind.Compile(kinds)
	if err != nil {
		t.Fatal(err)
	}
	changes, err := hub.New(hub.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	var ids atomic.Int64
	return reconcile.New(reconcile.Config{
		Sender: &sender.Sender{Store: store, Hub: changes, Clock: time.Now, Tag: "mine-", WriteTimeout: time.Second, OutcomeTimeout: time.Second},
		Kinds:  compiled, Descriptors: kinds, Logger: zap.NewNop(), NewID: func() string { return fmt.Sprint("id-", ids.Add(1)) },
	})
}

func memoryStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return store
}

// superseding is a store that accepts another catalogue after each page of widgets that is
// read, and the first one again after that was asked for, until it is told otherwise.
type superseding struct {
	backend.Store
	other, stopped atomic.Bool
}

func (s *superseding) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == "Widget" && !r.Deleting {
		s.other.Store(!s.stopped.Load())
	}
	return s.Store.Range(ctx, r)
}

func (s *superseding) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	if keys[0].Kind == "_catalogue" && s.other.Swap(false) {
		other := *got[0]
		other.Body = backend.EncodeBody([]byte(`{"format":1,"hashes":["another"]}`))
		got[0] = &other
	}
	return got, err
}

func TestScan_APageThatWasLeftDoesNotCountAsScanned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &superseding{Store: memoryStore(t)}
		const count = 600 // two pages
		for i := range count {
			if _, err := store.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint(i), Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
				Key: backend.Key{Kind: "Widget", Namespace: "n", Name: fmt.Sprint(i)}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: []byte(`j{"spec":{}}`)},
			}}}); err != nil {
				t.Fatal(err)
			}
		}
		r := gateway(t, store, widgets(false))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		scanned := func() bool {
			got, err := store.Get(t.Context(), backend.Key{Kind: "_reconcile", Name: "shard-0"})
			return err == nil && got[0] != nil && strings.Contains(string(got[0].Body), `"judged":{"Widget":`)
		}
		settled := func() (n int) {
			for i := range count {
				got, err := store.Get(t.Context(), backend.Key{Kind: "Widget", Namespace: "n", Name: fmt.Sprint(i)})
				if err != nil {
					t.Fatal(err)
				}
				if got[0].Declared != "" {
					n++
				}
			}
			return n
		}
		time.Sleep(10 * time.Second) // of the bubble
		if n := settled(); n > 0 || scanned() {
			t.Errorf("%d widgets are settled by a gateway that is not the newest; scanned: %v", n, scanned())
		}
		store.stopped.Store(true)
		time.Sleep(10 * time.Second)
		if n := settled(); n != count || !scanned() {
			t.Errorf("%d widgets are settled, scanned: %v", n, scanned())
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

func TestScan_OfTwoCataloguesOnAStoreWithoutARecordOneIsTheNewest(t *testing.T) {
	store := memoryStore(t)
	a, b := gateway(t, store, widgets(true)), gateway(t, store, widgets(false))
	for range 3 {
		first, err := a.Newest(t.Context())
		second, failed := b.Newest(t.Context())
		if err != nil || failed != nil || !first || second {
			t.Fatalf("the first is the newest: %v, %v; the second: %v, %v", first, err, second, failed)
		}
	}
	if hash, err := catalogue.Newest(t.Context(), store); err != nil || hash != catalogue.OutlineOf(widgets(true)).Hash() {
		t.Errorf("the store says %q, %v", hash, err)
	}
}

// counted is a store that counts the reads of single resources.
type counted struct {
	backend.Store
	gets atomic.Int64
}

func (s *counted) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	s.gets.Add(1)
	return s.Store.Get(ctx, keys...)
}

func TestScan_AnIdleGatewayReadsTheStoreRegardlessOfHowManyKindsThereAre(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var kinds []descriptor.Kind
		for i := range 100 {
			k := widgets(false)[0]
			k.Name, k.Singular, k.Plural = fmt.Sprint("Widget", i), fmt.Sprint("widget", i), fmt.Sprint("widgets", i)
			k.References = nil
			kinds = append(kinds, k)
		}
		store := &counted{Store: memoryStore(t)}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- gateway(t, store, kinds).Run(ctx) }()
		time.Sleep(time.Minute) // of the bubble
		store.gets.Store(0)
		const seconds = 60
		time.Sleep(seconds * time.Second)
		if n := store.gets.Load(); n > 4*seconds { // the newest catalogue, the controllers, the record
			t.Errorf("%d reads in %d seconds", n, seconds)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}
