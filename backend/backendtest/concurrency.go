package backendtest

import (
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
)

// workers calls run in n goroutines at the same time, and waits until all calls
// have returned.
func workers(n int, run func(worker int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { run(i) })
	}
	wg.Wait()
}

// applyAs is like apply, for concurrent workers. It makes the request id from
// worker and round.
func (f *fixture) applyAs(s Store, worker, round int, actions ...backend.Action) (backend.Result, error) {
	return s.Apply(f.ctx(), backend.Batch{
		RequestID: fmt.Sprintf("w%d-%d", worker, round), Deadline: f.clock.Now().Add(time.Second), Actions: actions,
	})
}

func concurrencyStatements() []statement {
	return []statement{
		{"20 workers that read and swap lose no increment", func(f *fixture) {
			f.start()
			handles := []Store{f.Store, f.in.Handle(f.Store)}
			f.must(create(key("sum"), "0"))
			workers(20, func(w int) {
				s, wins := handles[w%2], 0
				for round := 0; wins < 10; round++ {
					rs, err := s.Get(f.ctx(), key("sum"))
					if err != nil {
						f.Error(err)
						return
					}
					n, _ := strconv.Atoi(string(rs[0].Body[1:]))
					_, err = f.applyAs(
						s, w, round,
						with(put(key("sum"), strconv.Itoa(n+1)), backend.Condition{Revision: rs[0].Revision}),
					)
					switch {
					case err == nil:
						wins++
					case !errors.Is(err, backend.ErrConflict):
						f.Error(err)
						return
					}
				}
			})
			equal(f, string(f.get(key("sum")).Body), "j200")
			f.wantErr(handles[1].Close(), nil)
		}},
		{"of two that race for one revision exactly one wins", func(f *fixture) {
			f.start()
			for round := range 20 {
				rev := f.must(put(key("a"), "1")).Revisions[0]
				var mu sync.Mutex
				won := 0
				workers(2, func(w int) {
					_, err := f.applyAs(
						f.Store, w, round, with(put(key("a"), fmt.Sprint(w)), backend.Condition{Revision: rev}),
					)
					mu.Lock()
					defer mu.Unlock()
					if err == nil {
						won++
					} else if !errors.Is(err, backend.ErrConflict) {
						f.Error(err)
					}
				})
				equal(f, won, 1)
			}
		}},
		{"batches that do not conflict all succeed at the first try", func(f *fixture) {
			f.start()
			f.must(create(key("guard"), "1"))
			workers(60, func(w int) {
				_, err := f.applyAs(f.Store, w, 0,
					check(key("guard"), backend.Condition{Presence: backend.Present, NotDeleting: true}),
					create(key(fmt.Sprint("own-", w)), "1"))
				if err != nil {
					f.Error(err)
				}
			})
			equal(f, f.list(backend.Range{Kind: "Net", Count: true}).Count, 61)
		}},
		{"no read sees half a batch", func(f *fixture) {
			f.start()
			f.must(put(key("a"), "0"), put(key("b"), "0"))
			workers(4, func(w int) {
				for i := range 50 {
					if w == 0 {
						v := fmt.Sprint(i)
						a, b := put(key("a"), v), put(key("b"), v)
						a.Put.Deleting, b.Put.Deleting = i%2 == 0, i%2 == 0
						if _, err := f.applyAs(f.Store, w, i, a, b); err != nil {
							f.Error(err)
						}
						continue
					}
					rs, err := f.Get(f.ctx(), key("a"), key("b"))
					if err != nil || string(rs[0].Body) != string(rs[1].Body) {
						f.Errorf("a is %s, b is %s, error %v", rs[0].Body, rs[1].Body, err)
					}
					page, err := f.Range(f.ctx(), backend.Range{Kind: "Net", Deleting: true, Limit: 10})
					if err != nil || len(page.Resources) == 1 {
						f.Errorf("%d are being deleted, error %v", len(page.Resources), err)
					}
				}
			})
		}},
		{"watchers through two handles see the changes of many writers once, in order", func(f *fixture) {
			f.start()
			const writers, rounds, watchers = 16, 40, 6
			handles := []Store{f.Store, f.in.Handle(f.Store)}
			from := f.position()
			workers(writers+watchers, func(w int) {
				s := handles[w%2]
				if w < writers {
					for i := range rounds {
						k := key(fmt.Sprint("n", (w*rounds+i)%23))
						if _, err := f.applyAs(
							s, w, i, put(k, fmt.Sprintf("%d-%d", w, i)), put(key("all"), "1"),
						); err != nil {
							f.Error(err)
						}
					}
					return
				}
				watcher, err := s.Watch(f.ctx(), backend.Watch{From: from, MaxLag: 1 << 20})
				if err != nil {
					f.Error(err)
					return
				}
				defer watcher.Close()
				last := f.own(from)
				for last.Seq < 2*writers*rounds {
					d, err := watcher.Next(f.ctx())
					if err != nil {
						f.Error(err)
						return
					}
					for _, e := range d.Events {
						last.Seq++
						if e.Revision != last {
							f.Errorf("revision %s, want %s", e.Revision, last)
							return
						}
					}
				}
			})
			f.wantErr(handles[1].Close(), nil)
		}},
		{"writers, readers, purges and closings race without harm", func(f *fixture) {
			f.start(func(o *Options) { o.LogEntries = 50 })
			other := f.in.Handle(f.Store)
			workers(10, func(w int) {
				for i := range 30 {
					var err error
					switch w % 5 {
					case 0:
						_, err = f.applyAs(
							other, w, i,
							expiring(put(key(fmt.Sprint("n", i%4)), "1"), f.clock.Now().Add(time.Millisecond)),
						)
					case 1:
						_, err = other.Purge(f.ctx())
						f.clock.Advance(time.Millisecond)
					case 2:
						_, err = other.Range(f.ctx(), backend.Range{Kind: "Net", Limit: 3})
					case 3:
						var watcher backend.Watcher
						if watcher, err = other.Watch(f.ctx(), backend.Watch{}); err == nil {
							_, err = watcher.Next(f.ctx())
							watcher.Close()
						}
					case 4:
						if i == 20 {
							err = other.Close()
						}
					}
					if err != nil && !errors.Is(err, backend.ErrClosed) && !errors.Is(err, backend.ErrPositionExpired) {
						f.Error(err)
					}
				}
			})
			f.must(put(key("after"), "1"))
		}},
	}
}
