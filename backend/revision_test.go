package backend_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
)

func FuzzParseRevision(f *testing.F) {
	for _, s := range []string{"", "-", "0-0", "0-1", "1-1", "01-1", "+1-1", "1-18446744073709551615", "1-18446744073709551616", "1-1-1", " 1-1", "1-１"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		r, err := backend.ParseRevision(s)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) || !r.IsZero() {
				t.Errorf("%q: %v, error %v", s, r, err)
			}
			return
		}
		if r.String() != s || r.IsZero() {
			t.Errorf("%q was read as %q", s, r)
		}
	})
}

func FuzzParsePosition(f *testing.F) {
	for _, p := range []backend.Position{
		{}, backend.NewPosition(backend.Revision{}), backend.NewPosition(backend.Revision{Epoch: backend.MaxEpoch, Seq: math.MaxUint64}),
		backend.NewPosition(backend.Revision{Epoch: 1, Seq: 2}, backend.Revision{Epoch: 3, Seq: 4}),
	} {
		f.Add(p.String())
	}
	f.Add("AQE")
	f.Add("AYCAgICAgICAgIABAQE")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := backend.ParsePosition(s)
		if err != nil {
			if !errors.Is(err, backend.ErrInvalid) || !p.IsZero() {
				t.Errorf("%q: %v, error %v", s, p, err)
			}
			return
		}
		if p.String() != s || p.IsZero() {
			t.Errorf("%q was read as %q", s, p)
		}
	})
}

func TestRevision(t *testing.T) {
	t.Run("revisions order by epoch, then by sequence", func(t *testing.T) {
		sorted := []backend.Revision{{}, {Seq: 1}, {Epoch: 1}, {Epoch: 1, Seq: 1}, {Epoch: 1, Seq: math.MaxUint64}, {Epoch: 2}}
		for i, a := range sorted {
			for j, b := range sorted {
				if got := a.Compare(b); got != min(max(i-j, -1), 1) {
					t.Errorf("%v compared with %v is %d", a, b, got)
				}
			}
		}
	})
	t.Run("a position has one revision for each shard and never changes", func(t *testing.T) {
		a, b := backend.Revision{Epoch: 1, Seq: 2}, backend.Revision{Epoch: 3, Seq: 4}
		p := backend.NewPosition(a, b)
		q := p.With(1, a)
		if p.Shards() != 2 || p.Shard(0) != a || p.Shard(1) != b || p.Shard(2) != (backend.Revision{}) || q.Shard(1) != a || q.Equal(p) || !q.With(1, b).Equal(p) {
			t.Errorf("positions %v and %v", p, q)
		}
	})
}

func TestRevision_NextEpoch(t *testing.T) {
	now := time.Date(2025, 6, 1, 0, 0, 0, 0, time.UTC)
	rnd := rand.New(rand.NewPCG(1, 1))
	t.Run("an epoch is greater than the one before it and than its second", func(t *testing.T) {
		for _, previous := range []uint64{0, 1, uint64(now.Unix()) << 20, uint64(now.Unix()+1e6) << 20} {
			got, err := backend.NextEpoch(previous, now, rnd)
			if err != nil || got <= previous || got <= uint64(now.Unix())<<20 || got > max(previous, uint64(now.Unix())<<20)+1<<20 {
				t.Errorf("after %d: %d, error %v", previous, got, err)
			}
		}
	})
	t.Run("a clock before 1970 counts as 1970", func(t *testing.T) {
		if got, err := backend.NextEpoch(0, time.Unix(-1e9, 0), rnd); err != nil || got > 1<<20 {
			t.Errorf("%d, error %v", got, err)
		}
	})
	t.Run("an epoch that a double cannot hold is refused", func(t *testing.T) {
		for _, at := range []time.Time{time.Unix(1<<33, 0), time.Unix(1<<44, 0), time.Unix(1<<45+1, 0)} {
			if got, err := backend.NextEpoch(0, at, rnd); err == nil {
				t.Errorf("at %v: %d", at, got)
			}
		}
		if _, err := backend.NextEpoch(backend.MaxEpoch, now, rnd); !errors.Is(err, backend.ErrInvalid) {
			t.Errorf("error %v", err)
		}
	})
}

func TestRevision_AWrittenPositionIsTheSamePlace(t *testing.T) {
	p := backend.NewPosition(backend.Revision{Epoch: 5, Seq: 1}, backend.Revision{Epoch: 6, Seq: 2})
	w := p.Written()
	if w.String() != p.String() || !w.Equal(p) || !(backend.Position{}).Written().IsZero() {
		t.Errorf("%s and %s", w, p)
	}
	moved := backend.Revision{Epoch: 5, Seq: 9}
	if got, want := w.With(0, moved).String(), p.With(0, moved).String(); got != want || got == w.String() {
		t.Errorf("moved to %s, want %s", got, want)
	}
}
