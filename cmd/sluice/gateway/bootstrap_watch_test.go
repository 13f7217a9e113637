package gateway

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
)

// putBootstrapRecord makes the record of a bootstrap.
func putBootstrapRecord(t *testing.T, store backend.Store, state string) {
	t.Helper()
	body := backend.EncodeBody([]byte(`{"format":1,"state":"` + state + `","file":"f"}`))
	_, err := store.Apply(t.Context(), backend.Batch{
		RequestID: state, Deadline: time.Now().Add(time.Minute),
		Actions: []backend.Action{{
			Key: backend.Key{Kind: "_bootstrap", Name: "store"}, Op: backend.OpPut,
			Put: backend.Put{UID: "u", Body: body},
		}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

func TestWatchBootstrap_EndsAGatewayWhoseStoreIsFilledByAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = store.Close() }()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		ended := make(chan error, 1)
		go func() { ended <- watchBootstrap(ctx, store) }()
		putBootstrapRecord(t, store, "done")
		time.Sleep(time.Minute)
		select {
		case err := <-ended:
			t.Fatalf("it ended although the store is filled: %v", err)
		default:
		}
		putBootstrapRecord(t, store, "begun")
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "another gateway fills it now") {
			t.Errorf("%v", err)
		}
		go func() { ended <- watchBootstrap(ctx, store) }()
		putBootstrapRecord(t, store, "done")
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("after a stop: %v", err)
		}
	})
}
