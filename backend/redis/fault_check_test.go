package redis_test

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/internal/redistest"
)

// awaitParked returns when every watcher that is to stop has stopped.
func (tr *trial) awaitParked() {
	tr.Helper()
	for i, o := range tr.watched {
		redistest.Await(tr, fmt.Sprintf("watcher %d at its cursor", i), func() error {
			o.mu.Lock()
			defer o.mu.Unlock()
			if o.err == nil && o.parkAt > 0 && !closed(o.parked) {
				return fmt.Errorf("%d of %d events", len(o.events), o.parkAt)
			}
			return nil
		})
	}
}

// finish writes a last resource into each namespace, waits until every watcher
// has seen it, and judges.
func (tr *trial) finish() {
	tr.Helper()
	tr.settle()
	markers := map[backend.Key]backend.Revision{}
	for ns := range namespaces {
		tries := 0
		redistest.Await(tr, "a last write", func() error {
			tries++
			k, st := markerKey(ns), tr.stores[tries%len(tr.stores)]
			a := tr.apply(tr.Context(), st, backend.Batch{
				RequestID: fmt.Sprintf("marker-%d-%d", ns, tries), Deadline: st.Now().Add(batchDeadline),
				Actions: []backend.Action{{Key: k, Op: backend.OpPut, Put: backend.Put{UID: "u", Body: backend.EncodeBody([]byte("0"))}}},
			})
			switch a.outcome {
			case acknowledged:
				markers[k] = a.revisions[0]
			case unknown:
				tr.settle() // it must not come after the one that is acknowledged
			}
			return a.err
		})
	}
	for i, o := range tr.watched {
		redistest.Await(tr, fmt.Sprintf("watcher %d at the end", i), func() error { return o.reached(markers) })
	}
	tr.stopWatch()
	tr.checkStates()
	tr.checkHistory()
	expired := tr.expiredWatchers()
	if expired > 0 && !tr.expires {
		tr.Errorf("the positions of %d watchers have expired", expired)
	}
	h := tr.history.counts
	tr.Logf("%d acknowledged, %d refused, %d unknown; %d watchers, %d of them must list again", h[acknowledged], h[refused], h[unknown], len(tr.watched), expired)
}

// expiredWatchers returns the number of watchers whose position has expired.
func (tr *trial) expiredWatchers() int {
	n := 0
	for _, o := range tr.watched {
		o.mu.Lock()
		if len(o.expired) > 0 {
			n++
		}
		o.mu.Unlock()
	}
	return n
}

// settle returns when no batch of unknown outcome can be judged any more.
func (tr *trial) settle() {
	tr.Helper()
	var last time.Time
	tr.history.mu.Lock()
	for _, a := range tr.history.attempts {
		if a.outcome == unknown && a.deadline.After(last) {
			last = a.deadline
		}
	}
	tr.history.mu.Unlock()
	redistest.Await(tr, "the deadline of batches of unknown outcome", func() error {
		if now := tr.stores[0].Now(); !now.After(last) {
			return fmt.Errorf("it is %v, and not %v", now, last)
		}
		return nil
	})
}

// reached reports whether the watcher has seen the last writes.
func (o *observer) reached(markers map[backend.Key]backend.Revision) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return nil // judged later
	}
	for k, want := range markers {
		if r := o.state[k]; r == nil || r.Revision != want {
			return fmt.Errorf("%s is not at %s; the position of its shard is %s", k, want, o.pos.Shard(o.tr.stores[0].Shard(k.Namespace)))
		}
	}
	return nil
}

// list reads all resources by name.
func list(ctx context.Context, st *redis.Store) (map[backend.Key]*backend.Resource, error) {
	out := map[backend.Key]*backend.Resource{}
	for _, kind := range faultKinds() {
		p, err := st.Range(ctx, backend.Range{Kind: kind, Limit: backend.MaxLimit})
		if err != nil {
			return nil, err
		}
		for _, r := range p.Resources {
			out[r.Key] = r
		}
	}
	return out, nil
}

// checkStates compares the store with itself and every watcher with the store.
func (tr *trial) checkStates() {
	tr.Helper()
	for i, st := range tr.stores {
		want, err := list(tr.Context(), st)
		if err != nil {
			tr.Fatalf("list at gateway %d: %v", i, err)
		}
		tr.checkIndexes(st, want)
		if err := st.Check(tr.Context()); err != nil && !tr.unchecked {
			tr.Errorf("check at gateway %d: %v", i, err)
		}
		for n, o := range tr.watched {
			o.mu.Lock()
			if o.err != nil {
				tr.Errorf("watcher %d: %v", n, o.err)
			} else if d := cmp.Diff(want, o.state); d != "" {
				tr.Errorf("watcher %d (%d positions expired) and gateway %d differ:\n%s", n, len(o.expired), i, d)
			}
			o.mu.Unlock()
		}
	}
}

