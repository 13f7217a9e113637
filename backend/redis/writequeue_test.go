package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// resultText describes the result of a batch without the revisions, which depend on the order.
func resultText(res backend.Result, err error) string {
	if err != nil {
		for _, is := range []error{backend.ErrNotFound, backend.ErrExists, backend.ErrConflict, backend.ErrDeleting, backend.ErrNotDeleting, backend.ErrFinalized, backend.ErrDeadline} {
			if errors.Is(err, is) {
				return is.Error()
			}
		}
		return "unexpected: " + err.Error()
	}
	var out []string
	for _, r := range res.Resources {
		if r != nil {
			out = append(out, fmt.Sprint(r.Key, r.UID, r.Deleting, r.Finalizers, r.ExpiresAt, r.CreatedAt, r.UpdatedAt, r.Refs, string(r.Body), r.SpecRevision == r.Revision))
		}
	}
	return strings.Join(out, "\n")
}

func TestWritequeue_BatchesOfCallersThatComeTogetherAreJudgedAsThoseOfOthers(t *testing.T) {
	t.Parallel()
	s := server.Server(t)
	var ways [2][]string
	for way := range ways {
		var ms atomic.Int64
		ms.Store(1_750_000_000_000)
		clock := func() time.Time { return time.UnixMilli(ms.Load()).UTC() }
		st, err := redis.Open(t.Context(), redis.Config{
			URL: s.URL(), Prefix: redistest.Prefix(), Clock: clock, LogEntries: 40, LogSlack: 3, LogAge: 3 * time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = st.Close() })
		rnd := rand.New(rand.NewPCG(3, 3))
		var said []string
		for round := range 150 {
			var batches []backend.Batch
			used := map[backend.Key]bool{}
			for len(batches) < 1+round%6 {
				a := randomPut(rnd, st, t)
				if used[a.Key] { // the order of those under one key decides what they do
					continue
				}
				used[a.Key] = true
				b := backend.Batch{RequestID: fmt.Sprint("r", round, "-", len(batches)), Deadline: clock().Add(time.Minute), Actions: []backend.Action{a}}
				switch rnd.IntN(8) {
				case 0:
					b.Deadline = clock().Add(-time.Second)
				case 1:
					b.Actions = append(b.Actions, backend.Action{Key: backend.Key{Kind: "Absent", Namespace: "ns", Name: "n"}, If: backend.Condition{Presence: backend.Absent}})
				}
				batches = append(batches, b)
			}
			if way == 0 {
				for _, b := range batches {
					said = append(said, resultText(st.Apply(t.Context(), b)))
				}
			} else {
				out, err := st.ApplyTogether(t.Context(), batches)
				if err != nil {
					t.Fatal(err)
				}
				for _, o := range out {
					said = append(said, resultText(o.Result, o.Err))
				}
			}
			ms.Add(rnd.Int64N(4) * rnd.Int64N(500))
		}
		if err := st.Check(t.Context()); err != nil {
			t.Error(err)
		}
		ways[way] = said
	}
	if d := cmp.Diff(ways[0], ways[1]); d != "" {
		t.Errorf("by themselves -, together +:\n%s", d)
	}
	if all := strings.Join(ways[0], "\n"); strings.Contains(all, "unexpected") {
		t.Error(all)
	}
}

// onlyPut is a batch that puts one resource.
func onlyPut(st *redis.Store, name string) backend.Batch {
	return backend.Batch{RequestID: name, Deadline: st.Now().Add(time.Minute), Actions: []backend.Action{{
		Key: backend.Key{Kind: "Net", Namespace: "ns", Name: name}, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte(name))},
	}}}
}

// scripts is how many scripts that change something the server has executed.
func scripts(t *testing.T, s *redistest.Server) (n int) {
	info := s.Client().Info(t.Context(), "commandstats").Val()
	_, rest, _ := strings.Cut(info, "cmdstat_evalsha:calls=")
	_, _ = fmt.Sscan(rest, &n)
	return n
}

