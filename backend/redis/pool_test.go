package redis_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// tally counts the values that it takes and adds them up.
type tally struct {
	mu    sync.Mutex
	count int
	sum   float64
}

func (o *tally) Observe(value float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.count++
	o.sum += value
}

func (o *tally) taken() (count int, sum float64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.count, o.sum
}

// TestPool_AndWritesAreMeasured: each write counts in one group, and connections are seen.
func TestPool_AndWritesAreMeasured(t *testing.T) {
	t.Parallel()
	var wait, size, duration tally
	st, err := redis.Open(t.Context(), redis.Config{
		URL: server.Server(t).URL(), Prefix: redistest.Prefix(),
		Observe: backend.WriteObservers{Wait: &wait, Size: &size, Duration: &duration},
	})
	if err != nil {
		t.Fatal(err)
	}
	const writes = 40
	var all sync.WaitGroup
	for i := range writes {
		all.Go(func() {
			_, err := st.Apply(t.Context(), backend.Batch{
				RequestID: fmt.Sprint("r", i), Deadline: time.Now().Add(time.Minute),
				Actions: []backend.Action{{
					Key: backend.Key{Kind: "Widget", Namespace: "default", Name: fmt.Sprint(i)}, Op: backend.OpPut,
					Put: backend.Put{UID: fmt.Sprint("u", i), Body: []byte("{}")},
				}},
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if pool := st.Pool(); pool.Connections == 0 || pool.Idle > pool.Connections {
		t.Errorf("%+v", pool)
	}
	if n := st.WritesWaiting(); n != 0 {
		t.Errorf("%d writes wait", n)
	}
	if err := st.Close(); err != nil { // senders measure after they have answered
		t.Fatal(err)
	}
	waits, _ := wait.taken()
	groups, of := size.taken()
	times, _ := duration.taken()
	if waits != writes || of != writes || groups != times || groups == 0 {
		t.Errorf("%d waits, %d groups of together %v writes, %d times", waits, groups, of, times)
	}
	if pool := st.Pool(); pool != (redis.Pool{}) || st.WritesWaiting() != 0 {
		t.Errorf("a closed store has %+v", pool)
	}
}
