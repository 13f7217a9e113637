package redis_test

import (
	"os"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/backendtest"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// gatewayRules are those that the documentation names for a prefix: the keys
// and channels, what every topology needs, and what one of them does.
func gatewayRules(t *testing.T) []string {
	t.Helper()
	example, err := os.ReadFile("../../examples/config/tls.yaml")
	if err != nil {
		t.Fatal(err)
	}
	_, line, found := strings.Cut(string(example), ">the-password ")
	line, _, ends := strings.Cut(line, "\n#\n")
	if !found || !ends {
		t.Fatal("the example names no rules")
	}
	rules := strings.Fields(strings.ReplaceAll(strings.ReplaceAll(line, "#", ""), "sluice:", "test-"))
	return rules
}

// noRefusals wants the server to have refused nothing.
func noRefusals(t *testing.T, s *redistest.Server) {
	t.Helper()
	if log, ok := s.Do("ACL", "LOG").([]any); !ok || len(log) > 0 {
		t.Errorf("the server refused %v", log)
	}
}

func TestAddress_AccessByTheDocumentedRulesOverTLS(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.TLS(), redistest.User("gateway", "pass word", gatewayRules(t)...))
	t.Run("of all that the model does", func(t *testing.T) {
		backendtest.RunModel(t, func(_ testing.TB, o backendtest.Options) backendtest.Instance {
			return instanceOf(redis.Config{URL: s.URL(), TLS: s.TLS.Config}, o)
		}, 1)
	})
	noRefusals(t, s)
}

func TestAddress_AccessByTheDocumentedRulesWithAReplica(t *testing.T) {
	t.Parallel()
	user := redistest.User("gateway", "password", gatewayRules(t)...)
	s := redistest.Start(t, user)
	redistest.Start(t, user, redistest.FollowAsAdmin(), redistest.ReplicaOf(s.Addr))
	st, err := redis.Open(t.Context(), redis.Config{URL: strings.TrimSuffix(s.URL(), "0") + "3", Prefix: redistest.Prefix(), Durability: redis.DurabilityReplica})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	putOne(t, st, faultKey(0, 0), "1")
	if err := st.Ready(t.Context()); err != nil {
		t.Error(err)
	}
	if err := st.Sync(t.Context(), "ns0"); err != nil {
		t.Error(err)
	}
	noRefusals(t, s)
}

func TestAddress_AccessByTheDocumentedRulesInACluster(t *testing.T) {
	parallel(t)
	n := redistest.Cluster(t, redistest.User("gateway", "password", gatewayRules(t)...), redistest.FollowAsAdmin())
	cfg := redis.Config{URL: strings.Replace(n.URL(), "://", "://gateway@", 1), Password: "password", Prefix: redistest.Prefix(), Shards: 4}
	st, err := redis.Open(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	w, err := st.Watch(t.Context(), backend.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(w.Close)
	const written = 20
	write := func() {
		for i := range written {
			putOne(t, st, faultKey(i%namespaces, i), "1")
		}
	}
	write()
	slot := n.Slot(cfg.Prefix + "m:{0}")
	to := n.All[0]
	if n.Owner(slot) == to {
		to = n.All[1]
	}
	m := n.Migrate(slot, to)
	for m.Move(1) > 0 { // what has moved is read by ASK
		for i := range written {
			if _, err := st.Get(t.Context(), faultKey(i%namespaces, i)); err != nil {
				t.Error(err)
			}
		}
	}
	m.Finish()
	write()
	for seen := 0; seen < 2*written; {
		d, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		seen += len(d.Events)
	}
	if _, err := st.Purge(t.Context()); err != nil {
		t.Error(err)
	}
	for _, s := range n.All {
		noRefusals(t, s)
	}
}
