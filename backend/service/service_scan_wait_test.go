package service_test

import (
	"context"
	"encoding/json"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// unfilled is a store of which the index cannot read a kind.
type unfilled struct {
	backend.Store
	of string
}

func (s *unfilled) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == s.of && r.Shard == 0 && r.Referenced == nil {
		<-ctx.Done()
		return backend.Page{}, ctx.Err()
	}
	return s.Store.Range(ctx, r)
}

// While a scan waits for the index, the place in the log is saved: a gateway that starts would
// handle all changes since then again. It waits for a minute.
func TestService_OnlyScansWaitForTheIndex(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		inner, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		store := &unfilled{Store: inner}
		h := openHouseOf(t, store, servicetest.Building())
		store.of = "Door"
		defer h.Start()()
		type record struct {
			Position string
			Judged   map[string]string
		}
		after := func(d time.Duration) (rec record) {
			t.Helper()
			time.Sleep(d) // of the bubble
			got, err := inner.Get(t.Context(), backend.Key{Kind: "_reconcile", Name: "shard-0"})
			if err != nil || got[0] == nil {
				t.Fatal(got, err)
			}
			raw, err := backend.DecodeBody(got[0].Body)
			if err == nil {
				err = json.Unmarshal(raw, &rec)
			}
			if err != nil {
				t.Fatal(err)
			}
			return rec
		}
		first := after(5 * time.Second)
		h.Create("Room", "r", `{}`)
		second := after(5 * time.Second)
		if first.Position == "" || second.Position == first.Position {
			t.Errorf("the place is %q, and %q after a change", first.Position, second.Position)
		}
		if len(second.Judged) > 0 {
			t.Errorf("%v were scanned before the index was filled", second.Judged)
		}
		if third := after(time.Minute); len(third.Judged) != len(servicetest.Building()) {
			t.Errorf("after a minute %v were scanned", third.Judged)
		}
	})
}
