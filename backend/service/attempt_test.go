package service_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestAttempt_ALostAnswerIsFoundInTheLogAndALostRequestIsSentAnew(t *testing.T) {
	for _, what := range []fault{replyLost, requestLost, delayed, twice} {
		for _, runs := range []bool{true, false} {
			t.Run(fmt.Sprintf("%s, hub runs: %v", what, runs), func(t *testing.T) {
				onABadLine(t, memory.Config{}, runs, func(f *badLine) {
					for name, write := range f.verbs() {
						_ = f.discard("a")
						_ = f.discard("new")
						r := f.CreateWidget("a", `{"title":"theirs"}`).Resource.Stored
						from, begin := f.at(), time.Now()
						f.faults(what)
						out, err := write(f.T.Context(), r.Revision.String())
						if err != nil {
							f.T.Errorf("%s: %v", name, err)
							continue
						}
						took := time.Since(begin)
						f.line.wg.Wait()
						events := f.ours(from)
						if len(events) != 1 || events[0].Resource.Revision != out.Resource.Stored.Revision || events[0].Resource.UID != out.Resource.Stored.UID {
							f.T.Errorf("%s: told %+v, the log has %d changes", name, out.Resource.Stored, len(events))
						}
						if want := map[fault]time.Duration{replyLost: 0, delayed: 2 * time.Second}[what]; want != took && (what == replyLost || what == delayed) {
							f.T.Errorf("%s: took %v, want %v", name, took, want)
						}
					}
					for _, err := range f.line.late {
						if (what == twice || what == replyLost) && !errors.Is(err, backend.ErrDeadline) {
							f.T.Errorf("what came late: %v", err)
						}
					}
				})
			})
		}
	}
}

// discard removes a widget on a good line.
func (f *badLine) discard(name string) error {
	_, err := f.Store.Apply(f.T.Context(), backend.Batch{
		RequestID: "discard", Deadline: time.Now().Add(time.Second),
		Actions: []backend.Action{{Key: backend.Key{Kind: "Widget", Namespace: "default", Name: name}, Op: backend.OpDelete}},
	})
	return err
}

func TestAttempt_WhatOthersDidBeforeALostRequestIsSentAnewIsJudgedAnew(t *testing.T) {
	change := func(f *badLine) {
		f.Rewrite("a", true, func(tree map[string]any) { tree["spec"].(map[string]any)["title"] = "others" })
		f.Put(backend.Key{Kind: "Widget", Namespace: "default", Name: "new"}, backend.Put{UID: "others", Caller: true, Body: f.Stored("a").Body})
	}
	remove := func(f *badLine) { _ = f.discard("a") }
	for verb, c := range map[string]struct {
		meanwhile func(*badLine)
		want      failure.Code // "" for done
	}{
		"create":               {change, failure.CodeAlreadyExists},
		"update":               {change, failure.CodeConflict},
		"patch":                {remove, failure.CodeNotFound},
		"upsert":               {remove, ""},
		"upsert of a new one":  {change, ""},
		"status":               {change, failure.CodeConflict},
		"delete":               {remove, failure.CodeNotFound},
		"delete at a revision": {change, failure.CodeConflict},
	} {
		t.Run(verb, func(t *testing.T) {
			onABadLine(t, memory.Config{}, true, func(f *badLine) {
				r := f.CreateWidget("a", `{"title":"theirs"}`).Resource.Stored
				from := f.at()
				f.faults(twice)
				f.line.wg.Go(func() {
					time.Sleep(time.Second) // of the bubble
					c.meanwhile(f)
				})
				_, err := f.verbs()[verb](f.T.Context(), r.Revision.String())
				f.line.wg.Wait()
				want := 1
				if c.want != "" {
					servicetest.WantCode(f.T, err, c.want)
					want = 0
				} else if err != nil {
					f.T.Error(err)
				}
				if n := len(f.ours(from)); n != want {
					f.T.Errorf("%d changes, want %d", n, want)
				}
			})
		})
	}
}

