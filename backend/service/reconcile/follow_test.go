package reconcile_test

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// TestAChangeOfAnotherGatewayIsLeftToItAfterManyDeletions finishes more deletions of another gateway
// than changes can be delayed, each of a target whose referrer went in the same moment.
func TestAChangeOfAnotherGatewayIsLeftToItAfterManyDeletions(t *testing.T) {
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
