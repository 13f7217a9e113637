package redis_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
)

// outcome is what the caller of a batch was told.
type outcome uint8

const (
	acknowledged outcome = iota
	refused              // certainly not applied
	unknown
)

// attempt is a batch that was sent.
type attempt struct {
	outcome   outcome
	shard     int
	writes    int
	revisions []backend.Revision // of an acknowledged batch, without zeros
	deadline  time.Time
	err       error
}

// history is all that the writers were told, by request id.
type history struct {
	mu       sync.Mutex
	attempts map[string]*attempt
	counts   [3]int
}

func (h *history) add(id string, a *attempt) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.attempts[id] = a
	h.counts[a.outcome]++
}

func (h *history) acknowledged() int {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.counts[acknowledged]
}

// writer makes conditional batches on a few keys.
type writer struct {
	tr  *trial
	id  int
	rnd *rand.Rand
	n   int
}

func (w *writer) run(ctx context.Context) {
	for w.tr.gate.pass() {
		w.attempt(ctx)
		w.tr.gate.ended()
	}
}

// attempt reads a key or two and changes what it read.
func (w *writer) attempt(ctx context.Context) {
	st := w.tr.stores[w.rnd.IntN(len(w.tr.stores))]
	ns, first := w.rnd.IntN(namespaces), w.rnd.IntN(keysPerNamespace)
	keys := []backend.Key{faultKey(ns, first)}
	if w.rnd.IntN(4) == 0 {
		keys = append(keys, faultKey(ns, (first+1)%keysPerNamespace))
	}
	found, err := st.Get(ctx, keys...)
	if err != nil {
		if !errors.Is(err, backend.ErrUnavailable) && ctx.Err() == nil {
			w.tr.Errorf("get: %v", err)
		}
		found = make([]*backend.Resource, len(keys)) // act blindly
	}
	actions := make([]backend.Action, len(keys))
	for i, k := range keys {
		actions[i] = w.action(k, found[i])
	}
	w.n++
	w.tr.apply(ctx, st, backend.Batch{RequestID: fmt.Sprintf("w%d-%d", w.id, w.n), Deadline: st.Now().Add(batchDeadline), Actions: actions})
}

// action creates, replaces or deletes what was found, mostly at its revision.
func (w *writer) action(k backend.Key, found *backend.Resource) backend.Action {
	a := backend.Action{Key: k, Op: backend.OpPut, Put: w.put(k)}
	switch {
	case found == nil:
		a.If.Presence = backend.Absent
		return a
	case w.rnd.IntN(5) == 0:
		a.Op, a.Put = backend.OpDelete, backend.Put{}
	}
	// Without a condition a second judgement would be a second change.
	if w.rnd.IntN(3) > 0 {
		a.If.Revision = found.Revision
	}
	return a
}

func (w *writer) put(k backend.Key) backend.Put {
	refs := []backend.Ref{{Key: faultTarget(k, 0), Bound: w.rnd.IntN(2) == 0}}
	if w.rnd.IntN(2) == 0 {
		refs = append(refs, backend.Ref{Key: faultTarget(k, 1), Bound: true})
	}
	return backend.Put{
		UID: fmt.Sprint("uid", w.rnd.Uint32()), Caller: true, Deleting: w.rnd.IntN(4) == 0, Declared: "declared", Refs: refs,
		Body: backend.EncodeBody(fmt.Appendf(nil, "%d", w.rnd.Uint64())),
	}
}

// faultTarget is what resources in the namespace of k refer to.
func faultTarget(k backend.Key, i int) backend.Key {
	return backend.Key{Kind: "Target", Namespace: k.Namespace, Name: fmt.Sprint("t", i)}
}

// apply sends a batch once and keeps what it was told.
func (tr *trial) apply(ctx context.Context, st *redis.Store, b backend.Batch) *attempt {
	a := &attempt{shard: st.Shard(b.Actions[0].Key.Namespace), writes: len(b.Actions), deadline: b.Deadline}
	res, err := st.Apply(ctx, b)
	var condition *backend.ConditionError
	switch {
	case err == nil:
		a.outcome = acknowledged
		for _, r := range res.Revisions {
			if !r.IsZero() {
				a.revisions = append(a.revisions, r)
			}
		}
		if len(a.revisions) != a.writes {
			tr.Errorf("%s: %d revisions for %d writes", b.RequestID, len(a.revisions), a.writes)
		}
	case errors.As(err, &condition), errors.Is(err, backend.ErrDeadline), errors.Is(err, backend.ErrUnavailable):
		a.outcome = refused
	case errors.Is(err, backend.ErrUnknown), ctx.Err() != nil:
		a.outcome = unknown
	default:
		a.outcome = unknown
		tr.Errorf("%s: %v", b.RequestID, err)
	}
	a.err = err
	tr.history.add(b.RequestID, a)
	return a
}
