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
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/internal/redistest"
)

// evaluated returns an error for a shard without a record that all its kinds and changes were evaluated.
func (h *house) evaluated(shards int) error {
	head, err := h.Store.Position(context.Background())
	if err != nil {
		return err
	}
	for i := range shards {
		got, err := h.Store.Get(context.Background(), backend.Key{Kind: "_reconcile", Name: fmt.Sprint("shard-", i)})
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
		if err := json.Unmarshal(raw, &rec); err != nil || len(rec.Judged) != len(h.Kinds()) {
			return fmt.Errorf("shard %d: %s, error %v", i, raw, err)
		}
		if at, err := backend.ParsePosition(rec.Position); err != nil || at.Shard(i) != head.Shard(i) {
			return fmt.Errorf("shard %d: the record is at %v of %v, error %v", i, at.Shard(i), head.Shard(i), err)
		}
	}
	return nil
}

// losePlace makes the record of a shard begin at a place that its log does not know.
func (h *house) losePlace(shard int) {
	h.T.Helper()
	key := backend.Key{Kind: "_reconcile", Name: fmt.Sprint("shard-", shard)}
	got, err := h.Store.Get(h.T.Context(), key)
	if err != nil {
		h.T.Fatal(err)
	}
	var rec map[string]any
	raw, err := backend.DecodeBody(got[0].Body)
	if err == nil {
		err = json.Unmarshal(raw, &rec)
	}
	if err != nil {
		h.T.Fatal(err)
	}
	at, err := backend.ParsePosition(rec["position"].(string))
	if err != nil {
		h.T.Fatal(err)
	}
	rec["position"] = at.With(shard, backend.Revision{Epoch: 1, Seq: 1}).String()
	raw, _ = json.Marshal(rec)
	_, err = h.Store.Apply(h.T.Context(), backend.Batch{RequestID: "lose", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{
		Key: key, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody(raw)},
	}}})
	if err != nil {
		h.T.Fatal(err)
	}
}

// The change of the site is gone from the log of its shard before any gateway handles it. The
// gateway has lost nothing of the rooms' shards.
func TestService_AWaitIsNotForgottenIfTheLogLosesTheChangeOfItsTarget(t *testing.T) {
	t.Parallel()
	store := servicetest.OpenRedis(t, 4)
	h := openHouseOf(t, store, servicetest.Campus(false))
	stop := h.Start()
	for _, floor := range servicetest.Floors() {
		h.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
	}
	redistest.Await(t, "the kinds of all shards are evaluated", func() error { return h.evaluated(4) })
	stop()
	h.Put(servicetest.Global("Site", "s"), `{}`)
	h.losePlace(0)
	again := openHouseOf(t, store, servicetest.Campus(false))
	again.Start()
	again.SettleOnAll("a", "True")
}

func TestService_ACatalogueAddsAndDropsAReferenceToAGlobalKind(t *testing.T) {
	onCampus(t, func(t *testing.T, with *house) {
		none := func() []descriptor.Kind {
			kinds := servicetest.Campus(false)
			kinds[2].References = nil
			return kinds
		}
		before := openHouseOf(t, with.Store, none())
		stop := before.Start()
		for _, floor := range servicetest.Floors() {
			before.Put(servicetest.OnFloor(floor, "Room", "a"), `{"siteRef":"s"}`)
		}
		before.SettleOnAll("a", "True")
		with = openHouseOf(t, with.Store, servicetest.Campus(false))
		with.Start()
		with.SettleOnAll("a", "Waiting for Site/s to be created")
		with.Put(servicetest.Global("Site", "s"), `{}`)
		with.SettleOnAll("a", "True")
		for _, floor := range servicetest.Floors() {
			with.Put(servicetest.OnFloor(floor, "Room", "b"), `{"siteRef":"none"}`)
		}
		stop()
		after := openHouseOf(t, with.Store, none())
		after.Start()
		after.SettleOnAll("b", "True")
	})
}

// Two gateways create, change and delete sites and rooms at the same time. In the end each wait
// is for what is so.
func TestService_NoWaitAcrossScopesIsForgotten(t *testing.T) {
	onCampus(t, func(t *testing.T, h *house) {
		gateways := []*house{h, openHouseOf(t, h.Store, servicetest.Campus(false))}
		for _, g := range gateways {
			g.Start()
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
					room := servicetest.OnFloor(servicetest.Floors()[rnd.IntN(len(servicetest.Floors()))], "Room", fmt.Sprint("r", rnd.IntN(4)))
					spec := json.RawMessage(fmt.Sprintf(`{"siteRef":%q}`, site))
					var err error
					switch rnd.IntN(6) {
					case 0:
						_, err = g.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: servicetest.Global("Site", site), Spec: json.RawMessage(`{}`)})
					case 1:
						_, err = g.Writer.Delete(context.Background(), service.DeleteRequest{Identity: servicetest.Global("Site", site)})
					case 2:
						_, err = g.Writer.Delete(context.Background(), service.DeleteRequest{Identity: room})
					default:
						_, err = g.Writer.Upsert(context.Background(), service.UpsertRequest{Identity: room, Spec: spec})
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
	page, err := h.Store.Range(context.Background(), backend.Range{Kind: "Room", Limit: backend.MaxLimit})
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
			if says := h.SaysOf(r.Key); says != want || h.SaysOf(site) != "none" {
				return fmt.Errorf("%s says %q, and the site %q", r.Key, says, h.SaysOf(site))
			}
		}
	}
	return nil
}
