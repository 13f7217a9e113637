package reconcile

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// maxWoken is the maximum size of follower.woken.
const maxWoken = 4096

// handle does what changes require: it finishes deletions and re-evaluates resources.
func (f *follower) handle(ctx context.Context, c effects) error {
	if c.len() > 0 {
		began := time.Now()
		defer func() { f.r.cfg.Handled.Observe(time.Since(began).Seconds()) }()
	}
	if err := f.finish(ctx, c); err != nil {
		return err
	}
	if _, err := f.reevaluate(ctx, c.changed, nil); err != nil { // their changes wake the resources that wait for them
		return err
	}
	if err := f.reevaluateCreated(ctx, c.created); err != nil {
		return err
	}
	return f.wake(ctx, c.woken)
}

// effects has the resources that must be handled because of changes. The zero value has none.
type effects struct {
	// woken are resources whose dependents must be re-evaluated.
	woken []backend.Key
	// deleting are resources whose deletion may be finished. released are resources to which another resource is no
	// longer bound. If the deletion of a released resource was requested, it may be finished.
	deleting []backend.Key
	released map[backend.Key]bool
	// created are new resources with conditions.
	created []*backend.Resource
	// changed are changed resources that must be re-evaluated themselves.
	changed []*backend.Resource
	// unread are the keys of created and changed resources, which must be read before the resources are handled.
	unread map[backend.Key]bool
}

// len returns the number of resources in the effects.
func (c *effects) len() int {
	return len(c.woken) + len(c.deleting) + len(c.released) + len(c.created) + len(c.changed) + len(c.unread)
}

// keepKeys replaces created and changed by their keys, so that delayed effects hold no bodies in memory.
func (c *effects) keepKeys() {
	if c.unread == nil {
		c.unread = map[backend.Key]bool{}
	}
	for _, r := range append(c.created, c.changed...) {
		c.unread[r.Key] = true
	}
	c.created, c.changed = nil, nil
}

// load reads the resources whose keys keepKeys has kept. It adds each of them to both created and changed.
func (f *follower) load(ctx context.Context, c *effects) error {
	got, err := f.r.get(ctx, slices.Collect(maps.Keys(c.unread)), dependency.FromStore)
	for _, r := range got {
		if r.Stored != nil {
			c.created, c.changed = append(c.created, r.Stored), append(c.changed, r.Stored)
		}
	}
	return err
}

// get returns the resources with the given keys, in the order of the keys, without their kinds. With
// [dependency.OneByOne] a resource that cannot be read is Damaged. Otherwise it seems to be missing.
func (r *Reconciler) get(
	ctx context.Context, keys []backend.Key, read dependency.Reading,
) ([]dependency.Target, error) {
	out := make([]dependency.Target, 0, len(keys))
	for len(out) < len(keys) {
		got, err := r.getFirst(ctx, keys[len(out):], read)
		if err != nil {
			return nil, err
		}
		out = append(out, got...)
	}
	return out, nil
}

// getFirst is like get, but reads only the first keys: as many as backend.MaxPageBytes allows, but at least one.
func (r *Reconciler) getFirst(
	ctx context.Context, keys []backend.Key, read dependency.Reading,
) ([]dependency.Target, error) {
	keys = keys[:min(len(keys), backend.MaxKeys)]
	if read == dependency.OneByOne {
		keys = keys[:1]
	}
	got, err := r.cfg.Store.Get(ctx, keys...)
	if errors.Is(err, backend.ErrUnreadable) && len(keys) == 1 {
		return []dependency.Target{{Damaged: true}}, nil
	}
	out := make([]dependency.Target, len(got))
	for i := range got {
		out[i].Stored = got[i]
	}
	return out, err
}

// release records that one of the resources that were bound to key, and so held it, no longer is.
func (c *effects) release(key backend.Key) {
	if c.released == nil {
		c.released = map[backend.Key]bool{}
	}
	c.released[key] = true
}

