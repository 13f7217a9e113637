package redis_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestConfig_CallsShareNoMoreConnectionsThanAreConfigured(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	const most = 3
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Connections: most})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	var calls sync.WaitGroup
	for range 40 {
		calls.Go(func() {
			for range 20 {
				if _, err := st.Get(t.Context(), benchKey(1)); err != nil {
					t.Error(err)
				}
				if _, err := st.Range(t.Context(), backend.Range{Kind: benchKey(1).Kind, Limit: 1}); err != nil {
					t.Error(err)
				}
				if _, err := st.Head(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	calls.Wait()
	list, err := s.Client().ClientList(t.Context()).Result()
	if err != nil {
		t.Fatal(err)
	}
	if n := strings.Count(list, "name=sluice"); n > most+1 {
		t.Errorf("%d connections, with the one for questions about the heads", n)
	}
}