func TestWritequeue_WritersThatWaitForTheServerTravelTogether(t *testing.T) {
	t.Parallel()
	const callers = 30
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	if _, err := st.Apply(t.Context(), onlyPut(st, "first")); err != nil {
		t.Fatal(err)
	}
	before := scripts(t, s)
	s.Stop()
	impatient, stop := context.WithCancel(t.Context())
	var calls sync.WaitGroup
	queued := func(n int) {
		redistest.Await(t, "the calls to wait", func() error {
			if got := st.Waiting(t.Context(), "ns"); got != n {
				return fmt.Errorf("%d calls wait", got)
			}
			return nil
		})
	}
	put := func(ctx context.Context, name string, want error) {
		b := onlyPut(st, name)
		calls.Go(func() {
			if _, err := st.Apply(ctx, b); !errors.Is(err, want) || errors.Is(err, backend.ErrUnknown) {
				t.Errorf("%s: error %v", name, err)
			}
		})
	}
	put(t.Context(), "sent", nil)
	redistest.Await(t, "the first call to be sent", func() error {
		if st.Senders(t.Context(), "ns") == 0 || st.Waiting(t.Context(), "ns") > 0 {
			return errors.New("not yet")
		}
		return nil
	})
	put(impatient, "given-up", context.Canceled)
	queued(1)
	stop()
	queued(0)
	for i := range callers / 2 {
		put(t.Context(), fmt.Sprint("n", i), nil)
	}
	queued(callers / 2)
	s.Cont()
	calls.Wait()
	if n := scripts(t, s) - before; n > 3 {
		t.Errorf("%d scripts for %d batches", n, callers/2+1)
	}
	for name, there := range map[string]bool{"sent": true, "given-up": false, "n0": true, "n14": true} {
		got, err := st.Get(t.Context(), backend.Key{Kind: "Net", Namespace: "ns", Name: name})
		if err != nil || (got[0] != nil) != there {
			t.Errorf("%s: %v, error %v", name, got, err)
		}
	}
}

func TestWritequeue_ALostReplyIsThatOfItsCallAndOfThoseBehindIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	p := redistest.NewProxy(t, s.Addr)
	st, err := redis.Open(t.Context(), redis.Config{URL: p.URL()})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	var batches []backend.Batch
	for _, name := range []string{"answered", "lost", "behind"} {
		b := onlyPut(st, name)
		b.Actions = append(b.Actions, onlyPut(st, name+"-too").Actions[0]) // it travels in a script of its own
		batches = append(batches, b)
	}
	if _, err := st.Apply(t.Context(), onlyPut(st, "first")); err != nil { // the server knows the script
		t.Fatal(err)
	}
	lost := p.DropReplies(1, redistest.Containing("\x02lost\x00"))
	out, err := st.ApplyTogether(t.Context(), batches)
	if err != nil {
		t.Fatal(err)
	}
	<-lost
	if out[0].Err != nil || len(out[0].Result.Resources) != 2 {
		t.Errorf("the answered one: %+v", out[0])
	}
	for _, o := range out[1:] {
		if o.Err == nil {
			t.Errorf("a lost one: %+v", o)
		}
	}
}

func TestWritequeue_AFullLogIsTrimmedByTheScriptThatFillsIt(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t)
	st, err := redis.Open(t.Context(), redis.Config{URL: s.URL(), LogEntries: 10, LogSlack: 5})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = st.Close() })
	const rounds, together = 6, 8
	var first int
	for round := range rounds {
		var batches []backend.Batch
		for i := range together {
			batches = append(batches, onlyPut(st, fmt.Sprint(round, "-", i)))
		}
		out, err := st.ApplyTogether(t.Context(), batches)
		if err != nil {
			t.Fatal(err)
		}
		for _, o := range out {
			if o.Err != nil {
				t.Error(o.Err)
			}
		}
		if round == 0 {
			first = scripts(t, s) // with the one whose source the server did not know
		}
	}
	if n := scripts(t, s) - first; n != rounds-1 {
		t.Errorf("%d groups took %d scripts", rounds-1, n)
	}
	if kept, err := s.Client().HGet(t.Context(), "sluice:m:{0}", "count").Int(); err != nil || kept < 10 || kept > 15 {
		t.Errorf("the log has %d entries, %v", kept, err)
	}
	if err := st.Check(t.Context()); err != nil {
		t.Error(err)
	}
}
