package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestSentinelsMayAskForAPassword(t *testing.T) {
	parallel(t)
	g := redistest.Sentinel(t, 0)
	for _, c := range []struct {
		says, sentinels string // the password of the Sentinels, empty for none
		cfg             redis.Config
		parameters      string
		refused         bool
	}{
		{"they have none", "", redis.Config{Password: "of the servers"}, "", false},
		{"they have that of the servers", "of the servers", redis.Config{Password: "of the servers"}, "", false},
		{"they have one of their own", "of the sentinels", redis.Config{Password: "of the servers", SentinelPassword: "of the sentinels"}, "", false},
		{"they have one of their own, in the URL", "of the sentinels", redis.Config{}, "&sentinel-password=of%20the%20sentinels", false},
		{"they have a user", "of the sentinels", redis.Config{SentinelUsername: "default", SentinelPassword: "of the sentinels"}, "", false},
		{"they have one that nobody told", "of the sentinels", redis.Config{}, "", true},
		{"they have another one", "of the sentinels", redis.Config{Password: "of the servers"}, "", true},
	} {
		if c.sentinels != "" {
			g.Protect(c.sentinels)
		}
		t.Run(c.says, func(t *testing.T) {
			c.cfg.URL, c.cfg.Prefix = g.URL()+c.parameters, redistest.Prefix()
			st, err := redis.Open(t.Context(), c.cfg)
			if c.refused {
				if !errors.Is(err, backend.ErrUnavailable) || strings.Contains(err.Error(), "of the s") {
					t.Errorf("error %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = st.Close() })
			putOne(t, st, faultKey(0, 0), "1")
		})
	}
}
