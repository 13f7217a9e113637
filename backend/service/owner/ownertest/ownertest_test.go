package ownertest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

func key(name string) backend.Key { return backend.Key{Kind: "Team", Namespace: "n", Name: name} }

func team(name, spec string) owner.Resource {
	return owner.Resource{Key: key(name), Spec: []byte(spec)}
}

func write(t *testing.T, s *ownertest.Service, w owner.Write, want owner.Outcome) owner.Answer {
	t.Helper()
	a, err := s.Write(t.Context(), w)
	if err != nil || a.Outcome != want {
		t.Fatalf("%v: %v, want %v", a.Outcome, err, want)
	}
	return a
}

func TestService_AWriteIsConditional(t *testing.T) {
	s := ownertest.New("teams", ownertest.Full("Team"))
	first := write(t, s, owner.Write{Resource: team("a", `{"size":1}`), IfAbsent: true}, owner.Done)
	write(t, s, owner.Write{Resource: team("a", `{"size":2}`), IfAbsent: true}, owner.Exists)
	write(t, s, owner.Write{Resource: team("b", `{"size":2}`), IfTag: "x"}, owner.Absent)
	w := owner.Write{Resource: team("a", `{"size":2}`), IfTag: first.Resource.Tag}
	w.Resource.WriteID = "w1"
	second := write(t, s, w, owner.Done)
	if second.Resource.UID != first.Resource.UID || second.Resource.Tag == first.Resource.Tag {
		t.Errorf("%+v after %+v", second.Resource, first.Resource)
	}
	if lost := write(t, s, w, owner.Conflict); lost.Resource.WriteID != "w1" {
		t.Errorf("the write is not echoed: %+v", lost.Resource)
	}
	same := owner.Write{Resource: team("a", `{"size":2}`), IfTag: second.Resource.Tag}
	if a := write(t, s, same, owner.Done); a.Resource.Tag != second.Resource.Tag || a.Resource.WriteID != "w1" {
		t.Errorf("%+v is another version of an equal resource", a.Resource)
	}
	got, err := s.Get(t.Context(), []backend.Key{key("a"), key("b")})
	if err != nil || string(got[0].Resource.Spec) != `{"size":2}` || got[1].Resource != nil {
		t.Errorf("%+v %v", got, err)
	}
}

func TestService_ChangesAreToldAfterAPosition(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := ownertest.New("teams", ownertest.Full("Team"))
		at, err := s.Changes(t.Context(), "", time.Minute)
		if err != nil || at.Expired {
			t.Fatal(at, err)
		}
		go func() {
			time.Sleep(time.Second)
			s.Put(team("a", `{}`))
		}()
		begin := time.Now()
		next, err := s.Changes(t.Context(), at.Position, time.Minute)
		if err != nil || len(next.Keys) != 1 || next.Keys[0] != key("a") || time.Since(begin) != time.Second {
			t.Errorf("%+v %v after %v", next, err, time.Since(begin))
		}
		if none, err := s.Changes(t.Context(), next.Position, time.Minute); err != nil || len(none.Keys) > 0 || none.Position != next.Position {
			t.Errorf("%+v %v", none, err)
		}
		s.Expire()
		if old, err := s.Changes(t.Context(), next.Position, time.Minute); err != nil || !old.Expired {
			t.Errorf("%+v %v", old, err)
		}
	})
}

func TestService_ARestoredServiceHasAnotherHistory(t *testing.T) {
	s := ownertest.New("teams", ownertest.Full("Team"))
	s.Put(team("a", `{}`))
	b := s.Backup()
	s.Remove(key("a"))
	at, err := s.Changes(t.Context(), "", 0)
	if err != nil {
		t.Fatal(err)
	}
	s.Restore(b)
	if _, ok := s.Show(key("a")); !ok {
		t.Error("it is not back")
	}
	if old, err := s.Changes(t.Context(), at.Position, 0); err != nil || !old.Expired {
		t.Errorf("%+v %v", old, err)
	}
}

func TestService_AListIsPagedAndMayBeOld(t *testing.T) {
	s := ownertest.New("teams", ownertest.Full("Team"))
	for _, name := range []string{"c", "a", "b"} {
		s.Put(team(name, `{}`))
	}
	s.MakeUnreadable(key("b"), "damaged")
	s.FreezeList()
	s.Remove(key("a"))
	page, err := s.List(t.Context(), "Team", "", 2)
	if err != nil || len(page.Resources) != 1 || len(page.Unreadable) != 1 || page.Next == "" {
		t.Fatalf("%+v %v", page, err)
	}
	if page, err = s.List(t.Context(), "Team", page.Next, 2); err != nil || len(page.Resources) != 1 || page.Next != "" {
		t.Errorf("%+v %v", page, err)
	}
	s.ThawList()
	if page, err = s.List(t.Context(), "Team", "", 0); err != nil || len(page.Resources) != 1 {
		t.Errorf("%+v %v", page, err)
	}
}

func TestService_ADeleteMayWaitAndAnAnswerMayBeLost(t *testing.T) {
	s := ownertest.New("teams", ownertest.Full("Team"))
	s.Put(team("a", `{}`))
	lost := errors.New("lost")
	s.SetHooks(ownertest.Hooks{
		Delete: func(owner.Delete) *owner.Answer { return &owner.Answer{Outcome: owner.Waits} },
		After: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Delete" {
				return lost
			}
			return nil
		},
	})
	if _, err := s.Delete(t.Context(), owner.Delete{Key: key("a")}); !errors.Is(err, lost) {
		t.Error(err)
	}
	if r, ok := s.Show(key("a")); !ok || r.DeletionRequestedAt.IsZero() {
		t.Errorf("%+v %v", r, ok)
	}
	s.SetHooks(ownertest.Hooks{})
	if a, err := s.Delete(t.Context(), owner.Delete{Key: key("a"), IfUID: "other"}); err != nil || a.Outcome != owner.Conflict {
		t.Error(a, err)
	}
	if a, err := s.Delete(t.Context(), owner.Delete{Key: key("a")}); err != nil || a.Outcome != owner.Done {
		t.Error(a, err)
	}
}
