package index_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/memory"
)

// damaging is a store in which one record does not decode once it is damaged. The log has it.
type damaging struct {
	*memory.Store
	key     backend.Key
	damaged atomic.Bool
	// before is called once, before the first page of the key's kind is read.
	before func()
	once   sync.Once
}

func (s *damaging) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if r.Kind == s.key.Kind && !r.Count && s.before != nil {
		s.once.Do(s.before)
	}
	page, err := s.Store.Range(ctx, r)
	return s.damage(page), err
}

func (s *damaging) Ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	pages, err := s.Store.Ranges(ctx, rs)
	for i := range pages {
		pages[i] = s.damage(pages[i])
	}
	return pages, err
}

func (s *damaging) damage(page backend.Page) backend.Page {
	if i := slices.IndexFunc(page.Resources, func(r *backend.Resource) bool { return r.Key == s.key }); i >= 0 && s.damaged.Load() {
		page.Resources = slices.Delete(slices.Clone(page.Resources), i, i+1)
		page.Unreadable = append(page.Unreadable, s.key)
	}
	return page
}

func (s *damaging) Get(ctx context.Context, keys ...backend.Key) ([]*backend.Resource, error) {
	got, err := s.Store.Get(ctx, keys...)
	for i := range got {
		if keys[i] == s.key && s.damaged.Load() {
			if got[i] = nil; len(keys) == 1 {
				return nil, backend.ErrUnreadable
			}
		}
	}
	return got, err
}

func TestFill_AKindThatChangesFasterThanItIsReadIsGivenUpWithALine(t *testing.T) {
	s := &damaging{Store: openMemory(t).(*memory.Store), key: key("a")}
	f := &fixture{TB: t, store: s}
	f.put(s.key, "stored")
	logs, logged := observer.New(zap.WarnLevel)
	var err error
	if f.hub, err = hub.New(hub.Config{Store: s}); err != nil {
		t.Fatal(err)
	}
	if f.Index, err = index.New(index.Config{Store: s, Hub: f.hub, Kinds: []index.Definition{thing("Thing"), thing("Other")}, Logger: zap.New(logs)}); err != nil {
		t.Fatal(err)
	}
	s.before = func() {
		large, at := bodyOf(strings.Repeat("x", 1<<20)), f.hub.Position()
		d := backend.Delivery{Position: at}
		for range 70 {
			d.Events = append(d.Events, backend.Event{Type: backend.Added, Revision: at.Shard(0), Resource: &backend.Resource{Key: s.key, Body: large}})
		}
		f.Deliver(d)
	}
	f.run(f.hub.Run)
	f.run(f.Run)
	f.filled()
	v, _ := f.View(t.Context())
	if _, served := v.Kind("Thing"); served {
		t.Error("the kind is served")
	}
	if _, served := v.Kind("Other"); !served {
		t.Error("the other kind is not served")
	}
	all := logged.All()
	if len(all) != 1 || all[0].ContextMap()["kind"] != "Thing" || all[0].ContextMap()["limit"] != int64(64<<20) {
		t.Errorf("the log has %v", all)
	}
}

func TestFill_AChangeDoesNotOvertakeTheDamageThatFollowedIt(t *testing.T) {
	for _, c := range []struct {
		says  string
		taken bool // the change is in the trees before the page is read
	}{{"while it waits for the page", false}, {"after a page in which it was made", true}} {
		t.Run(c.says, func(t *testing.T) {
			s := &damaging{Store: openMemory(t).(*memory.Store), key: key("a")}
			f := &fixture{TB: t, store: s}
			f.put(s.key, "old")
			f.put(key("b"), "fine")
			if c.taken {
				for i := range backend.MaxLimit { // the key is on the second page
					f.put(backend.Key{Kind: "Thing", Namespace: "a", Name: fmt.Sprint(i)}, "")
				}
			}
			var err error
			if f.hub, err = hub.New(hub.Config{Store: s}); err != nil {
				t.Fatal(err)
			}
			if f.Index, err = index.New(index.Config{Store: s, Hub: f.hub, Kinds: []index.Definition{thing("Thing")}, Wait: time.Minute}); err != nil {
				t.Fatal(err)
			}
			s.before = func() {
				w, err := f.hub.Watch(context.Background(), hub.Watch{})
				if err != nil {
					panic(err)
				}
				defer w.Close()
				f.put(s.key, "newer")
				for received := false; !received; { // a watch receives a change after the index
					d, err := w.Next(context.Background())
					if err != nil {
						panic(err)
					}
					received = len(d.Events) > 0
				}
				s.damaged.Store(true)
			}
			f.run(f.hub.Run)
			f.run(f.Run)
			f.filled()
			_, k := f.view("Thing")
			if e := k.Get("ns", "a"); e == nil || !errors.Is(e.Err, backend.ErrUnreadable) {
				t.Errorf("the damaged one is %+v", e)
			}
			s.damaged.Store(false)
			f.put(s.key, "newest")
			if _, k = f.view("Thing"); k.Get("ns", "a") == nil || k.Get("ns", "a").Err != nil || k.Unreadable(index.Run{}) != 0 {
				t.Errorf("after its next change it is %+v", k.Get("ns", "a"))
			}
		})
	}
}