func TestAttempt_ALateDuplicateOfACreateThatAnotherClientUndidIsRefused(t *testing.T) {
	onABadLine(t, memory.Config{}, true, func(f *badLine) {
		from := f.at()
		f.faults(replyLost)
		f.CreateWidget("a", `{"title":"A"}`)
		if err := f.discard("a"); err != nil {
			f.T.Fatal(err)
		}
		f.line.wg.Wait() // the duplicate has come
		if f.Stored("a") != nil || len(f.ours(from)) != 1 || !errors.Is(f.line.late[0], backend.ErrDeadline) {
			f.T.Errorf("the duplicate was applied: %v", f.line.late)
		}
	})
}

func TestAttempt_ALostAnswerOverAnExpiredNamesakeIsTheNewResource(t *testing.T) {
	onABadLine(t, memory.Config{PurgeInterval: time.Hour}, true, func(f *badLine) {
		create := func() *service.Written {
			out, err := f.Writer.Create(f.T.Context(), service.CreateRequest{
				Identity: kind.Identity{Kind: "Cluster", Name: "a"}, Spec: map[string]any{"title": "A"},
				Metadata: service.Metadata{ExpiresAt: service.Optional[time.Time]{Set: true, Value: time.Now().Add(time.Minute)}},
			})
			if err != nil {
				f.T.Fatal(err)
			}
			return out
		}
		first := create().Resource.Stored
		time.Sleep(2 * time.Minute) // of the bubble
		f.faults(replyLost)
		second := create().Resource.Stored
		if second.UID == first.UID || second.Revision.Seq != first.Revision.Seq+2 {
			f.T.Errorf("told %s %s after %s %s", second.UID, second.Revision, first.UID, first.Revision)
		}
	})
}

