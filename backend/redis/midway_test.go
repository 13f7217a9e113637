package redis_test

import (
	"errors"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestACommandThatTheServerRefusesMidway forbids commands of the script, each after others that changed
// something or before them.
func TestACommandThatTheServerRefusesMidway(t *testing.T) {
	t.Parallel()
	open := func(t *testing.T) (*redistest.Server, *redis.Store) {
		s, st := openOwn(t)
		putOne(t, st, faultKey(0, 0), "1")
		return s, st
	}
	put := func(t *testing.T, st *redis.Store, i int) error {
		_, err := st.Apply(t.Context(), batchOf(st, backend.Action{Key: faultKey(0, i), Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("{}"))}}))
		return err
	}
	forbid := func(s *redistest.Server, command string) { s.Do("ACL", "SETUSER", "default", "-"+command) }
	for _, command := range []string{"zadd", "set", "hset"} {
		t.Run(command+" comes after the log entry: the outcome is unknown", func(t *testing.T) {
			s, st := open(t)
			from, err := st.Position(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			forbid(s, command)
			if err := put(t, st, 1); !errors.Is(err, backend.ErrUnknown) || errors.Is(err, backend.ErrUnavailable) {
				t.Errorf("the caller is told %v", err)
			}
			s.Do("ACL", "SETUSER", "default", "+"+command)
			_ = put(t, st, 3) // it may find that the log is ahead of the head
			if err := put(t, st, 5); err != nil {
				t.Error(err)
			}
			events := changes(t, st, from, faultKey(0, 1).Kind)
			if len(events) < 2 || events[0].Resource.Key != faultKey(0, 1) || events[len(events)-1].Resource.Key != faultKey(0, 5) {
				t.Errorf("the log has %v", events)
			}
		})
	}
	t.Run("xadd comes first: nothing was changed, and the log has no gap", func(t *testing.T) {
		s, st := open(t)
		from, err := st.Position(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		forbid(s, "xadd")
		if err := put(t, st, 1); !errors.Is(err, backend.ErrUnavailable) || errors.Is(err, backend.ErrUnknown) {
			t.Errorf("the caller is told %v", err)
		}
		s.Do("ACL", "SETUSER", "default", "+xadd")
		if err := put(t, st, 2); err != nil {
			t.Fatal(err)
		}
		k := faultKey(0, 2)
		if events := changes(t, st, from, k.Kind); len(events) != 1 || events[0].Resource.Key != k {
			t.Errorf("the log has %v", events)
		}
	})
}
