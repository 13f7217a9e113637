package sender_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// deaf is a store that no batch reaches.
type deaf struct{ backend.Store }

func (deaf) Apply(context.Context, backend.Batch) (backend.Result, error) {
	return backend.Result{}, backend.ErrUnknown
}

func TestSender_ALostBatchThatTheLogDoesNotTellOfIsNotTakenForApplied(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	changes, err := hub.New(hub.Config{Store: store})
	if err != nil {
		t.Fatal(err)
	}
	s := &sender.Sender{Store: deaf{store}, Hub: changes, Clock: time.Now, Tag: "t-", WriteTimeout: time.Second, OutcomeTimeout: time.Second}
	a := backend.Key{Kind: "Widget", Namespace: "default", Name: "a"}
	for name, action := range map[string]backend.Action{
		"a rebind":           {Key: a, Op: backend.OpRebind},
		"a check":            {Key: a, Op: backend.OpCheck, If: backend.Condition{Presence: backend.Present}},
		"an internal record": {Key: backend.Key{Kind: "_record", Name: "a"}, Op: backend.OpPut},
	} {
		if !action.Key.Internal() && name == "an internal record" {
			t.Fatal("the key is of no internal record")
		}
		if _, err := s.Apply(t.Context(), action); !errors.Is(err, backend.ErrUnknown) {
			t.Errorf("%s: %v, want %v", name, err, backend.ErrUnknown)
		}
	}
}