// add adds the effects of a change. ahead reports whether the dependents of the resource were already re-evaluated
// after the change.
func (c *effects) add(k *kind.Kind, e *backend.Event, ahead bool) {
	r := e.Resource
	foreign := r.Declared != k.Declared
	if !ahead && k.Referred && wakes(k, e) && !slices.Contains(c.woken, r.Key) {
		c.woken = append(c.woken, r.Key)
	}
	if e.Type == backend.Deleted || foreign { // a rebind, which has no event, may have dropped foreign references since
		for _, ref := range r.Refs {
			if ref.Bound {
				c.release(ref.Key)
			}
		}
	}
	if e.Type == backend.Deleted {
		return
	}
	if r.Deleting && !slices.Contains(c.deleting, r.Key) {
		c.deleting = append(c.deleting, r.Key)
	}
	// A batch checks at most MaxChecks targets. If a resource has more references, each write resolves some, and its
	// event leads to the next write, until all are resolved.
	many := !r.Deleting && len(r.Refs) > backend.MaxChecks
	if foreign || many && (r.SpecRevision != r.Revision || kind.ChangedSpec(e)) {
		c.changed = append(c.changed, r)
	}
	if e.Type == backend.Added && k.Conditions != nil && k.Service == "" {
		c.created = append(c.created, r)
	}
	if e.Before == nil || slices.Equal(e.Before.Bound, r.Bound()) {
		return
	}
	still := map[backend.Key]bool{}
	for _, key := range r.Bound() {
		still[key] = true
	}
	for _, key := range e.Before.Bound {
		if !still[key] {
			c.release(key)
		}
	}
}

// wakes reports whether a change may concern resources that wait for the changed resource.
func wakes(k *kind.Kind, e *backend.Event) bool {
	if e.Type != backend.Modified || e.Resource.Deleting {
		return true
	}
	if e.Before != nil && e.Before.Deleting { // a deletion was taken back
		return true
	}
	if k.Conditions == nil {
		return false
	}
	was, now, known := kind.StatusChange(e)
	return !known || was != now && dependency.IsAvailable(was) != dependency.IsAvailable(now)
}

// finish tries to finish the deletions of the effects.
func (f *follower) finish(ctx context.Context, c effects) error {
	for _, key := range c.deleting {
		delete(c.released, key)
		if err := f.r.Finish(ctx, key); err != nil {
			return err
		}
	}
	for keys := slices.Collect(maps.Keys(c.released)); len(keys) > 0; { // in parts, because the resources may be large
		got, err := f.r.getFirst(ctx, keys, dependency.FromStore)
		if err != nil {
			return err
		}
		keys = keys[len(got):]
		for _, r := range got {
			if r.Stored != nil && r.Stored.Deleting {
				if err := f.r.Finish(ctx, r.Stored.Key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// wake re-evaluates the dependents of resources. If some of the dependents become ready, it also re-evaluates their
// dependents, and so on, without waiting for events. BenchmarkChain of backend/service measures this. It leaves
// dependents in other shards to the followers of these shards.
func (f *follower) wake(ctx context.Context, keys []backend.Key) error {
	ready, err := f.reevaluateDependents(ctx, keys, nil)
	for err == nil && len(ready) > 0 {
		ready = slices.DeleteFunc(ready, func(r *backend.Resource) bool {
			k, err := f.r.cfg.Kinds.Find(r.Kind)
			return err != nil || !k.Referred || f.r.shardOf(r.Key) != f.shard
		})
		ready = ready[:min(len(ready), maxWoken-len(f.woken))] // the others are found by their events
		keys = make([]backend.Key, len(ready))
		for i, r := range ready {
			keys[i] = r.Key
		}
		more, failed := f.reevaluateDependents(ctx, keys, ready)
		if err = failed; err == nil {
			for _, r := range ready {
				f.woken[r.Key] = r.Revision
			}
		}
		ready = more
	}
	return err
}

// takeWoken reports whether the dependents of a resource were already re-evaluated after the change of an event. It
// removes the entry in woken.
func (f *follower) takeWoken(e *backend.Event) bool {
	revision, ok := f.woken[e.Resource.Key]
	if ok && e.Resource.Revision.Compare(revision) >= 0 {
		delete(f.woken, e.Resource.Key)
	}
	return ok && e.Resource.Revision == revision
}

// reevaluateDependents re-evaluates the dependents of resources, and returns those that became ready. known has
// resources that were just stored. It skips dependents that only a gateway with the newest catalogue may change. Such a
// gateway follows the same changes.
func (f *follower) reevaluateDependents(
	ctx context.Context, keys []backend.Key, known []*backend.Resource,
) (ready []*backend.Resource, err error) {
	for some := range slices.Chunk(keys, backend.MaxRanges) {
		ranges := make([]backend.Range, len(some))
		for i := range some {
			ranges[i] = backend.Range{Referenced: &some[i], Limit: pageSize}
		}
		for len(ranges) > 0 {
			pages, err := backend.Ranges(ctx, f.r.cfg.Store, ranges)
			if err != nil {
				return ready, err
			}
			var found []*backend.Resource
			var more []backend.Range
			for i, page := range pages {
				found = append(found, page.Resources...)
				if rest, further := ranges[i].After(page); further {
					more = append(more, rest)
				}
			}
			out, err := f.reevaluate(ctx, found, known)
			ready = append(ready, out.ready...)
			if err != nil {
				return ready, err
			}
			ranges = more
		}
	}
	return ready, nil
}