// checkIndexes wants from the index of references those who have one, and of deletions
// those that are being deleted.
func (tr *trial) checkIndexes(st *redis.Store, all map[backend.Key]*backend.Resource) {
	tr.Helper()
	equal := func(r backend.Range, wanted func(*backend.Resource) bool) {
		tr.Helper()
		r.Limit = backend.MaxLimit
		p, err := st.Range(tr.Context(), r)
		if err != nil {
			tr.Fatalf("range %+v: %v", r, err)
		}
		var got, want []string
		for _, r := range p.Resources {
			got = append(got, r.String()+" "+r.Revision.String())
		}
		for _, r := range all {
			if wanted(r) {
				want = append(want, r.String()+" "+r.Revision.String())
			}
		}
		slices.Sort(got)
		slices.Sort(want)
		if d := cmp.Diff(want, got); d != "" {
			tr.Errorf("%+v (resources -, index +):\n%s", r, d)
		}
	}
	targets := map[backend.Key]bool{}
	for k := range all {
		targets[faultTarget(k, 0)], targets[faultTarget(k, 1)] = true, true
	}
	for target := range targets {
		for _, boundOnly := range []bool{false, true} {
			equal(backend.Range{Referenced: &target, BoundOnly: boundOnly}, func(r *backend.Resource) bool {
				return slices.ContainsFunc(r.Refs, func(ref backend.Ref) bool { return ref.Key == target && (ref.Bound || !boundOnly) })
			})
		}
	}
	for _, kind := range faultKinds() {
		equal(backend.Range{Kind: kind, Deleting: true}, func(r *backend.Resource) bool { return r.Kind == kind && r.Deleting })
	}
}

// checkHistory compares the answers to the writers with the events that the watchers got.
func (tr *trial) checkHistory() {
	tr.Helper()
	seen := map[place]sighting{}
	applied := map[string][]backend.Revision{}
	kept := map[string]int{} // events by request in the history that survived
	ends := map[place]backend.Revision{}
	whole := false
	for n, o := range tr.watched {
		for _, s := range o.events {
			if before, ok := seen[s.place]; ok && before != s {
				tr.Errorf("watcher %d saw %v, another one %v", n, s, before)
			} else if !ok {
				seen[s.place] = s
				applied[s.request] = append(applied[s.request], s.revision)
			}
			if len(o.expired) == 0 && o.err == nil && !whole {
				kept[s.request]++
			}
		}
		whole = whole || len(o.expired) == 0 && o.err == nil
		for end := range o.ends {
			epoch := place{end.shard, backend.Revision{Epoch: end.revision.Epoch}}
			if other, ok := ends[epoch]; ok && other != end.revision {
				tr.Errorf("shard %d: one watcher went on to the next epoch from %s, another from %s", end.shard, other, end.revision)
			}
			ends[epoch] = end.revision
		}
	}
	for n, o := range tr.watched {
		for _, at := range o.expired {
			if survived(at, ends) {
				tr.Errorf("the position of watcher %d has expired, though another one went on from there", n)
			}
		}
	}
	tr.checkAttempts(applied)
	if tr.lossy {
		return
	}
	if !whole {
		tr.Error("no watcher saw the whole history")
	}
	tr.history.mu.Lock()
	defer tr.history.mu.Unlock()
	for id, a := range tr.history.attempts {
		if a.outcome == acknowledged && kept[id] != a.writes {
			tr.Errorf("%s: acknowledged at %v and lost", id, a.revisions)
		}
	}
}

// survived reports whether nothing after the position was lost, by where epochs ended.
func survived(at backend.Position, ends map[place]backend.Revision) bool {
	for s := range at.Shards() {
		r := at.Shard(s)
		end, ok := ends[place{s, backend.Revision{Epoch: r.Epoch}}]
		if !ok || r.Compare(end) > 0 {
			return false
		}
	}
	return true
}

// checkAttempts compares the revisions of each request id with the answer to its caller.
func (tr *trial) checkAttempts(applied map[string][]backend.Revision) {
	tr.Helper()
	tr.history.mu.Lock()
	defer tr.history.mu.Unlock()
	for id, revisions := range applied {
		a := tr.history.attempts[id]
		switch {
		case a == nil:
			tr.Errorf("%s: nobody sent it", id)
		case a.outcome == refused:
			tr.Errorf("%s: refused (%v) and applied at %v", id, a.err, revisions)
		case len(revisions) > a.writes:
			tr.Errorf("%s: applied twice, at %v", id, revisions)
		case a.outcome == acknowledged && slices.ContainsFunc(revisions, func(r backend.Revision) bool { return !slices.Contains(a.revisions, r) }):
			tr.Errorf("%s: acknowledged at %v and applied at %v", id, a.revisions, revisions)
		}
	}
}
