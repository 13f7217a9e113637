package storekit_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

func TestLog_State(t *testing.T) {
	rev := func(epoch, seq uint64) backend.Revision { return backend.Revision{Epoch: epoch, Seq: seq} }
	advance := func(s *storekit.LogState, changes int) {
		for range changes {
			s.Next(backend.Key{Kind: "Net", Name: "a"})
		}
	}
	log := func() storekit.LogState {
		var s storekit.LogState
		s.Begin(10)
		advance(&s, 5)
		s.Begin(20)
		s.Begin(30)
		advance(&s, 3)
		return s
	}
	t.Run("a position resumes in an epoch of the log, up to its last change and not before the trim mark", func(t *testing.T) {
		s := log()
		for r, want := range map[backend.Revision]bool{
			rev(10, 0): true, rev(10, 5): true, rev(10, 6): false, rev(20, 0): true, rev(20, 1): false,
			rev(30, 0): true, rev(30, 3): true, rev(30, 4): false, rev(15, 0): false, rev(31, 0): false, {}: false,
		} {
			if err := s.Resume(r); (err == nil) != want || err != nil && !errors.Is(err, backend.ErrPositionExpired) {
				t.Errorf("resume at %v: %v", r, err)
			}
		}
		s.Trim(rev(10, 4))
		if s.Resume(rev(10, 3)) == nil || s.Resume(rev(10, 4)) != nil {
			t.Error("the trim mark lies elsewhere")
		}
		s.Trim(rev(30, 1))
		if s.Resume(rev(10, 5)) == nil || s.Resume(rev(20, 0)) == nil || s.Resume(rev(30, 0)) == nil || s.Resume(rev(30, 1)) != nil {
			t.Error("an epoch before the trim mark is still known")
		}
		if d := cmp.Diff([]backend.Revision{rev(30, 3)}, s.Epochs); d != "" {
			t.Error(d)
		}
	})
	t.Run("an entry follows a position if nothing lies between them", func(t *testing.T) {
		s := log()
		for _, c := range []struct {
			at, entry backend.Revision
			want      bool
		}{
			{rev(10, 1), rev(10, 2), true}, {rev(10, 1), rev(10, 3), false}, {rev(10, 2), rev(10, 2), false}, {rev(10, 2), rev(10, 1), false},
			{rev(10, 5), rev(30, 1), true}, {rev(10, 5), rev(30, 0), true}, {rev(10, 5), rev(30, 2), false}, {rev(10, 4), rev(30, 1), false},
			{rev(10, 5), rev(20, 0), true}, {rev(20, 0), rev(30, 1), true}, {rev(10, 5), rev(25, 1), false}, {rev(30, 0), rev(10, 1), false},
		} {
			if got := s.Follows(c.at, c.entry); got != c.want {
				t.Errorf("%v after %v: %v", c.entry, c.at, got)
			}
		}
	})
	t.Run("Behind counts the changes after a position over all epochs", func(t *testing.T) {
		s := log()
		for r, want := range map[backend.Revision]int{rev(10, 0): 8, rev(10, 5): 3, rev(20, 0): 3, rev(30, 1): 2, rev(30, 3): 0} {
			if got := s.Behind(r); got != want {
				t.Errorf("behind %v: %d, want %d", r, got, want)
			}
		}
	})
	t.Run("a state that was handed out does not see a later epoch, a clone no change at all", func(t *testing.T) {
		s := log()
		out, clone := s, s.Clone()
		s.Begin(40)
		advance(&s, 1)
		if out.Head() != rev(30, 3) || clone.Head() != rev(30, 3) {
			t.Errorf("heads %v and %v", out.Head(), clone.Head())
		}
	})
	t.Run("the table of epochs is bounded, the oldest go first", func(t *testing.T) {
		var s storekit.LogState
		for epoch := range uint64(2000) {
			s.Begin(epoch + 1)
		}
		if len(s.Epochs) != 1024 || s.Head() != rev(2000, 0) || s.Resume(rev(976, 0)) == nil || s.Resume(rev(977, 0)) != nil {
			t.Errorf("%d epochs up to %v", len(s.Epochs), s.Head())
		}
	})
	t.Run("the zero state has no head and resumes nothing", func(t *testing.T) {
		var s storekit.LogState
		if !s.Head().IsZero() || s.Resume(backend.Revision{}) == nil {
			t.Error("an empty log can be resumed")
		}
	})
}
