package redis_test

import (
	"strings"
	"testing"
	"time"

	goredis "github.com/redis/go-redis/v9"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// connected is the server's own count of the connections that were ever made to it.
func connected(t *testing.T, admin *goredis.Client) string {
	t.Helper()
	stats, err := admin.Info(t.Context(), "stats").Result()
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(stats, "total_connections_received:")
	count, _, _ := strings.Cut(after, "\r")
	return count
}

func TestQuestionsAboutTheHeadsKeepTheirConnectionUntilItIsCut(t *testing.T) {
	server := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: server.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	opt, err := goredis.ParseURL(server.URL())
	if err != nil {
		t.Fatal(err)
	}
	admin := goredis.NewClient(opt)
	t.Cleanup(func() { _ = admin.Close() })
	ask := func() backend.Position {
		head, err := st.Head(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		return head.Position
	}
	first := ask()
	before := connected(t, admin)
	for range 100 {
		ask()
	}
	if after := connected(t, admin); after != before {
		t.Errorf("%s connections were made before the questions and %s after them", before, after)
	}
	for range 3 {
		if err := admin.Do(t.Context(), "client", "kill", "type", "normal", "skipme", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		res, err := st.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{benchPut(1, 1)}})
		if err != nil {
			t.Fatal(err)
		}
		if at := ask(); at.Shard(0) != res.Position.Shard(0) || at.Shard(0).Seq <= first.Shard(0).Seq {
			t.Errorf("the head is %s after a change at %s", at, res.Position)
		}
	}
	if connected(t, admin) == before {
		t.Error("no connection was cut")
	}
}
