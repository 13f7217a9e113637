package redis_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

func TestAddress_SentinelsMayAskForAPassword(t *testing.T) {
	parallel(t)
	g := redistest.Sentinel(t, 0)
	for _, c := range []struct {
		says, sentinels string // the password of the Sentinels, empty for none
		password        string // of the servers, in the configuration
		parameters      string
		refused         bool
	}{
		{"they have none", "", "of the servers", "", false},
		{"they have that of the servers", "of the servers", "of the servers", "", false},
		{"they have one of their own", "of the sentinels", "of the servers", "&sentinel-password=of%20the%20sentinels", false},
		{"they have one of their own, and the servers none", "of the sentinels", "", "&sentinel-password=of%20the%20sentinels", false},
		{"they have a user", "of the sentinels", "", "&sentinel-user=default&sentinel-password=of%20the%20sentinels", false},
		{"they have one that nobody told", "of the sentinels", "", "", true},
		{"they have another one", "of the sentinels", "of the servers", "", true},
	} {
		if c.sentinels != "" {
			g.Protect(c.sentinels)
		}
		t.Run(c.says, func(t *testing.T) {
			st, err := redis.Open(t.Context(), redis.Config{URL: g.URL() + c.parameters, Password: c.password, Prefix: redistest.Prefix()})
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
