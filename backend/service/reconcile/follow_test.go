package reconcile_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// TestFollow_AChangeOfAnotherGatewayIsLeftToItAfterManyDeletions finishes more deletions of another gateway
// than changes can be delayed, each of a target whose referrer went in the same moment.
func TestFollow_AChangeOfAnotherGatewayIsLeftToItAfterManyDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		compiled, err := kind.Compile(widgets(true))
		if err != nil {
			t.Fatal(err)
		}
		declared := compiled.All()[0].Declared
		ids := 0
		apply := func(a backend.Action) {
			t.Helper()
			ids++
			if _, err := store.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint("theirs-", ids), Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{a}}); err != nil {
				t.Fatal(err)
			}
		}
		key := func(name string) backend.Key { return backend.Key{Kind: "Widget", Namespace: "n", Name: name} }
		put := func(name string, deleting bool, refs ...backend.Ref) {
			t.Helper()
			apply(backend.Action{Key: key(name), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: []byte(`j{"spec":{}}`), Declared: declared, Refs: refs, Deleting: deleting}})
		}
		there := func(name string) bool {
			t.Helper()
			got, err := store.Get(t.Context(), key(name))
			if err != nil {
				t.Fatal(err)
			}
			return got[0] != nil
		}
		r := gateway(t, store, widgets(true))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(5 * time.Second) // of the bubble, as all that follow
		for range 18 {
			const together = 500
			for i := range together {
				target, referrer := fmt.Sprint("target", i), fmt.Sprint("referrer", i)
				put(target, false)
				put(referrer, false, backend.Ref{Key: key(target), Bound: true})
				put(target, true)
				apply(backend.Action{Key: key(referrer), Op: backend.OpDelete})
			}
			time.Sleep(2 * time.Second)
			if there("target0") {
				t.Fatal("a deletion is not finished")
			}
		}
		left := 0
		for range 3 { // a sweep may come within one of them
			put("last", true)
			time.Sleep(100 * time.Millisecond)
			if there("last") {
				left++
			}
			time.Sleep(2 * time.Second)
			if there("last") {
				t.Error("a deletion is not finished")
			}
		}
		if left < 2 {
			t.Errorf("%d of 3 deletions were left to the gateway that began them", left)
		}
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
}

// recorder is a store that remembers the calls about targets: of Get with the number of keys.
type recorder struct {
	backend.Store
	mu    sync.Mutex
	calls []string
}

func (s *recorder) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	s.note(keys[0], fmt.Sprint("get ", len(keys)))
	return s.Store.Get(ctx, keys...)
}

func (s *recorder) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	s.note(b.Actions[0].Key, "apply")
	return s.Store.Apply(ctx, b)
}

func (s *recorder) note(about backend.Key, call string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if strings.HasPrefix(about.Name, "target") {
		s.calls = append(s.calls, call)
	}
}

func TestFollow_ReleasedResourcesAreNotReadAllAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner := memoryStore(t)
		store := &recorder{Store: inner}
		compiled, err := kind.Compile(widgets(true))
		if err != nil {
			t.Fatal(err)
		}
		declared, body := compiled.All()[0].Declared, []byte(`j{"spec":{}`+strings.Repeat(" ", 700<<10)+"}")
		put := func(name string, deleting bool, refs ...backend.Ref) backend.Key {
			t.Helper()
			k := backend.Key{Kind: "Widget", Namespace: "n", Name: name}
			if _, err := inner.Apply(t.Context(), backend.Batch{RequestID: "theirs-" + name, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{
				{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: body, Declared: declared, Refs: refs, Deleting: deleting}},
			}}); err != nil {
				t.Fatal(err)
			}
			return k
		}
		var bound []backend.Ref
		for i := range 3 {
			bound = append(bound, backend.Ref{Key: put(fmt.Sprint("target", i), true), Bound: true})
		}
		referrer := put("referrer", false, bound...)
		r := gateway(t, store, widgets(true))
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- r.Run(ctx) }()
		time.Sleep(5 * time.Second) // of the bubble, as all that follow
		store.mu.Lock()
		store.calls = nil
		store.mu.Unlock()
		if _, err := inner.Apply(t.Context(), backend.Batch{RequestID: "theirs-last", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: referrer, Op: backend.OpDelete}}}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		cancel()
		if err := errors.Join(<-done, inner.Close()); err != nil {
			t.Error(err)
		}
		if calls := strings.Join(store.calls, ", "); !strings.Contains(calls, "get 3") || strings.Contains(calls, "get 3, get 2") {
			t.Errorf("the calls were %s: the first page of resources is handled before the next one is read", calls)
		}
	})
}
