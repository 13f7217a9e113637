package operate

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/internal/redistest"
)

// storedNetworks makes an embedded store in a folder, with enough resources for a copy to say how far it is.
func storedNetworks(t *testing.T, folder string) {
	t.Helper()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(folder, gateway.StoreFile)})
	if err != nil {
		t.Fatal(err)
	}
	put := backend.Put{UID: "1", Body: backend.EncodeBody([]byte("{}"))}
	for batch := range 12 {
		var actions []backend.Action
		for i := range 50 {
			key := backend.Key{Kind: "Network", Name: fmt.Sprintf("n%d-%d", batch, i)}
			actions = append(actions, backend.Action{Key: key, Op: backend.OpPut, Put: put})
		}
		_, err := s.Apply(t.Context(), backend.Batch{RequestID: fmt.Sprint(batch), Deadline: s.Now().Add(time.Minute), Actions: actions})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

// offlineAt returns the store at a place, with the settings that are the default.
func offlineAt(place string) gateway.Offline {
	return gateway.Offline{At: place, Settings: config.NewGateway().Store}
}

func TestStateCopy_ToRedisGoesOnWhereItWasInterrupted(t *testing.T) {
	folder := t.TempDir()
	storedNetworks(t, folder)
	server := redistest.Start(t)
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	c := gateway.StateCopy{From: offlineAt(folder), To: offlineAt(server.URL()), Progress: func(int, int) { interrupt() }}
	if _, err := c.Run(ctx, zap.NewNop()); !errors.Is(err, context.Canceled) {
		t.Fatalf("%v", err)
	}
	back := gateway.StateCopy{From: offlineAt(server.URL()), To: offlineAt(t.TempDir())}
	if _, err := back.Run(t.Context(), zap.NewNop()); err == nil || !strings.Contains(err.Error(), "has begun and not ended") {
		t.Errorf("half of a store is copied: %v", err)
	}
	c.Progress = nil
	if _, err := c.Run(t.Context(), zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	if copied, err := back.Run(t.Context(), zap.NewNop()); err != nil || copied.Resources != 600 {
		t.Errorf("%d resources, %v", copied.Resources, err)
	}
}

// TestStateCopy_OfAStoreThatIsWrittenMeanwhile: the copy lacks what was written, so it must not be there to be served.
func TestStateCopy_OfAStoreThatIsWrittenMeanwhile(t *testing.T) {
	folder, to := t.TempDir(), t.TempDir()
	storedNetworks(t, folder)
	server := redistest.Start(t)
	if _, err := (gateway.StateCopy{From: offlineAt(folder), To: offlineAt(server.URL())}).Run(t.Context(), zap.NewNop()); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	_, err := gateway.StateCopy{
		From: offlineAt(server.URL()), To: offlineAt(to),
		// as a change does
		Progress: func(int, int) { once.Do(func() { server.Do("HINCRBY", "sluice:m:{0}", "seq", "1") }) },
	}.Run(t.Context(), zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "was written while it was copied") {
		t.Errorf("%v", err)
	}
	if left, err := os.ReadDir(to); err != nil || len(left) > 0 {
		t.Errorf("%v %v", left, err)
	}
}
