package redis_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// leaving is the context of a request that is given up as soon as it waits.
type leaving struct {
	context.Context
	done chan struct{}
}

func (l leaving) Done() <-chan struct{} { return l.done }

func TestHead_AQuestionAboutTheHeadsIsAskedHoweverManyComeAndGo(t *testing.T) {
	st, err := redis.Open(t.Context(), redis.Config{URL: redistest.Start(t).URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	ctx, stop := context.WithCancel(t.Context())
	gone := leaving{ctx, make(chan struct{})}
	close(gone.done)
	var callers sync.WaitGroup
	defer callers.Wait()
	defer stop()
	for range 1000 {
		callers.Go(func() {
			for ctx.Err() == nil {
				_, _ = st.Head(gone)
				runtime.Gosched()
			}
		})
	}
	patient, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if _, err := st.Head(patient); err != nil {
		t.Error(err)
	}
}

func TestHead_WhoAsksAMuteServerAboutTheHeadsHearsInTimeThatItIsUnavailable(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says    string
		timeout time.Duration // 0 is the default
		kept    bool          // there is a connection already
	}{
		{"over the connection that is kept", 0, true},
		{"over the connection that is kept, with long exchanges", time.Minute, true},
		{"over a new connection, with long exchanges", time.Minute, false},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t)
			p := redistest.NewProxy(t, server.Addr)
			st, err := redis.Open(t.Context(), redis.Config{URL: p.URL(), Timeout: c.timeout})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			if c.kept {
				if _, err := st.Head(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			p.Pause()
			began := time.Now()
			_, err = st.Head(t.Context())
			p.Cut() // else the store would wait for its connections when it is closed
			if took := time.Since(began); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) || took > 30*time.Second {
				t.Errorf("after %v: %v", took, err)
			}
			p.Resume()
			redistest.Await(t, "an answer", func() error {
				_, err := st.Head(t.Context())
				return err
			})
		})
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
			var callers sync.WaitGroup
			left := new(atomic.Int64)
			left.Store(int64(b.N))
			for range readers {
				callers.Go(func() {
					for left.Add(-1) >= 0 {
						if _, err := st.Head(b.Context()); err != nil {
							b.Error(err)
						}
					}
				})
			}
			callers.Wait()
		})
	}
}
