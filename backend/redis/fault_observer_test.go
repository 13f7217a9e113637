package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
)

// place of an event.
type place struct {
	shard    int
	revision backend.Revision
}

// sighting is an event as a watcher saw it.
type sighting struct {
	place
	request string
	what    string // type and key
}

// observer rebuilds the state of the store from a watch that it takes up again
// after every error, and fails on a gap or a repeat.
type observer struct {
	tr      *trial
	rnd     *rand.Rand
	gateway int
	parked  chan struct{} // closed when it waits

	mu sync.Mutex // guards what is below
	// parkAt is the number of events after which it waits until the fault is over; 0 means never.
	parkAt int
	pos    backend.Position
	state  map[backend.Key]*backend.Resource
	events []sighting
	// ends are the last revisions of epochs, as seen when the next began.
	ends map[place]bool
	// expired are its positions that had expired.
	expired []backend.Position
	err     error

	// confirm is, per shard, where the log was after the last list. What was
	// listed is certain when the watch comes by there, in the same epoch.
	confirm []backend.Revision
}

// Why an observer lets go of a watch.
var (
	errPark    = errors.New("park")
	errResume  = errors.New("resume from an event")
	errRelist  = errors.New("the listed state is not of this history")
	errWatched = errors.New("watch")
)

func newObserver(tr *trial, i int) *observer {
	o := &observer{
		tr: tr, rnd: rand.New(rand.NewPCG(tr.seed, uint64(1000+i))), gateway: i, parked: make(chan struct{}),
		pos: tr.start, state: map[backend.Key]*backend.Resource{}, ends: map[place]bool{}, confirm: make([]backend.Revision, tr.start.Shards()),
	}
	if i%2 != 0 { // at cursors all over the log
		o.parkAt = 1 + i*(prelude-1)/tr.watchers
	}
	return o
}

// parkLate lets each fourth watcher stop at a cursor among the next changes.
func (tr *trial) parkLate() {
	for i, o := range tr.watched {
		if i%4 == 2 {
			o.mu.Lock()
			o.parkAt = len(o.events) + 1 + o.rnd.IntN(30)
			o.mu.Unlock()
		}
	}
}

func (o *observer) run(ctx context.Context) {
	parked := false
	for ctx.Err() == nil {
		err := o.follow(ctx)
		var lagged *backend.LaggedError
		switch {
		case ctx.Err() != nil, errors.Is(err, errResume):
		case errors.Is(err, errPark):
			if !parked {
				parked = true
				close(o.parked)
				select {
				case <-o.tr.released:
				case <-ctx.Done():
				}
			}
		case errors.Is(err, errRelist):
			o.relist(ctx)
		case errors.Is(err, backend.ErrPositionExpired):
			o.mu.Lock()
			o.expired = append(o.expired, o.pos)
			o.mu.Unlock()
			o.relist(ctx)
		case errors.As(err, &lagged):
			if !lagged.Position.Equal(o.pos) {
				o.fail(fmt.Errorf("lagged at %v, not at %v", lagged.Position, o.pos))
			}
		case errors.Is(err, backend.ErrUnavailable):
			o.rest(ctx)
		default:
			o.fail(err)
			return
		}
	}
}

// rest is a client's pause before it tries again, at another gateway.
func (o *observer) rest(ctx context.Context) {
	o.gateway++
	select {
	case <-time.After(10 * time.Millisecond):
	case <-ctx.Done():
	}
}

func (o *observer) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.err = errors.Join(o.err, err)
}

// follow watches from the position until something ends it.
func (o *observer) follow(ctx context.Context) error {
	st := o.tr.stores[o.gateway%len(o.tr.stores)]
	w, err := st.Watch(ctx, backend.Watch{From: o.pos})
	if err != nil {
		return err
	}
	defer w.Close()
	for {
		d, err := w.Next(ctx)
		if err != nil {
			return err
		}
		if err := o.take(d); err != nil {
			return err
		}
	}
}