func TestAttempt_WhatNobodyCanTellIsUnknownAndNotToBeRepeated(t *testing.T) {
	unreachable := func(f *badLine, down bool) {
		f.line.mu.Lock()
		defer f.line.mu.Unlock()
		f.line.down = down
	}
	short := func(ctx context.Context) (context.Context, context.CancelFunc) {
		return context.WithTimeout(ctx, time.Second)
	}
	for name, c := range map[string]struct {
		meanwhile func(*badLine)
		limit     func(context.Context) (context.Context, context.CancelFunc)
		took      time.Duration // most
	}{
		"the log was trimmed":         {func(f *badLine) { f.trim() }, context.WithCancel, 10 * time.Second},
		"the store cannot be reached": {func(f *badLine) { unreachable(f, true) }, context.WithCancel, 31 * time.Second},
		"the request is over":         {func(*badLine) {}, short, time.Second},
		"the replicas do not take it": {func(f *badLine) { f.line.synced = backend.ErrUnavailable }, context.WithCancel, 31 * time.Second},
		"the store was closed":        {func(f *badLine) { _ = f.Store.Close() }, context.WithCancel, time.Second},
	} {
		for _, what := range []fault{replyLost, requestLost} {
			if name == "the request is over" && what == replyLost || name == "the replicas do not take it" && what == requestLost {
				continue // that is found
			}
			t.Run(fmt.Sprintf("%s, %s", name, what), func(t *testing.T) {
				onABadLine(t, memory.Config{LogEntries: 10}, true, func(f *badLine) {
					f.faults(what)
					f.line.sent = func() { c.meanwhile(f) }
					ctx, cancel := c.limit(f.T.Context())
					defer cancel()
					begin := time.Now()
					_, err := f.Writer.Create(ctx, service.CreateRequest{Identity: servicetest.Named("a"), Spec: map[string]any{"title": "A"}})
					e := servicetest.WantCode(f.T, err, failure.CodeUnavailable)
					if e.Outcome != failure.OutcomeUnknown || e.Retryable {
						f.T.Errorf("%+v", e)
					}
					if took := time.Since(begin); took > c.took {
						f.T.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

// trim overwrites the log.
func (f *badLine) trim() {
	for range 20 {
		f.Put(backend.Key{Kind: "Widget", Namespace: "default", Name: "other"}, backend.Put{UID: "u", Body: []byte("j{}")})
	}
}

func TestAttempt_AnAnswerThatIsFoundIsGivenWhenItIsDurable(t *testing.T) {
	onABadLine(t, memory.Config{}, true, func(f *badLine) {
		f.faults(replyLost)
		f.line.synced = backend.ErrUnavailable
		f.line.wg.Go(func() {
			time.Sleep(3 * time.Second) // of the bubble
			f.line.mu.Lock()
			defer f.line.mu.Unlock()
			f.line.synced = nil
		})
		begin := time.Now()
		f.CreateWidget("a", `{"title":"A"}`)
		if took := time.Since(begin); took < 3*time.Second || f.line.syncs < 2 {
			f.T.Errorf("told after %v and %d syncs", took, f.line.syncs)
		}
	})
}

// TestAttempt_WhatIsToldIsTrue races clients on bad lines. Each write that is said to be
// done is one change, one that is said to have failed is none, and nothing but
// what nobody can tell is left over.
func TestAttempt_WhatIsToldIsTrue(t *testing.T) {
	for seed := range uint64(4) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			onABadLine(t, memory.Config{}, true, func(f *badLine) {
				rnd := rand.New(rand.NewPCG(seed, 1))
				f.line.next = func() fault { return fault(max(rnd.IntN(12)-7, 0)) }
				from := f.at()
				var mu sync.Mutex
				answered := map[backend.Revision]int{}
				acknowledged, unknown, failed := 0, 0, 0
				var wg sync.WaitGroup
				for client := range 6 {
					mine := rand.New(rand.NewPCG(seed, uint64(client+2)))
					wg.Go(func() {
						for range 25 {
							out, err := f.any(mine)
							var e *failure.Error
							mu.Lock()
							switch {
							case err == nil && out.Outcome == service.Unchanged:
							case err == nil && out.Outcome == "":
								acknowledged++ // a delete has a revision of its own
							case err == nil:
								acknowledged++
								answered[out.Resource.Stored.Revision]++
							case errors.As(err, &e) && e.Outcome == failure.OutcomeUnknown:
								unknown++
							case errors.As(err, &e) && e.Code != failure.CodeInternal:
								failed++
							default:
								f.T.Error(err)
							}
							mu.Unlock()
						}
					})
				}
				wg.Wait()
				f.line.wg.Wait()
				events := f.ours(from)
				if n := len(events); n < acknowledged || n > acknowledged+unknown {
					f.T.Errorf("%d changes, %d acknowledged, %d unknown", n, acknowledged, unknown)
				}
				seen := map[backend.Revision]bool{}
				ids := map[string]int{}
				for _, e := range events {
					seen[e.Revision] = true
					if ids[e.RequestID]++; ids[e.RequestID] > 1 {
						f.T.Errorf("request %s was applied %d times", e.RequestID, ids[e.RequestID])
					}
				}
				for r, n := range answered {
					if n > 1 || !seen[r] {
						f.T.Errorf("revision %s was told %d times and is in the log: %v", r, n, seen[r])
					}
				}
				f.T.Logf("%d acknowledged, %d unknown, %d failed, %d changes", acknowledged, unknown, failed, len(events))
			})
		})
	}
}

// any is a random write of one of three widgets, given up after some time.
func (f *badLine) any(rnd *rand.Rand) (*service.Written, error) {
	ctx, cancel := context.WithTimeout(f.T.Context(), time.Duration(1+rnd.IntN(30))*time.Second)
	defer cancel()
	id, spec := servicetest.Named(fmt.Sprint("w", rnd.IntN(3))), map[string]any{"title": fmt.Sprint(rnd.IntN(1000))}
	revision := ""
	if r := f.Stored(id.Name); r != nil {
		revision = r.Revision.String()
	}
	switch rnd.IntN(5) {
	case 0:
		return f.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: spec})
	case 1:
		return f.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: spec})
	case 2:
		return f.Writer.Upsert(ctx, service.UpsertRequest{Identity: id, Spec: spec})
	case 3:
		return f.Writer.UpdateStatus(ctx, service.StatusRequest{Identity: id, ExpectedRevision: revision, Status: spec})
	}
	return f.Writer.Delete(ctx, service.DeleteRequest{Identity: id})
}