func TestFill_TheKeysOfChangesCountInTheMemory(t *testing.T) {
	f := start(t, openMemory(t), index.Config{Wait: time.Minute, Bytes: 1 << 20})
	for i := range 2000 {
		f.put(key(fmt.Sprintf("n%04d", i)), "x")
		f.remove(key(fmt.Sprintf("n%04d", i)))
		if i == 100 {
			if f.view("Thing"); f.Stats().Bytes < 200*64 {
				t.Errorf("after 200 changes it takes %d bytes", f.Stats().Bytes)
			}
		}
	}
	if f.view("Thing"); f.Stats().Bytes > 1<<20/16 {
		t.Errorf("they take %d bytes of 1 MiB", f.Stats().Bytes)
	}
}

// slow is a store that takes a second for each page of things, while it is slow.
type slow struct {
	*memory.Store
	is atomic.Bool
}

func (s *slow) Range(ctx context.Context, r backend.Range) (backend.Page, error) {
	if s.is.Load() && !r.Count && r.Kind == "Thing" {
		time.Sleep(2 * time.Second) // of the bubble
	}
	return s.Store.Range(ctx, r)
}

func TestFill_WhoWaitsTooLongIsToldWhenToComeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		s := &slow{Store: m}
		f := &fixture{TB: t, store: s}
		for i := range 10 * backend.MaxLimit {
			f.put(key(fmt.Sprint("n", i)), "x")
		}
		s.is.Store(true)
		if f.hub, err = hub.New(hub.Config{Store: s}); err != nil {
			t.Fatal(err)
		}
		if f.Index, err = index.New(index.Config{Store: s, Hub: f.hub, Kinds: []index.Definition{thing("Thing"), thing("Other")}}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var ran sync.WaitGroup
		defer ran.Wait()
		defer stop()
		ran.Go(func() { _ = f.hub.Run(ctx) })
		ran.Go(func() { _ = f.Run(ctx) })
		synctest.Wait()
		begin := time.Now()
		for _, kind := range []string{"Thing", "Other"} {
			_, _, err := f.Await(ctx, index.View{}, kind)
			var filling *index.FillingError
			if !errors.As(err, &filling) || filling.Kind != kind {
				t.Fatal(err)
			}
			// A page takes two seconds, and there are ten.
			if left := 20*time.Second - time.Since(begin); (filling.RetryAfter - left).Abs() > 3*time.Second {
				t.Errorf("%s: again after %v, and it takes %v", kind, filling.RetryAfter, left)
			}
			if lines := strings.Join(f.Progress(), "\n"); !strings.HasPrefix(lines, "Thing: ") || !strings.Contains(lines, fmt.Sprint(" of ", 10*backend.MaxLimit, " resources")) || !strings.HasSuffix(lines, "\nOther: waits") {
				t.Errorf("the progress is %q", lines)
			}
		}
		if err := f.Filled(ctx); err != nil || len(f.Progress()) > 0 || time.Since(begin) > 21*time.Second {
			t.Errorf("%v, %q after %v", err, f.Progress(), time.Since(begin))
		}
	})
}

func TestFill_AKindComesBackWhenItFitsWithAFifthToSpare(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m, err := memory.Open(memory.Config{})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = m.Close() }()
		f := &fixture{TB: t, store: m}
		body := strings.Repeat("x", 10_000)
		for i := range 101 {
			f.put(key(fmt.Sprint("n", i)), body)
		}
		if f.hub, err = hub.New(hub.Config{Store: m}); err != nil {
			t.Fatal(err)
		}
		const limit = 1_060_000 // some 100 of them
		if f.Index, err = index.New(index.Config{Store: m, Hub: f.hub, Kinds: []index.Definition{thing("Thing")}, Bytes: limit, Retry: time.Second}); err != nil {
			t.Fatal(err)
		}
		ctx, stop := context.WithCancel(t.Context())
		var ran sync.WaitGroup
		defer ran.Wait()
		defer stop()
		ran.Go(func() { _ = f.hub.Run(ctx) })
		ran.Go(func() { _ = f.Run(ctx) })
		served := func() bool {
			time.Sleep(5 * time.Minute) // of the bubble: longer than a kind rests
			synctest.Wait()
			return f.Stats().Served == 1
		}
		for n := 101; n > 0; n-- {
			back := served()
			switch {
			case n > 85 && back:
				t.Fatalf("it is back with %d resources", n)
			case n < 75 && !back:
				t.Fatalf("it is not back with %d resources", n)
			case back:
				return
			}
			f.remove(key(fmt.Sprint("n", n-1)))
		}
	})
}
