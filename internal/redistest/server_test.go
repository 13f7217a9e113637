package redistest_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/internal/redistest"
)

var shared redistest.Shared

// set and get are what the tests do with data.
func set(t *testing.T, s *redistest.Server, key, value string) {
	t.Helper()
	s.Do("SET", key, value)
}

func get(t *testing.T, c redis.Cmdable, key string) string {
	t.Helper()
	v, err := c.Get(t.Context(), key).Result()
	if err != nil && err != redis.Nil {
		t.Fatal(err)
	}
	return v
}

func want(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Fatalf("got %q, want %q", got, want)
	}
}

func TestServer(t *testing.T) {
	t.Run("a server without an append-only file comes back empty on its address", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		set(t, s, "k", "v")
		s.Kill()
		s.Restart()
		want(t, get(t, s.Client(), "k"), "")
	})
	t.Run("one with it keeps what it wrote, and loses what is cut off", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, redistest.AOF("always"))
		set(t, s, "a", "1")
		size := s.AOFSize()
		set(t, s, "b", "1")
		s.Kill()
		s.Restart()
		want(t, get(t, s.Client(), "a")+get(t, s.Client(), "b"), "11")
		s.Kill()
		s.TruncateAOF(s.AOFSize() - size - 3)
		s.Restart()
		want(t, get(t, s.Client(), "a")+get(t, s.Client(), "b"), "1")
	})
	t.Run("directives reach it", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, redistest.Set("maxmemory-policy", "allkeys-lru"))
		want(t, s.Client().ConfigGet(t.Context(), "maxmemory-policy").Val()["maxmemory-policy"], "allkeys-lru")
	})
	t.Run("a stopped server does not answer until it goes on", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t)
		s.Stop()
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		c := redis.NewClient(&redis.Options{Addr: s.Addr, ContextTimeoutEnabled: true})
		defer func() { _ = c.Close() }()
		if err := c.Ping(ctx).Err(); err == nil {
			t.Fatal("it answered")
		}
		s.Cont()
		set(t, s, "k", "v")
	})
	t.Run("a replica follows, is promoted, and stays so", func(t *testing.T) {
		t.Parallel()
		primary := redistest.Start(t)
		replica := redistest.Start(t, redistest.ReplicaOf(primary.Addr))
		set(t, primary, "k", "v")
		primary.AwaitReplicas(1)
		want(t, get(t, replica.Client(), "k"), "v")
		primary.Kill()
		replica.Promote()
		set(t, replica, "k", "w")
		replica.Restart()
		set(t, replica, "k", "x")
		primary.Restart()
		primary.Follow(replica.Addr)
		want(t, get(t, primary.Client(), "k"), "x")
	})
	t.Run("a user has its rules only, over TLS", func(t *testing.T) {
		t.Parallel()
		s := redistest.Start(t, redistest.TLS(), redistest.User("gateway", "pass word", "~app:*", "+@all"))
		o, err := redis.ParseURL(s.URL())
		if err != nil {
			t.Fatal(err)
		}
		if o.TLSConfig == nil || o.Username != "gateway" || o.Password != "pass word" {
			t.Fatalf("URL %s says too little", s.URL())
		}
		o.TLSConfig = s.TLS.Config
		c := redis.NewClient(o)
		defer func() { _ = c.Close() }()
		if err := c.Set(t.Context(), "app:k", "v", 0).Err(); err != nil {
			t.Fatal(err)
		}
		if err := c.Set(t.Context(), "other", "v", 0).Err(); err == nil || !strings.Contains(err.Error(), "NOPERM") {
			t.Fatalf("a foreign key: %v", err)
		}
		want(t, get(t, s.Client(), "app:k"), "v")
	})
}

func TestATransactionThatIsCutIsLostWhole(t *testing.T) {
	s := redistest.Start(t, redistest.AOF("always"))
	set := func(a, b string) {
		s.Do("EVAL", "redis.call('SET', KEYS[1], 1) redis.call('SET', KEYS[2], 1) return 1", 2, a, b)
	}
	set("whole-1", "whole-2")
	set("cut-1", "cut-2")
	s.Kill()
	s.TruncateAOF(3) // of its EXEC
	s.Restart()
	set("later-1", "later-2")
	s.Restart()
	if got := s.Do("EXISTS", "whole-1", "whole-2", "later-1", "later-2"); got != int64(4) {
		t.Errorf("%v of 4 keys", got)
	}
	if got := s.Do("EXISTS", "cut-1", "cut-2"); got != int64(0) {
		t.Errorf("%v keys of the transaction that was cut", got)
	}
}

func TestSharedServer(t *testing.T) {
	var addrs []string
	t.Run("tests share one", func(t *testing.T) {
		for range 2 {
			s := shared.Server(t)
			addrs = append(addrs, s.Addr)
			set(t, s, redistest.Prefix()+"k", "v")
		}
	})
	t.Run("which lasts longer than a test", func(t *testing.T) {
		s := shared.Server(t)
		set(t, s, "k", "v")
		want(t, s.Addr, addrs[0])
		want(t, s.Addr, addrs[1])
	})
}
