package answer_test

import (
	"bytes"
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/answer"
)

// state is the state of a store that counts its changes.
type state struct {
	// holds is asked instead of the basis, which is of no index here.
	valid func() bool
	// renewed is how often a newer state was taken.
	renewed int
	renew   func() bool
}

func (s *state) IsValid(context.Context, *query.Basis) bool { return s.valid() }

func (s *state) Renew(context.Context) bool {
	s.renewed++
	return s.renew()
}

func always() bool { return true }

func never() bool { return false }

// same is a state in which everything holds.
func same() *state { return &state{valid: always, renew: always} }

var key = answer.Key{Plan: 1, Variables: `{"n":1}`, Rights: "r"}

// made returns a result that may be kept.
func made(body string) answer.Result {
	return answer.Result{Body: []byte(body), Basis: &query.Basis{}, Steps: answer.DefaultMinSteps}
}

// execute asks for an answer that is not kept, and answers it.
func execute(t *testing.T, c *answer.Cache, k answer.Key, s answer.State, r answer.Result) answer.Outcome {
	t.Helper()
	kept, turn := c.Find(t.Context(), k, s)
	switch {
	case kept != nil:
		t.Fatalf("it is kept: %v", kept)
	case turn == nil:
		return c.Executed(k, &r)
	}
	return turn.End(r)
}

func TestCache_KeepsWhatIsAskedTwiceInOneState(t *testing.T) {
	var stats answer.Stats
	c := answer.New(answer.Config{Bytes: 1 << 20, Stats: &stats})
	for range 2 {
		if got := execute(t, c, key, same(), made("x")); got != answer.Unseen {
			t.Errorf("it became %v", got)
		}
	}
	kept, _ := c.Find(t.Context(), key, same())
	if kept == nil || string(kept.Body()) != "x" {
		t.Fatalf("it is not kept: %v", kept)
	}
	for _, other := range []answer.Key{
		{Plan: 2, Variables: key.Variables, Rights: key.Rights}, {Plan: 1, Rights: key.Rights}, {Plan: 1, Variables: key.Variables},
	} {
		execute(t, c, other, same(), made("y"))
	}
	if hits, unseen := stats[answer.Hit].Load(), stats[answer.Unseen].Load(); hits != 1 || unseen != 5 {
		t.Errorf("%d hits, %d new", hits, unseen)
	}
	if c.Size() == 0 {
		t.Error("it has no size")
	}
}

func TestCache_CopiesWhatItKeeps(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	r := made("before")
	execute(t, c, key, same(), r)
	execute(t, c, key, same(), r)
	copy(r.Body, "after")
	if kept, _ := c.Find(t.Context(), key, same()); string(kept.Body()) != "before" {
		t.Errorf("it is %s", kept.Body())
	}
}

func TestCache_KeepsNeither(t *testing.T) {
	for what, r := range map[string]struct {
		result answer.Result
		became answer.Outcome
	}{
		"an answer whose reads are not known": {answer.Result{Body: []byte("x"), Steps: 1e6}, answer.Unkept},
		"one that is too long":                {made(string(bytes.Repeat([]byte("x"), answer.MaxBody+1))), answer.Unkept},
		"one of little work":                  {answer.Result{Body: []byte("x"), Basis: &query.Basis{}, Steps: answer.DefaultMinSteps - 1}, answer.Small},
		"none":                                {answer.Result{Steps: 1e6}, answer.Unkept},
	} {
		t.Run(what, func(t *testing.T) {
			c := answer.New(answer.Config{Bytes: 8 << 20})
			for range 3 {
				if got := execute(t, c, key, same(), r.result); got != r.became {
					t.Errorf("it became %v", got)
				}
			}
			if c.Size() != 0 {
				t.Errorf("it takes %d bytes", c.Size())
			}
		})
	}
}

func TestCache_ReplacesWhatDoesNotHold(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	changed := &state{valid: never, renew: always}
	execute(t, c, key, same(), made("1"))
	execute(t, c, key, same(), made("1"))
	if kept, _ := c.Find(t.Context(), key, same()); kept == nil {
		t.Fatal("it is not kept")
	}
	if got := execute(t, c, key, changed, made("2")); got != answer.Changed {
		t.Errorf("it became %v", got)
	}
	if kept, _ := c.Find(t.Context(), key, same()); kept == nil || string(kept.Body()) != "2" {
		t.Fatalf("it is %v", kept)
	}
	// What cannot be kept any more is dropped.
	execute(t, c, key, changed, answer.Result{})
	execute(t, c, key, same(), made("3"))
}

func TestCache_IsBounded(t *testing.T) {
	const size = 1 << 20
	c := answer.New(answer.Config{Bytes: size})
	for i := range 2000 {
		k := answer.Key{Plan: uint64(i)}
		for range 2 {
			if kept, turn := c.Find(t.Context(), k, same()); kept == nil {
				turn.End(made(string(bytes.Repeat([]byte("x"), 10_000))))
			}
		}
		if got := c.Size(); got > size*5/4 {
			t.Fatalf("%d answers take %d bytes", i, got)
		}
	}
}

func TestCache_Close(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	execute(t, c, key, same(), made("1"))
	_, turn := c.Find(t.Context(), key, same())
	c.Close()
	turn.End(made("1"))
	if got := c.Size(); got != 0 {
		t.Errorf("it takes %d bytes", got)
	}
	(*answer.Cache)(nil).Close()
}

