package redis_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// leaving is the context of a request that is given up as soon as it waits.
type leaving struct {
	context.Context
	done chan struct{}
}

func (l leaving) Done() <-chan struct{} { return l.done }

func TestAQuestionAboutTheHeadsIsAskedHoweverManyComeAndGo(t *testing.T) {
	st, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ctx, stop := context.WithCancel(t.Context())
	gone := leaving{ctx, make(chan struct{})}
	close(gone.done)
	var crowd sync.WaitGroup
	defer crowd.Wait()
	defer stop()
	for range 1000 {
		crowd.Go(func() {
			for ctx.Err() == nil {
				_, _ = st.Head(gone)
				runtime.Gosched()
			}
		})
	}
	patient, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if _, err := st.Head(patient); err != nil {
		t.Error(err)
	}
}

func BenchmarkHead(b *testing.B) {
	st, err := redis.Open(b.Context(), redis.Config{URL: redistest.Start(b).URL()})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = st.Close() })
	for _, readers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint(readers), func(b *testing.B) {
			b.ReportAllocs()
			var crowd sync.WaitGroup
			left := new(atomic.Int64)
			left.Store(int64(b.N))
			for range readers {
				crowd.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := st.Head(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			crowd.Wait()
		})
	}
}
