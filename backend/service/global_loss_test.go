package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/redistest"
)

// judged reports whether all shards have a record by which the kinds were judged.
func (h *house) judged(shards int) error {
	for i := range shards {
		got, err := h.store.Get(context.Background(), backend.Key{Kind: "_reconcile", Name: fmt.Sprint("shard-", i)})
		if err != nil || got[0] == nil {
			return fmt.Errorf("shard %d has no record: %v", i, err)
		}
		raw, err := backend.DecodeBody(got[0].Body)
		if err != nil {
			return err
		}
		var rec struct {
			Position string
			Judged   map[string]string
		}
		if err := json.Unmarshal(raw, &rec); err != nil || len(rec.Judged) != len(h.Kinds()) || rec.Position == "" {
			return fmt.Errorf("shard %d: %s, error %v", i, raw, err)
		}
	}
	return nil
}

// The change of the site is gone from the log of its shard before any gateway handles it. The logs of
// the rooms' shards lose nothing.
func TestAWaitIsNotForgottenIfTheLogLosesTheChangeOfItsTarget(t *testing.T) {
	const shards = 4
	store, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL(), Prefix: "t", Shards: shards, LogEntries: 20, LogSlack: -1})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	h := openHouseOf(t, store, campus(false))
	stop := h.run()
	for _, floor := range floors() {
		h.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
	}
	redistest.Await(t, "the kinds of all shards are judged", func() error { return h.judged(shards) })
	stop()
	h.put(global("Site", "s"), `{}`)
	for i := range 100 {
		h.put(global("Region", fmt.Sprint("r", i)), `{}`)
	}
	again := openHouseOf(t, store, campus(false))
	again.run()
	again.settleOnAll("a", "True")
}

func TestACatalogueAddsAndDropsAReferenceToAGlobalKind(t *testing.T) {
	onCampus(t, func(t *testing.T, with *house) {
		none := func() []descriptor.Kind {
			kinds := campus(false)
			kinds[2].References = nil
			return kinds
		}
		before := openHouseOf(t, with.store, none())
		stop := before.run()
		for _, floor := range floors() {
			before.put(onFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
		}
		before.settleOnAll("a", "True")
		with = openHouseOf(t, with.store, campus(false))
		with.run()
		with.settleOnAll("a", "Waiting for Site/s to be created")
		with.put(global("Site", "s"), `{}`)
		with.settleOnAll("a", "True")
		for _, floor := range floors() {
			with.put(onFloor(floor, "Room", "b"), `{"siteRef":"none"}`)
		}
		stop()
		after := openHouseOf(t, with.store, none())
		after.run()
		after.settleOnAll("b", "True")
	})
}

// Two gateways create, change and delete sites and rooms at the same time. In the end each wait
// is for what is so.
func TestNoWaitAcrossScopesIsForgotten(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		gateways := []*house{h, openHouseOf(t, h.store, campus(false))}
		for _, g := range gateways {
			g.run()
		}
		seed := rand.Uint64()
		t.Logf("seed %d", seed)
		rounds := 150
		if testing.Short() {
			rounds = 40
		}
		var all sync.WaitGroup
		for w := range 6 {
			rnd, g := rand.New(rand.NewPCG(seed, uint64(w))), gateways[w%len(gateways)]
			all.Go(func() {
				for range rounds {
					site := fmt.Sprint("s", rnd.IntN(4))
					room := onFloor(floors()[rnd.IntN(len(floors()))], "Room", fmt.Sprint("r", rnd.IntN(4)))
					spec := json.RawMessage(fmt.Sprintf(`{"siteRef":%q}`, site))
					var err error
					switch rnd.IntN(6) {
					case 0:
						_, err = g.Upsert(context.Background(), access.Caller{}, service.UpsertRequest{Identity: global("Site", site), Spec: json.RawMessage(`{}`)})
					case 1:
						_, err = g.Delete(context.Background(), access.Caller{}, service.DeleteRequest{Identity: global("Site", site)})
					case 2:
						_, err = g.Delete(context.Background(), access.Caller{}, service.DeleteRequest{Identity: room})
					default:
						_, err = g.Upsert(context.Background(), access.Caller{}, service.UpsertRequest{Identity: room, Spec: spec})
					}
					if known, ok := errors.AsType[*failure.Error](err); err != nil && (!ok || known.Code != failure.CodeNotFound) {
						t.Errorf("seed %d: %v", seed, err)
					}
				}
			})
		}
		all.Wait()
		redistest.Await(t, fmt.Sprint("all waits are for what is so, seed ", seed), func() error { return h.waitsAreSo() })
	})
}

// waitsAreSo says which room waits for what is not so.
func (h *house) waitsAreSo() error {
	page, err := h.store.Range(context.Background(), backend.Range{Kind: "Room", Limit: backend.MaxLimit})
	if err != nil {
		return err
	}
	for _, r := range page.Resources {
		st, err := kind.StateOf(r)
		if err != nil {
			return err
		}
		for _, wait := range st.Meta.Waits {
			site := backend.Key{Kind: "Site", Name: strings.TrimPrefix(wait, "Site/")}
			want := "Waiting for " + wait + " to be created"
			if says := h.saysIn(r.Key); says != want || h.saysIn(site) != "none" {
				return fmt.Errorf("%s says %q, and the site %q", r.Key, says, h.saysIn(site))
			}
		}
	}
	return nil
}
