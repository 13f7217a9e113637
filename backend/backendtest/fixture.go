package backendtest

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
)

// Clock is a clock for tests. Its time changes only by Advance.
type Clock struct {
	mu  sync.Mutex
	now time.Time
}

func newClock() *Clock {
	return &Clock{now: time.Date(2025, 6, 1, 12, 0, 0, 123_456_789, time.UTC)}
}

// Now returns the present time of the clock.
func (c *Clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

// Advance moves the clock forward by d.
func (c *Clock) Advance(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

// fixture is one store under test.
type fixture struct {
	*testing.T
	open  Opener
	opts  Options
	clock *Clock
	in    Instance
	Store
	requests int
}

// start opens an empty store. The functions in set may change its options.
func (f *fixture) start(set ...func(*Options)) {
	f.Helper()
	f.opts = Options{Clock: f.clock.Now, Rand: rand.New(rand.NewPCG(1, 2))}
	for _, s := range set {
		s(&f.opts)
	}
	f.in = f.open(f.T, f.opts)
	f.reopen()
	f.Cleanup(func() { f.stop() })
}

// stop checks the data and closes the store.
func (f *fixture) stop() {
	f.Helper()
	if f.Store == nil {
		return
	}
	if f.in.Check != nil {
		if err := f.in.Check(f.Store); err != nil {
			f.Errorf("the data is inconsistent: %v", err)
		}
	}
	if err := f.Close(); err != nil {
		f.Errorf("close: %v", err)
	}
	f.Store = nil
}

// reopen opens the data. It is called by start, and may be called again after stop.
func (f *fixture) reopen() {
	f.Helper()
	s, err := f.in.Open()
	if err != nil {
		f.Fatalf("open: %v", err)
	}
	f.Store = s
}

// ctx returns a context that lasts as long as the test.
func (f *fixture) ctx() context.Context { return f.Context() }

func (f *fixture) batch(actions ...backend.Action) backend.Batch {
	f.requests++
	return backend.Batch{
		RequestID: fmt.Sprintf("request-%d", f.requests),
		Deadline:  f.clock.Now().Add(5 * time.Second),
		Actions:   actions,
	}
}

func (f *fixture) apply(actions ...backend.Action) (backend.Result, error) {
	return f.Apply(f.ctx(), f.batch(actions...))
}

func (f *fixture) must(actions ...backend.Action) backend.Result {
	f.Helper()
	res, err := f.apply(actions...)
	if err != nil {
		f.Fatalf("apply: %v", err)
	}
	return res
}

// refuse applies a batch. It expects the condition of one action to fail with cause,
// and nothing to change. action is the index of that action.
func (f *fixture) refuse(action int, cause error, actions ...backend.Action) *backend.ConditionError {
	f.Helper()
	before := f.position()
	_, err := f.apply(actions...)
	var ce *backend.ConditionError
	if !errors.Is(err, cause) || !errors.As(err, &ce) {
		f.Fatalf("apply: error %v, want a ConditionError of %v", err, cause)
	}
	if ce.Action != action || ce.Key != actions[action].Key {
		f.Fatalf("apply: action %d of %s failed, want %d of %s", ce.Action, ce.Key, action, actions[action].Key)
	}
	equal(f, f.position(), before)
	return ce
}

func (f *fixture) position() backend.Position {
	f.Helper()
	p, err := f.Position(f.ctx())
	if err != nil {
		f.Fatalf("position: %v", err)
	}
	return p
}

// shard returns the shard of the namespace that key uses.
func (f *fixture) shard() int {
	if s, ok := f.Store.(backend.Sharder); ok {
		return s.Shard(key("").Namespace)
	}
	return 0
}

// own returns the revision of this fixture's shard in a position.
func (f *fixture) own(p backend.Position) backend.Revision { return p.Shard(f.shard()) }

// at returns the present position with the revision r for this fixture's shard.
func (f *fixture) at(r backend.Revision) backend.Position { return f.position().With(f.shard(), r) }

// after returns the position of a result. It takes the revisions of other shards from
// the present position, because a result does not have them.
func (f *fixture) after(res backend.Result) backend.Position {
	f.Helper()
	now := f.position()
	equal(
		f, res.Position,
		backend.NewPosition(make([]backend.Revision, now.Shards())...).With(f.shard(), f.own(res.Position)),
	)
	return now.With(f.shard(), f.own(res.Position))
}

func (f *fixture) get(k backend.Key) *backend.Resource {
	f.Helper()
	rs, err := f.Get(f.ctx(), k)
	if err != nil || len(rs) != 1 {
		f.Fatalf("get %s: %d resources, error %v", k, len(rs), err)
	}
	return rs[0]
}

func (f *fixture) list(r backend.Range) backend.Page {
	f.Helper()
	if r.Limit == 0 && !r.Count {
		r.Limit = backend.MaxLimit
	}
	p, err := f.Range(f.ctx(), r)
	if err != nil {
		f.Fatalf("range %+v: %v", r, err)
	}
	return p
}

func (f *fixture) watch(from backend.Position) backend.Watcher {
	f.Helper()
	w, err := f.Watch(f.ctx(), backend.Watch{From: from})
	if err != nil {
		f.Fatalf("watch: %v", err)
	}
	f.Cleanup(w.Close)
	return w
}

func (f *fixture) next(w backend.Watcher) backend.Delivery {
	f.Helper()
	d, err := w.Next(f.ctx())
	if err != nil {
		f.Fatalf("next: %v", err)
	}
	return d
}

// replay returns all changes after the position, up to the caught-up mark.
func (f *fixture) replay(from backend.Position) []backend.Event {
	f.Helper()
	w := f.watch(from)
	var events []backend.Event
	for {
		d := f.next(w)
		events = append(events, d.Events...)
		if d.CaughtUp {
			return events
		}
	}
}

func (f *fixture) purge() int {
	f.Helper()
	n, err := f.Purge(f.ctx())
	if err != nil {
		f.Fatalf("purge: %v", err)
	}
	return n
}

func (f *fixture) wantErr(err, want error) {
	f.Helper()
	if !errors.Is(err, want) {
		f.Fatalf("error %v, want %v", err, want)
	}
}

// equal fails the test if got differs from want, and prints the differences.
func equal[T any](t testing.TB, got, want T) {
	t.Helper()
	if d := cmp.Diff(want, got); d != "" {
		t.Fatalf("want -, got +:\n%s", d)
	}
}

// key returns a key of the kind Net, which most tests use.
func key(name string) backend.Key { return backend.Key{Kind: "Net", Namespace: "default", Name: name} }

// put returns an action that stores a body under a key, without a condition.
func put(k backend.Key, body string) backend.Action {
	return backend.Action{
		Key: k,
		Op:  backend.OpPut,
		Put: backend.Put{
			UID:    "uid-" + k.Name[:min(len(k.Name), 8)],
			Caller: true,
			Body:   backend.EncodeBody([]byte(body)),
		},
	}
}

func create(k backend.Key, body string) backend.Action {
	return with(put(k, body), backend.Condition{Presence: backend.Absent})
}

func remove(k backend.Key) backend.Action { return backend.Action{Key: k, Op: backend.OpDelete} }

func check(k backend.Key, c backend.Condition) backend.Action { return backend.Action{Key: k, If: c} }

// with returns the action with a condition.
func with(a backend.Action, c backend.Condition) backend.Action {
	a.If = c
	return a
}

// deleting returns the put with a request to delete its resource.
func deleting(a backend.Action) backend.Action {
	a.Put.Deleting = true
	return a
}

// changed returns the put with a description of the state that it replaces, which must
// have the revision at.
func changed(a backend.Action, at backend.Revision, change []byte) backend.Action {
	a.If.Revision, a.Put.Change = at, change
	return a
}

// expiring returns the put with an expiry.
func expiring(a backend.Action, at time.Time) backend.Action {
	a.Put.ExpiresAt = at
	return a
}

// finalized returns the put with the number of finalizers that hold the resource.
func finalized(a backend.Action, n int) backend.Action {
	a.Put.Finalizers = &n
	return a
}

// names returns the names of the resources, in their order.
func names(rs []*backend.Resource) []string {
	out := make([]string, len(rs))
	for i, r := range rs {
		out[i] = r.Name
	}
	return out
}

// summary returns the type and the name of each event, such as "ADDED a".
func summary(events []backend.Event) []string {
	out := make([]string, len(events))
	for i, e := range events {
		out[i] = e.Type.String() + " " + e.Resource.Name
	}
	return out
}
