package service_test

import (
	"context"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// slowAnswer is a store whose answer to the first question for internal records arrives late.
type slowAnswer struct {
	*memory.Store
	requested, arrives chan struct{}
}

func (s *slowAnswer) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	if keys[0].Kind == "_controllers" {
		select {
		case <-s.requested: // by an earlier question
		default:
			close(s.requested)
			<-s.arrives
		}
	}
	return got, err
}

func TestStatus_WhatWasReadBeforeAKindWasGivenToAControllerIsNotBelievedAfterwards(t *testing.T) {
	store := &slowAnswer{Store: servicetest.OpenMemory(t), requested: make(chan struct{}), arrives: make(chan struct{})}
	h := openHouse(t, store)
	read := make(chan error, 1)
	go func() {
		_, err := h.Controlled(context.Background(), "Room")
		read <- err
	}()
	<-store.requested
	if err := h.Writer.SetControlled(t.Context(), "Room", true); err != nil {
		t.Fatal(err)
	}
	close(store.arrives)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if controlled, err := h.Controlled(t.Context(), "Room"); err != nil || !controlled {
		t.Errorf("controlled %v, %v", controlled, err)
	}
	h.Create("Room", "r", `{}`)
	if got := h.Says("Room", "r"); got != "All dependencies are ready; the controller has not acted yet" {
		t.Errorf("the room says %q", got)
	}
}

func TestStatus_ADamagedRecordOfControllersIsReplacedByTheNextWrite(t *testing.T) {
	store := servicetest.OpenMemory(t)
	h := openHouse(t, store)
	if err := h.Writer.SetControlled(t.Context(), "Door", true); err != nil {
		t.Fatal(err)
	}
	for _, controlled := range []bool{true, false} {
		_, err := store.Apply(t.Context(), backend.Batch{
			RequestID: "damage", Deadline: time.Now().Add(time.Minute),
			Actions: []backend.Action{{Key: backend.Key{Kind: "_controllers", Name: "kinds"}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{"))}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := h.Writer.SetControlled(t.Context(), "Room", controlled); err != nil {
			t.Fatal(err)
		}
		other := openHouse(t, store)
		for of, want := range map[string]bool{"Room": controlled, "Door": true} {
			if got, err := other.Controlled(t.Context(), of); err != nil || got != want {
				t.Errorf("%s: controlled %v, %v; want %v", of, got, err, want)
			}
		}
	}
}