// asks executes equal queries at once, and returns how many were executed.
func asks(t *testing.T, c *answer.Cache, n int, s func() answer.State, r func(execution int) answer.Result) (executed int, answers []string) {
	t.Helper()
	var count atomic.Int32
	answers = make([]string, n)
	synctest.Test(t, func(t *testing.T) {
		var all sync.WaitGroup
		begin := make(chan struct{})
		for i := range n {
			all.Go(func() {
				kept, turn := c.Find(t.Context(), key, s())
				if kept != nil {
					answers[i] = string(kept.Body())
					return
				}
				at := int(count.Add(1))
				<-begin
				made := r(at)
				if turn != nil {
					turn.End(made)
				}
				answers[i] = string(made.Body)
			})
		}
		synctest.Wait()
		close(begin)
		all.Wait()
	})
	return int(count.Load()), answers
}

func TestFind_EqualQueriesAreExecutedOnce(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	executed, answers := asks(t, c, 100, func() answer.State { return same() }, func(int) answer.Result { return made("x") })
	if executed != 1 {
		t.Errorf("%d were executed", executed)
	}
	for _, a := range answers {
		if a != "x" {
			t.Fatalf("one was answered %q", a)
		}
	}
}

func TestFind_AFailureIsNotShared(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	executed, answers := asks(t, c, 10, func() answer.State { return same() }, func(execution int) answer.Result {
		if execution == 1 {
			return answer.Result{}
		}
		return made("x")
	})
	if executed < 2 {
		t.Errorf("%d were executed", executed)
	}
	empty := 0
	for _, a := range answers {
		if a == "" {
			empty++
		}
	}
	if empty != 1 {
		t.Errorf("%d were answered by a failure", empty)
	}
}

func TestFind_WhatDoesNotHoldIsNotShared(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	var states []*state
	var mu sync.Mutex
	executed, _ := asks(t, c, 5, func() answer.State {
		s := &state{valid: never, renew: always}
		mu.Lock()
		defer mu.Unlock()
		states = append(states, s)
		return s
	}, func(int) answer.Result { return made("x") })
	if executed != 5 {
		t.Errorf("%d were executed", executed)
	}
	renewed := 0
	for _, s := range states {
		renewed += s.renewed
	}
	if renewed == 0 {
		t.Error("none has looked for a newer state")
	}
}

func TestFind_OfAnOlderStateTakesANewerOne(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	executed, _ := asks(t, c, 5, func() answer.State {
		newest := false
		return &state{valid: func() bool { return newest }, renew: func() bool {
			newest = true
			return true
		}}
	}, func(int) answer.Result { return made("x") })
	if executed != 1 {
		t.Errorf("%d were executed", executed)
	}
}

func TestFind_EndsWithItsContext(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	_, turn := c.Find(t.Context(), key, same())
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if kept, second := c.Find(ctx, key, same()); kept != nil || second != nil {
		t.Errorf("it has %v, %v", kept, second)
	}
	turn.End(made("x"))
}

// TestFind_LeavesHalfOfTheTimeToItsCaller waits for one turn, and for one after another that cannot be shared.
func TestFind_LeavesHalfOfTheTimeToItsCaller(t *testing.T) {
	const whole = time.Minute
	for name, each := range map[string]time.Duration{"one turn": time.Hour, "one after another": whole / 5} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := answer.New(answer.Config{Bytes: 1 << 20})
				ctx, cancel := context.WithTimeout(t.Context(), whole)
				defer cancel()
				stop := make(chan struct{})
				var others sync.WaitGroup
				for range 5 {
					others.Go(func() {
						_, turn := c.Find(t.Context(), key, same())
						if turn == nil {
							return
						}
						select {
						case <-time.After(each):
						case <-stop:
						}
						turn.End(answer.Result{Interrupted: true})
					})
				}
				synctest.Wait()
				began := time.Now()
				kept, turn := c.Find(ctx, key, same())
				if turn != nil {
					turn.End(made("x"))
				}
				if waited := time.Since(began); kept != nil || waited > whole/2 {
					t.Errorf("it has waited %v and has %v", waited, kept)
				}
				close(stop)
				others.Wait()
			})
		})
	}
}

func TestFind_WhatCannotBeSharedIsNotWaitedFor(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	failed := answer.Result{Steps: answer.DefaultMinSteps}
	alone := func() bool {
		t.Helper()
		kept, turn := c.Find(t.Context(), key, same())
		if turn != nil {
			turn.End(answer.Result{Steps: answer.DefaultMinSteps, Interrupted: true})
		}
		return kept == nil && turn == nil
	}
	interrupted := failed
	interrupted.Interrupted = true
	execute(t, c, key, same(), interrupted)
	if alone() {
		t.Error("one whose caller has gone hides that others can share an answer")
	}
	execute(t, c, key, same(), failed)
	if !alone() {
		t.Error("a failure is waited for")
	}
	other := key
	other.Rights = "others"
	if _, turn := c.Find(t.Context(), other, same()); turn == nil {
		t.Error("it counts for callers of other rights")
	}
	execute(t, c, key, same(), made("x"))
	if alone() {
		t.Error("an answer that can be kept is not shared")
	}
}

func TestFind_WithoutTheSameRightsTakesNoTurn(t *testing.T) {
	c := answer.New(answer.Config{Bytes: 1 << 20})
	executed, _ := asks(t, c, 5, func() answer.State { return &state{valid: never, renew: never} }, func(int) answer.Result { return made("x") })
	if executed != 5 {
		t.Errorf("%d were executed", executed)
	}
	if kept, _ := c.Find(t.Context(), key, same()); kept == nil || string(kept.Body()) != "x" {
		t.Errorf("the one with a turn is not kept: %v", kept)
	}
}

func TestOutcome_HasAName(t *testing.T) {
	seen := map[string]bool{}
	for o := range answer.Outcomes {
		seen[fmt.Sprint(o)] = true
	}
	if len(seen) != int(answer.Outcomes) || seen[""] {
		t.Errorf("names are %v", seen)
	}
}
