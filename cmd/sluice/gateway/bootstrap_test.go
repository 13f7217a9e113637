package gateway_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
)

// TestFillEmbedded_LeavesAStoreThatAnotherProcessFills: that process must find its file again when it is done.
func TestFillEmbedded_LeavesAStoreThatAnotherProcessFills(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	s, err := bolt.Open(bolt.Config{Path: filepath.Join(from, "sluice.db")})
	if err != nil {
		t.Fatal(err)
	}
	put := backend.Put{UID: "1", Body: backend.EncodeBody([]byte("{}"))}
	_, err = s.Apply(t.Context(), backend.Batch{
		RequestID: "1",
		Deadline:  time.Now().Add(time.Minute),
		Actions:   []backend.Action{{Key: backend.Key{Kind: "Network", Name: "a"}, Op: backend.OpPut, Put: put}},
	})
	if err = errors.Join(err, s.Close()); err != nil {
		t.Fatal(err)
	}
	filling := filepath.Join(to, "sluice.db.bootstrap")
	other, err := bolt.Open(bolt.Config{Path: filling})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = other.Close() }()
	_, err = gateway.StateCopy{From: gateway.Offline{At: from}, To: gateway.Offline{At: to}}.Run(t.Context(), zap.NewNop())
	if err == nil || !strings.Contains(err.Error(), "another process fills the store in "+to) {
		t.Errorf("%v", err)
	}
	if _, err := os.Lstat(filling); err != nil {
		t.Error(err)
	}
}
