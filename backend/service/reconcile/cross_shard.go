package reconcile

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// In a store with several shards, a resource may refer to a GLOBAL resource in another shard. A batch cannot change the
// resource and check that target, so the target may change at any time during the write. It is therefore read twice, so
// that no resource waits for ever:
//
//	the write reads      the resource is      the event of the resource:
//	the target           stored               the target is read again
//	-----|--------------------|--------------------|------------->  time
//	     |         A          |         B          |       C
//
//	the target changes in A    its event does not find the resource; the second read sees the change
//	                in B       its event finds the resource, and the second read sees the change
//	                in C       its event finds the resource
//
// A rebind has no event, so the gateway that makes it reads the target again (reboundToOtherShard).
//
// A resource is stored as bound if its target was ready when it was read. Unguarded references promise no more than
// that, and guarded references to another shard are refused (backend/catalogue).

// shardOf returns the number of a resource's shard.
func (r *Reconciler) shardOf(key backend.Key) int {
	if s, ok := r.cfg.Store.(backend.Sharder); ok {
		return s.Shard(key.Namespace)
	}
	return 0
}

// followerOf returns the follower of a resource's shard.
func (r *Reconciler) followerOf(key backend.Key) *follower { return r.followers[r.shardOf(key)] }

// otherShardThan returns a function that reports whether a key is in another shard than the given resource. A batch
// that changes the resource cannot check such a key.
func (r *Reconciler) otherShardThan(resource backend.Key) func(backend.Key) bool {
	return func(key backend.Key) bool { return !backend.SameShard(r.cfg.Store, resource.Namespace, key.Namespace) }
}

// waitsForOtherShard reports whether a resource may wait for a target in another shard. The target must then be read
// again.
func (f *follower) waitsForOtherShard(r *backend.Resource) bool {
	apart := f.r.otherShardThan(r.Key)
	return !r.Deleting && slices.ContainsFunc(r.Refs, func(ref backend.Ref) bool { return apart(ref.Key) }) &&
		kind.Waits(r)
}

// reboundToOtherShard reports whether put is a rebind of a resource that may wait for a target in another shard.
func (f *follower) reboundToOtherShard(one *candidate, put backend.Action) bool {
	if put.Op != backend.OpRebind {
		return false
	}
	now := *one.stored
	now.Refs = put.Put.Refs
	return f.waitsForOtherShard(&now)
}

// rescanElsewhere makes the followers of the other shards scan the kinds that refer to GLOBAL kinds. It does so only if
// f follows the shard of the GLOBAL kinds. It is called when the log has lost changes that may concern resources in the
// other shards.
func (f *follower) rescanElsewhere(ctx context.Context) error {
	if f != f.r.followerOf(backend.Key{}) {
		return nil
	}
	crossing := map[string]bool{}
	for _, k := range f.r.cfg.Kinds.All() {
		crossing[k.Name] = k.Scope != descriptor.Global &&
			slices.ContainsFunc(k.References, func(ref descriptor.Reference) bool {
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
