package redis_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/redistest"
)

// TestScript_ACommandThatTheServerRefusesMidway forbids commands of the script, each after others that changed
// something or before them.
func TestScript_ACommandThatTheServerRefusesMidway(t *testing.T) {
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

// TestScript_AWriteThatTheServerRefusesMidwayIsNotTakenForMade although the log has it.
func TestScript_AWriteThatTheServerRefusesMidwayIsNotTakenForMade(t *testing.T) {
	t.Parallel()
	s, st := openOwn(t)
	g := gateway(t, st, "midway-", time.Second)
	if _, err := g.Writer.Create(t.Context(), service.CreateRequest{Identity: thingNamed("before"), Spec: titled("t")}); err != nil {
		t.Fatal(err)
	}
	for _, command := range []string{"zadd", "set"} {
		s.Do("ACL", "SETUSER", "default", "-"+command)
		_, err := g.Writer.Create(t.Context(), service.CreateRequest{Identity: thingNamed(command), Spec: titled("t")})
		s.Do("ACL", "SETUSER", "default", "+"+command)
		if known, ok := errors.AsType[*failure.Error](err); !ok || known.Code != failure.CodeUnavailable || known.Outcome != failure.OutcomeUnknown {
			t.Errorf("without %s the caller is told %v", command, err)
		}
		if got, err := st.Get(t.Context(), thingKey(command)); err != nil || got[0] != nil {
			t.Errorf("without %s the store has %v, %v", command, got, err)
		}
	}
}
