package redis_test

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"
	logs "go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestOpen_ServerThatCannotReplayItsAOF is refused where the rules of the user default can be seen, and otherwise warned of.
func TestOpen_ServerThatCannotReplayItsAOF(t *testing.T) {
	t.Parallel()
	rules := gatewayRules(t)
	blind := strings.Fields(strings.ReplaceAll(strings.Join(rules, " "), "+acl|dryrun", ""))
	for name, c := range map[string]struct {
		options []redistest.Option
		refused bool
		logged  string
	}{
		"the user default has no rules": {[]redistest.Option{redistest.User("gateway", "p", rules...), redistest.AOF("always")}, true, ""},
		"they cannot be seen":           {[]redistest.Option{redistest.User("gateway", "p", blind...), redistest.AOF("always")}, false, "cannot be seen whether its user default may run the commands"},
		"no AOF":                        {[]redistest.Option{redistest.User("gateway", "p", rules...)}, false, "the server has no AOF"},
		"an AOF that is written once a second": {[]redistest.Option{
			redistest.User("gateway", "p", append(slices.Clip(rules), "+config|get")...), redistest.DefaultRules("~*", "&*", "+@all"), redistest.AOF("everysec"),
		}, false, "the last changes are lost when power is lost"},
		"an AOF that is written at once, as can be seen": {[]redistest.Option{
			redistest.User("gateway", "p", append(slices.Clip(rules), "+config|get")...), redistest.DefaultRules("~*", "&*", "+@all"), redistest.AOF("always"),
		}, false, ""},
		"the user default is off with all": {[]redistest.Option{redistest.User("gateway", "p", rules...), redistest.DefaultRules("~*", "&*", "+@all"), redistest.AOF("always")}, false, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := redistest.Start(t, c.options...)
			core, log := logs.New(zap.WarnLevel)
			st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Prefix: "test-", Logger: zap.New(core)})
			if err == nil {
				defer func() { _ = st.Close() }()
			}
			if c.refused {
				if !errors.Is(err, backend.ErrFormat) || !strings.Contains(err.Error(), "user default off ~* &* +@all") || strings.Contains(err.Error(), "\n") {
					t.Errorf("opened: %v", err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			var messages []string
			for _, line := range log.All() {
				messages = append(messages, line.Message)
			}
			if all := strings.Join(messages, "\n"); c.logged == "" && all != "" || !strings.Contains(all, c.logged) {
				t.Errorf("the log says %q", messages)
			}
			if c.logged != "" {
				return
			}
			putOne(t, st, faultKey(0, 0), "1")
			s.Restart()
			redistest.Await(t, "what was written", func() error {
				got, err := st.Get(t.Context(), faultKey(0, 0))
				if err == nil && got[0] == nil {
					t.Fatal("it is lost")
				}
				return err
			})
		})
	}
}

// TestApply_WithoutAReplica is refused at once, with the reason, and the store is not ready.
func TestApply_WithoutAReplica(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Shards: 2, Durability: redis.DurabilityReplica})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	put := func() error {
		_, err := st.Apply(t.Context(), backend.Batch{RequestID: "r", Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{{Key: faultKey(0, 0), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}}})
		return err
	}
	var none *redis.NoReplicaError
	if err := put(); !errors.As(err, &none) || !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrUnknown) {
		t.Errorf("a put: %v", err)
	}
	if err := st.Ready(t.Context()); !errors.As(err, &none) || !strings.HasPrefix(none.Error(), "shard 0, 1: the Redis primary has no replica") {
		t.Errorf("ready: %v", err)
	}
	if got, err := st.Get(t.Context(), faultKey(0, 0)); err != nil || got[0] != nil {
		t.Errorf("it was written: %v %v", got, err)
	}
	redistest.Start(t, redistest.ReplicaOf(s.Addr))
	redistest.Await(t, "a replica", put)
	if err := st.Ready(t.Context()); err != nil {
		t.Errorf("with a replica: %v", err)
	}
}
