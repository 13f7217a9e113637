package index_test

import (
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// clocked is an index over a store in memory whose clock the test sets.
func clocked(t *testing.T) (f *fixture, clock *time.Time) {
	t.Helper()
	clock = new(time.Unix(1000, 0))
	s, err := memory.Open(memory.Config{Clock: func() time.Time { return *clock }})
	return start(t, opened(t, s, err), index.Config{Wait: time.Minute}), clock
}

// basis returns what reads depend on.
func (f *fixture) basis(read func(v *index.View)) (index.Basis, bool) {
	f.Helper()
	v, ok := f.View(f.Context())
	if !ok {
		f.Fatal("there is no view")
	}
	var reads index.ReadSet
	v = v.Recorded(&reads)
	read(&v)
	return reads.Basis()
}

// valid reports whether a basis is valid now.
func (f *fixture) valid(b index.Basis) bool {
	f.Helper()
	v, ok := f.View(f.Context())
	if !ok {
		f.Fatal("there is no view")
	}
	return b.ValidIn(&v)
}

func thingRead(v *index.View) { v.Kind("Thing") }

func TestBasis_HoldsUntilItsKindChanges(t *testing.T) {
	f, _ := clocked(t)
	f.put(key("a"), "x")
	b, ok := f.basis(thingRead)
	if !ok || !f.valid(b) {
		t.Fatalf("it is not valid: %v", ok)
	}
	other := key("o")
	other.Kind = "Other"
	f.put(other, "x")
	if !f.valid(b) {
		t.Error("it is not valid after a change of another kind")
	}
	f.put(key("a"), "x")
	if f.valid(b) {
		t.Error("it is valid after a change of its kind")
	}
	if again, _ := f.basis(thingRead); !f.valid(again) {
		t.Error("a new one is not valid")
	}
}

func TestBasis_HoldsNoMoreOnceItsKindIsReadAgain(t *testing.T) {
	f, _ := clocked(t)
	f.put(key("a"), "x")
	b, _ := f.basis(thingRead)
	f.beginAgain()
	f.filled()
	if f.valid(b) {
		t.Error("it is valid in another filling")
	}
}

func TestBasis_OfAnEmptyKind(t *testing.T) {
	f, _ := clocked(t)
	b, ok := f.basis(thingRead)
	if !ok || !f.valid(b) {
		t.Fatal("it is not valid")
	}
	f.put(key("a"), "x")
	if f.valid(b) {
		t.Error("it is valid although the kind is empty no more")
	}
}

func TestBasis_OfThePosition(t *testing.T) {
	f, _ := clocked(t)
	f.put(key("a"), "x")
	b, ok := f.basis(func(v *index.View) { v.Position() })
	if !ok || !f.valid(b) {
		t.Fatal("it is not valid")
	}
	without, _ := f.basis(func(v *index.View) {
		v.Barrier()
		v.Kind("Thing")
	})
	other := key("o")
	other.Kind = "Other"
	f.put(other, "x")
	if f.valid(b) {
		t.Error("it is valid at another position")
	}
	if !f.valid(without) {
		t.Error("a barrier is taken for a read")
	}
}

func TestBasis_HoldsUntilTheNextResourceExpires(t *testing.T) {
	f, clock := clocked(t)
	for name, expiry := range map[string]int64{"gone": 990, "soon": 1010, "late": 1020} {
		put := backend.Put{UID: name, Body: bodyOf("x"), ExpiresAt: time.Unix(expiry, 0)}
		if _, err := f.apply(backend.Action{Key: key(name), Op: backend.OpPut, Put: put}); err != nil {
			t.Fatal(err)
		}
	}
	b, _ := f.basis(thingRead)
	for at, want := range map[int64]bool{1000: true, 1009: true, 1010: false, 1030: false, 999: false} {
		*clock = time.Unix(at, 0)
		if got := f.valid(b); got != want {
			t.Errorf("at %d it is valid: %v", at, got)
		}
	}
	*clock = time.Unix(1020, 0) // all have expired
	b, _ = f.basis(thingRead)
	*clock = time.Unix(2000, 0)
	if !f.valid(b) {
		t.Error("it is not valid although nothing expires any more")
	}
}

func TestBasis_HoldsUntilAnUnreadableResourceExpires(t *testing.T) {
	f, clock := clocked(t)
	put := backend.Put{UID: "bad", Body: bodyOf("bad"), ExpiresAt: time.Unix(1010, 0)}
	if _, err := f.apply(backend.Action{Key: key("bad"), Op: backend.OpPut, Put: put}); err != nil {
		t.Fatal(err)
	}
	b, ok := f.basis(thingRead)
	if !ok || !f.valid(b) {
		t.Fatal("it is not valid")
	}
	*clock = time.Unix(1010, 0)
	if f.valid(b) {
		t.Error("it is valid after the expiry")
	}
}

func TestReadSet_IsIncomplete(t *testing.T) {
	f, _ := clocked(t)
	f.put(key("a"), "x")
	for what, read := range map[string]func(v *index.View, s *index.ReadSet){
		"without reads":      func(*index.View, *index.ReadSet) {},
		"of an unknown kind": func(v *index.View, _ *index.ReadSet) { v.Kind("Unknown") },
		"of reads outside": func(v *index.View, s *index.ReadSet) {
			v.Kind("Thing")
			s.Incomplete()
		},
		"of two views": func(v *index.View, s *index.ReadSet) {
			v.Kind("Thing")
			later := v.Recorded(s)
			later.Kind("Thing")
		},
	} {
		v, _ := f.View(t.Context())
		var s index.ReadSet
		v = v.Recorded(&s)
		read(&v, &s)
		if _, ok := s.Basis(); ok {
			t.Errorf("%s it has a basis", what)
		}
	}
	var none index.ReadSet
	if _, ok := none.Basis(); ok {
		t.Error("without a view it has a basis")
	}
	(*index.ReadSet)(nil).Incomplete()
}
