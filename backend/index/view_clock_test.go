package index_test

import (
	"context"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// lateHead is a store whose head is asked for while something else happens, once.
type lateHead struct {
	*memory.Store
	beside atomic.Pointer[func(ask func())]
}

func (s *lateHead) Head(ctx context.Context) (head backend.Position, err error) {
	ask := func() { head, err = s.Store.Position(ctx) }
	if beside := s.beside.Swap(nil); beside != nil {
		(*beside)(ask)
	} else {
		ask()
	}
	return head, err
}

// TestView_WhatAViewLacksHadExpiredByItsClock, also if the kind is filled, or the store purged, after the view has asked for the
// head.
func TestView_WhatAViewLacksHadExpiredByItsClock(t *testing.T) {
	for how, refills := range map[string]bool{"refilled": true, "purged": false} {
		for _, which := range []string{"current", "later", "awaited"} {
			t.Run(how+" "+which, func(t *testing.T) { testViewsClock(t, refills, which) })
		}
	}
}

func testViewsClock(t *testing.T, refills bool, which string) {
	const expiry = 10
	var clock atomic.Int64
	inner, err := memory.Open(memory.Config{Clock: func() time.Time { return time.Unix(clock.Load(), 0) }})
	s := &lateHead{Store: inner}
	f := start(t, opened(t, s, err), index.Config{Wait: time.Minute})
	put := backend.Put{UID: "u", Body: bodyOf("x"), ExpiresAt: time.Unix(expiry, 0)}
	if _, err := f.apply(backend.Action{Key: key("a"), Op: backend.OpPut, Put: put}); err != nil {
		t.Fatal(err)
	}
	before, _ := f.view("Thing")
	beside := func(ask func()) {
		if which == "later" {
			f.put(key("b"), "x")
		}
		ask()
		clock.Store(expiry)
		if refills {
			f.beginAgain()
			f.filled()
		} else if n, err := s.Purge(t.Context()); n != 1 || err != nil {
			t.Errorf("purged %d: %v", n, err)
		}
		head, err := s.Position(t.Context())
		if err != nil {
			t.Error(err)
		}
		for now := f.Current(); !now.Position().Equal(head); now = f.Current() {
			runtime.Gosched()
		}
	}
	s.beside.Store(&beside)
	v, ok := index.View{}, false
	if which == "awaited" {
		v, ok, err = f.Await(t.Context(), before, "Thing")
	} else {
		v, ok = f.View(t.Context())
	}
	k, served := v.Kind("Thing")
	if !ok || err != nil || !served {
		t.Fatalf("%v %v %v", ok, served, err)
	}
	if shown := k.Get("ns", "a") != nil; !shown && v.Now().Unix() < expiry {
		t.Errorf("it is not shown, and expires at %d; the clock is %d", expiry, v.Now().Unix())
	}
}
