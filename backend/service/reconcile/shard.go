package reconcile

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// In a store of several shards, a resource and the one of a GLOBAL kind that it refers to may lie
// in two of them. No batch changes the one and checks the other, so the order of events has
// to see to it that no wait is forgotten:
//
//	the resource's write      reads the target            is stored       its event: reads the target again
//	----------------------------- | ----------------------- | ------------------- | ----->
//	the target changes:           |  not found by its event |  found by its event |
//	                              '------ read again -------'---------------------'
//
// A rebind has no event, so who makes it reads the target again.
//
// What was stored as bound relied on a target that was ready when it was read, just before. That
// is all that an unguarded reference promises; guarded ones are refused (backend/catalogue).

// shardOf returns the number of the shard that a resource lies in.
func (r *Reconciler) shardOf(key backend.Key) int {
	if s, ok := r.cfg.Store.(backend.Sharder); ok {
		return s.Shard(key.Namespace)
	}
	return 0
}

// followerOf returns the follower of the shard that a resource lies in.
func (r *Reconciler) followerOf(key backend.Key) *follower { return r.followers[r.shardOf(key)] }

// apartFrom reports of a key whether it lies in another shard than a resource, so that no
// batch can change the one and check the other.
func (r *Reconciler) apartFrom(resource backend.Key) func(backend.Key) bool {
	return func(key backend.Key) bool { return !backend.SameShard(r.cfg.Store, resource.Namespace, key.Namespace) }
}

// waitsApart reports whether a resource may wait for one in another shard. The write could
// not check that one, which may have changed before the resource could be found by its
// reference: so it is read once more when the resource can be.
func (f *follower) waitsApart(r *backend.Resource) bool {
	apart := f.r.apartFrom(r.Key)
	return !r.Deleting && slices.ContainsFunc(r.Refs, func(ref backend.Ref) bool { return apart(ref.Key) }) && kind.Waits(r)
}

// reboundApart reports whether a resource that may wait for one in another shard was rebound. No
// event shows that it can be found by its reference now.
func (f *follower) reboundApart(one *candidate, put backend.Action) bool {
	if put.Op != backend.OpRebind {
		return false
	}
	now := *one.stored
	now.Refs = put.Put.Refs
	return f.waitsApart(&now)
}

// rescanElsewhere has the other shards scan the kinds whose resources may wait for one of
// this shard: changes of GLOBAL resources are gone from the log, by which they would have
// been found.
func (f *follower) rescanElsewhere(ctx context.Context) error {
	if f != f.r.followerOf(backend.Key{}) {
		return nil
	}
	crossing := map[string]bool{}
	for _, k := range f.r.cfg.Kinds.All() {
		crossing[k.Name] = k.Scope != descriptor.Global && slices.ContainsFunc(k.References, func(ref descriptor.Reference) bool {
			to, err := f.r.cfg.Kinds.Find(ref.Kind)
			return err == nil && to.Scope == descriptor.Global
		})
	}
	for _, other := range f.r.followers {
		if other == f {
			continue
		}
		err := f.r.update(ctx, other.shard, func(rec *record) bool {
			return rec.forget(func(kind, _ string) bool { return crossing[kind] })
		})
		if err != nil {
			return err
		}
	}
	return nil
}
