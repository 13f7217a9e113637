package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/internal/redistest"
)

// through returns a client that tries everything once.
func through(t *testing.T, p *redistest.Proxy) *redis.Client {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1, ContextTimeoutEnabled: true, DialerRetries: 1})
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestProxy(t *testing.T) {
	t.Run("it loses the reply of a request that was executed", func(t *testing.T) {
		s := shared.Server(t)
		p := redistest.NewProxy(t, s.Addr)
		c, k := through(t, p), redistest.Prefix()
		lost := p.DropReplies(2, redistest.Command("incr"))
		for range 2 {
			if err := c.Incr(t.Context(), k).Err(); err == nil {
				t.Fatal("the reply came")
			}
		}
		<-lost
		if n, err := c.Incr(t.Context(), k).Result(); n != 3 || err != nil {
			t.Fatalf("%d, error %v, want 3", n, err)
		}
	})
	t.Run("it loses one reply of a pipeline and those behind it", func(t *testing.T) {
		s := shared.Server(t)
		p := redistest.NewProxy(t, s.Addr)
		c, k := through(t, p), redistest.Prefix()
		lost := p.DropReplies(1, redistest.Containing(k+"b"))
		if _, err := c.Pipelined(t.Context(), func(pipe redis.Pipeliner) error {
			for _, name := range []string{"a", "b", "c"} {
				pipe.Set(t.Context(), k+name, "v", 0)
			}
			return nil
		}); err == nil {
			t.Fatal("the replies came")
		}
		<-lost
		// The one whose reply was lost was executed; whether those behind it were is anybody's guess.
		redistest.Await(t, "b executed", func() error { return s.Client().Get(t.Context(), k+"b").Err() })
	})
	t.Run("it says what is not so", func(t *testing.T) {
		s := shared.Server(t)
		p := redistest.NewProxy(t, s.Addr)
		c, k := through(t, p), redistest.Prefix()
		set(t, s, k, "the truth")
		p.Lie("truth", "false")
		want(t, get(t, c, k), "the false")
		want(t, get(t, s.Client(), k), "the truth")
	})
	t.Run("it delivers a request late, and twice", func(t *testing.T) {
		s := shared.Server(t)
		p := redistest.NewProxy(t, s.Addr)
		c, k := through(t, p), redistest.Prefix()
		held := p.Hold(redistest.Command("append"))
		if err := c.Append(t.Context(), k, "late").Err(); err == nil {
			t.Fatal("the client got an answer")
		}
		<-held.Caught()
		if err := c.Set(t.Context(), k, "first-", 0).Err(); err != nil {
			t.Fatal(err)
		}
		want(t, held.Deliver(), ":10\r\n")
		want(t, held.Deliver(), ":14\r\n")
		want(t, get(t, c, k), "first-latelate")
	})
	t.Run("a pause delivers nothing, and what was sent comes after it", func(t *testing.T) {
		s := shared.Server(t)
		p := redistest.NewProxy(t, s.Addr)
		c, k := through(t, p), redistest.Prefix()
		want(t, get(t, c, k), "")
		p.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if err := c.Set(ctx, k, "v", 0).Err(); err == nil {
			t.Fatal("it was delivered")
		}
		want(t, get(t, s.Client(), k), "")
		p.Resume()
		redistest.Await(t, "delivery", func() error { return s.Client().Get(t.Context(), k).Err() })
	})
	t.Run("it cuts connections, and leads new ones elsewhere", func(t *testing.T) {
		s, k := shared.Server(t), redistest.Prefix()
		other := redistest.Start(t)
		p := redistest.NewProxy(t, s.Addr)
		c := through(t, p)
		sub := c.Conn()
		defer func() { _ = sub.Close() }()
		if err := sub.Ping(t.Context()).Err(); err != nil {
			t.Fatal(err)
		}
		p.Cut()
		if err := sub.Ping(t.Context()).Err(); err == nil {
			t.Fatal("the connection is alive")
		}
		p.Redirect(other.Addr)
		redistest.Await(t, "the other server", func() error { return c.Set(t.Context(), k, "v", 0).Err() })
		want(t, get(t, other.Client(), k), "v")
	})
	t.Run("a replica follows through it, and falls behind while it is paused", func(t *testing.T) {
		primary := redistest.Start(t)
		p := redistest.NewProxy(t, primary.Addr)
		replica := redistest.Start(t, redistest.ReplicaOf(p.Addr))
		set(t, primary, "k", "v")
		primary.AwaitReplicas(1)
		p.Pause()
		set(t, primary, "k", "lost")
		if n, err := primary.Client().Wait(t.Context(), 1, 50*time.Millisecond).Result(); n != 0 || err != nil {
			t.Fatalf("%d replicas have it, error %v", n, err)
		}
		primary.Kill()
		replica.Promote()
		want(t, get(t, replica.Client(), "k"), "v")
	})
}

func TestASlowProxyDelaysWhatMatches(t *testing.T) {
	s := shared.Server(t)
	p := redistest.NewProxy(t, s.Addr)
	c := through(t, p)
	const delay = 30 * time.Millisecond
	p.Slow(delay, redistest.Command("incr"))
	began := time.Now()
	if err := c.Incr(t.Context(), redistest.Prefix()).Err(); err != nil || time.Since(began) < delay {
		t.Errorf("answered after %v, error %v", time.Since(began), err)
	}
	p.Slow(0, nil)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Error(err)
	}
}
