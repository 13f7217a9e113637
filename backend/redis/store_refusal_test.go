package redis_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestStore_OpenRefusesWhatIsNotFit(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		says string
		// spoil prepares the server, on which a store with 2 shards was made under the prefix.
		spoil func(t *testing.T, s *redistest.Server, prefix string, cfg *redis.Config)
		want  string
	}{
		{"a store of an older format", func(t *testing.T, s *redistest.Server, prefix string, _ *redis.Config) {
			for _, key := range s.Client().Keys(t.Context(), prefix+"m:*").Val() {
				s.Do("HSET", key, "format", redis.Format-1)
			}
		}, "the store has format 7, written before the first release; this one reads 8: empty the store or choose another prefix"},
		{"a store of a newer format", func(t *testing.T, s *redistest.Server, prefix string, _ *redis.Config) {
			for _, key := range s.Client().Keys(t.Context(), prefix+"m:*").Val() {
				s.Do("HSET", key, "format", redis.Format+1)
			}
		}, "the store has format 9, written by a newer release; this one reads 8"},
		{"fewer shards than the store has", func(_ *testing.T, _ *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Shards = 1
		}, "the store was made with 2 shards and this gateway is set to 1"},
		{"one shard more", func(_ *testing.T, _ *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Shards = 3
		}, "the store was made with 2 shards and this gateway is set to 3"},
		{"many more shards", func(_ *testing.T, _ *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Shards = 256
		}, "the store was made with 2 shards and this gateway is set to 256"},
		{"a last shard that is another program's", func(t *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			keys := s.Client().Keys(t.Context(), cfg.Prefix+"m:*").Val()
			cfg.Prefix = redistest.Prefix()
			for _, key := range keys {
				if !strings.HasSuffix(key, "{0}") { // shard 0 would be made first
					s.Do("SET", cfg.Prefix+key[strings.LastIndex(key, "m:"):], "v")
				}
			}
		}, "belong to another program; choose another prefix"},
		{"keys of another program under the prefix", func(_ *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Prefix = redistest.Prefix()
			s.Do("SET", cfg.Prefix+"session:17", "v")
		}, "belong to another program; choose another prefix"},
		{"a store that is gone, beside one whose prefix begins with its prefix", func(t *testing.T, s *redistest.Server, prefix string, cfg *redis.Config) {
			beside := *cfg
			beside.Prefix += "b:"
			st, err := redis.Open(t.Context(), beside)
			if err != nil {
				t.Fatal(err)
			}
			_ = st.Close()
			for _, key := range s.Client().Keys(t.Context(), prefix+"*").Val() {
				if !strings.HasPrefix(key, beside.Prefix) {
					s.Do("DEL", key)
				}
			}
		}, `b:", whose keys begin with it; if there was one, its keys are gone: restore a copy, or choose another prefix`},
		{"a key of another type where the store's would be", func(_ *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Prefix, cfg.Shards = redistest.Prefix(), 1
			s.Do("SET", cfg.Prefix+"m:{0}", "v")
		}, "belong to another program; choose another prefix"},
		{"a hash of another program where the store's would be", func(_ *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			cfg.Prefix, cfg.Shards = redistest.Prefix(), 1
			s.Do("HSET", cfg.Prefix+"m:{0}", "user", "17")
		}, "belong to another program; choose another prefix"},
		{"a policy that evicts", func(_ *testing.T, s *redistest.Server, _ string, _ *redis.Config) {
			s.Do("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
		}, "the server's maxmemory-policy is allkeys-lru, which loses data; set it to noeviction"},
		{"a server that is too old", func(t *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			info := s.Client().Info(t.Context(), "server").Val()
			_, version, _ := strings.Cut(info, "redis_version:")
			p := redistest.NewProxy(t, s.Addr)
			p.Lie("redis_version:"+version[:1], "redis_version:6")
			cfg.URL = p.URL()
		}, "and 7.0 or newer is wanted"},
		{"a server of 32 bits", func(t *testing.T, s *redistest.Server, _ string, cfg *redis.Config) {
			p := redistest.NewProxy(t, s.Addr)
			p.Lie("arch_bits:64", "arch_bits:32")
			cfg.URL = p.URL()
		}, "64 are wanted"},
	} {
		t.Run(c.says, func(t *testing.T) {
			t.Parallel()
			s, prefix := redistest.Start(t), redistest.Prefix()
			cfg := redis.Config{URL: s.URL(), Prefix: prefix, Shards: 2}
			st, err := redis.Open(t.Context(), cfg)
			if err != nil {
				t.Fatal(err)
			}
			if err := st.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, s, prefix, &cfg)
			before := contents(t, s)
			st, err = redis.Open(t.Context(), cfg)
			if err == nil {
				_ = st.Close()
			}
			if d := cmp.Diff(before, contents(t, s)); d != "" {
				t.Errorf("the refused start wrote, before -, after +:\n%s", d)
			}
			if !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, want one line with %q", err, c.want)
			}
		})
	}
}

// contents are the dumps of all keys.
func contents(t *testing.T, s *redistest.Server) map[string]string {
	t.Helper()
	out := map[string]string{}
	for _, key := range s.Client().Keys(t.Context(), "*").Val() {
		out[key] = s.Client().Dump(t.Context(), key).Val()
	}
	return out
}

func TestStore_WritesStopWhenANewerReleaseChangesTheFormat(t *testing.T) {
	t.Parallel()
	s, prefix := server.Server(t), redistest.Prefix()
	st := openLate(t, s.URL(), prefix)
	k := backend.Key{Kind: "Net", Namespace: "default", Name: "n"}
	before := putOne(t, st, k, "1")
	s.Do("HSET", prefix+"m:{0}", "format", redis.Format+1)
	_, err := st.Apply(context.Background(), batchOf(st, backend.Action{Key: k, Op: backend.OpDelete}))
	if !errors.Is(err, backend.ErrFormat) || strings.Contains(err.Error(), "\n") {
		t.Errorf("error %v", err)
	}
	found, err := st.Get(t.Context(), k)
	if err != nil || found[0] == nil || found[0].Revision != before.Revision {
		t.Errorf("%v is there, error %v", found, err)
	}
}
