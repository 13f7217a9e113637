package service_test

import (
	"context"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service/access"
)

// slowAnswer is a store whose answer to the first question for internal records arrives late.
type slowAnswer struct {
	*memory.Store
	asked, arrives chan struct{}
}

func (s *slowAnswer) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	if keys[0].Kind == "_controllers" {
		select {
		case <-s.asked: // by an earlier question
		default:
			close(s.asked)
			<-s.arrives
		}
	}
	return got, err
}

func TestWhatWasReadBeforeAKindWasGivenToAControllerIsNotBelievedAfterwards(t *testing.T) {
	store := &slowAnswer{Store: open(t), asked: make(chan struct{}), arrives: make(chan struct{})}
	h := openHouse(t, store)
	read := make(chan error, 1)
	go func() {
		_, err := h.Controlled(context.Background(), "Room")
		read <- err
	}()
	<-store.asked
	if err := h.SetControlled(t.Context(), access.Caller{}, "Room", true); err != nil {
		t.Fatal(err)
	}
	close(store.arrives)
	if err := <-read; err != nil {
		t.Fatal(err)
	}
	if controlled, err := h.Controlled(t.Context(), "Room"); err != nil || !controlled {
		t.Errorf("controlled %v, %v", controlled, err)
	}
	h.create("Room", "r", `{}`)
	if got := h.says("Room", "r"); got != "All dependencies are ready; the controller has not acted yet" {
		t.Errorf("the room says %q", got)
	}
}