// take applies a delivery.
func (o *observer) take(d backend.Delivery) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	for i := range d.Events {
		e := &d.Events[i]
		if err := o.see(e); err != nil {
			return err
		}
		o.pos = e.Position
		if o.parkAt > 0 && len(o.events) >= o.parkAt && !closed(o.tr.released) {
			return errPark
		}
		if o.rnd.IntN(300) == 0 {
			return errResume
		}
	}
	for s := range d.Position.Shards() {
		at, was := d.Position.Shard(s), o.pos.Shard(s)
		if at.Compare(was) < 0 || at.Epoch == was.Epoch && at != was {
			return fmt.Errorf("%w: shard %d: a delivery that ends its events at %s has the position %s", errWatched, s, was, at)
		}
		o.pass(s, was, at)
		if want := o.confirm[s]; !want.IsZero() {
			if at.Epoch != want.Epoch {
				return errRelist
			}
			if at.Compare(want) >= 0 {
				o.confirm[s] = backend.Revision{}
			}
		}
	}
	o.pos = d.Position
	return nil
}

// pass notes where an epoch ended.
func (o *observer) pass(shard int, from, to backend.Revision) {
	if from.Epoch != to.Epoch && o.confirm[shard].IsZero() {
		o.ends[place{shard, from}] = true
	}
}

// see takes one event: the one after the last of its shard.
func (o *observer) see(e *backend.Event) error {
	key := e.Resource.Key
	shard := o.tr.stores[0].Shard(key.Namespace)
	last := o.pos.Shard(shard)
	next := e.Revision == backend.Revision{Epoch: last.Epoch, Seq: last.Seq + 1} || e.Revision.Epoch > last.Epoch && e.Revision.Seq == 1
	if !next {
		return fmt.Errorf("%w: shard %d: %s follows %s", errWatched, shard, e.Revision, last)
	}
	if e.Position.Shard(shard) != e.Revision {
		return fmt.Errorf("%w: event %s has the position %s", errWatched, e.Revision, e.Position.Shard(shard))
	}
	o.pass(shard, last, e.Revision)
	want := o.confirm[shard]
	if !want.IsZero() && e.Revision.Epoch != want.Epoch {
		return errRelist
	}
	known := o.state[key]
	if want.IsZero() {
		if err := fits(e, known); err != nil {
			return fmt.Errorf("%w: %s at %s: %w", errWatched, key, e.Revision, err)
		}
	}
	switch {
	case !want.IsZero() && known != nil && known.Revision.Compare(e.Revision) >= 0: // listed after it
	case e.Type == backend.Deleted:
		delete(o.state, key)
	default:
		o.state[key] = e.Resource
	}
	if want == e.Revision {
		o.confirm[shard] = backend.Revision{}
	}
	o.events = append(o.events, sighting{place{shard, e.Revision}, e.RequestID, e.Type.String() + " " + key.String()})
	return nil
}

// fits holds an event against the state before it.
func fits(e *backend.Event, known *backend.Resource) error {
	if (e.Type == backend.Added) != (known == nil) {
		return fmt.Errorf("%s where there is %v", e.Type, known != nil)
	}
	if known == nil {
		return nil
	}
	if d := cmp.Diff(backend.BeforeOf(known), e.Before); e.Type == backend.Modified && d != "" {
		return fmt.Errorf("the state before -, the event's +:\n%s", d)
	}
	if e.Type == backend.Deleted && e.Resource.Revision != known.Revision {
		return fmt.Errorf("deleted at %s, was at %s", e.Resource.Revision, known.Revision)
	}
	return nil
}

// relist begins again from a list.
func (o *observer) relist(ctx context.Context) {
	for ctx.Err() == nil {
		st := o.tr.stores[o.gateway%len(o.tr.stores)]
		before, err := st.Position(ctx)
		var state map[backend.Key]*backend.Resource
		if err == nil {
			state, err = list(ctx, st)
		}
		var after backend.Position
		if err == nil {
			after, err = st.Position(ctx)
		}
		switch {
		case err == nil && o.begin(before, after, state):
			return
		case err != nil && ctx.Err() == nil && !errors.Is(err, backend.ErrUnavailable):
			o.fail(fmt.Errorf("list: %w", err))
			return
		}
		o.rest(ctx)
	}
}

// begin takes a list that was made between two positions, if both are of one history.
func (o *observer) begin(before, after backend.Position, state map[backend.Key]*backend.Resource) bool {
	for s := range before.Shards() {
		if before.Shard(s).Epoch != after.Shard(s).Epoch {
			return false
		}
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	o.pos, o.state = before, state
	for s := range before.Shards() {
		o.confirm[s] = backend.Revision{}
		if before.Shard(s) != after.Shard(s) {
			o.confirm[s] = after.Shard(s)
		}
	}
	return true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
