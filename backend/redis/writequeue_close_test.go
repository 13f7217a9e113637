package redis_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestWritequeue_AChangeThatIsUnderWayWhenTheStoreIsClosedIsAnswered holds a change back on
// the server until the store says that it is closed.
func TestWritequeue_AChangeThatIsUnderWayWhenTheStoreIsClosedIsAnswered(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL()})
	if err != nil {
		t.Fatal(err)
	}
	key := backend.Key{Kind: "Net", Namespace: "ns", Name: "a"}
	s.Do("CLIENT", "PAUSE", "60000", "WRITE")
	applied, closed := make(chan error, 1), make(chan error, 1)
	go func() {
		_, err := st.Apply(t.Context(), backend.Batch{
			RequestID: "r", Deadline: st.Now().Add(time.Minute),
			Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}},
		})
		applied <- err
	}()
	for !strings.Contains(s.Client().Info(t.Context(), "clients").Val(), "blocked_clients:1") {
		if t.Context().Err() != nil {
			t.Fatal("the change never reached the server")
		}
	}
	go func() { closed <- st.Close() }()
	for err = nil; !errors.Is(err, backend.ErrClosed); {
		if _, err = st.Get(t.Context(), key); t.Context().Err() != nil {
			t.Fatal("the store was never closed")
		}
	}
	s.Do("CLIENT", "UNPAUSE")
	if err := <-applied; err != nil {
		t.Errorf("the change is answered by %v", err)
	}
	if err := <-closed; err != nil {
		t.Errorf("close: %v", err)
	}
}
