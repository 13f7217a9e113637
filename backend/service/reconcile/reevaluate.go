package reconcile

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/sender"
)

// maxAttempts is the maximum number of attempts to re-evaluate a resource that other writers keep changing.
const maxAttempts = 16

// candidate is a stored resource that must be re-evaluated.
type candidate struct {
	kind   *kind.Kind
	stored *backend.Resource
	was    *kind.State // of stored
	refs   dependency.References
}

// foreign reports whether the references of a resource were derived from other declarations than this gateway's.
func (c *candidate) foreign() bool { return c.stored.Declared != c.kind.Declared }

// reevaluation is the result of reevaluate.
type reevaluation struct {
	// ready are the resources that became ready, in their new state.
	ready []*backend.Resource
	// skipped reports whether foreign references were left to a gateway with the newest catalogue.
	skipped bool
}

func (o *reevaluation) add(more reevaluation) {
	o.ready, o.skipped = append(o.ready, more.ready...), o.skipped || more.skipped
}

// reevaluate decides again what stored resources wait for, and stores changes of their bindings and conditions. known
// has resources that were just stored and need not be read as targets. Several gateways may re-evaluate the same
// resources at the same time.
//
//	reevaluateTogether   candidates     those that wait, have foreign references or conditions that are out of date
//	                     openTargets    one read of all their targets
//	                     decide, write  each resource: what is to be stored
//	                     storeBatch     up to 64 at once  --- refused ---> reevaluateOne, read again one by one
func (f *follower) reevaluate(ctx context.Context, resources, known []*backend.Resource) (reevaluation, error) {
	out, refused, err := f.reevaluateTogether(ctx, resources, known, dependency.FromStore)
	if err != nil {
		return out, err
	}
	for _, key := range refused {
		one, err := f.reevaluateOne(ctx, key)
		if out.add(one); err != nil {
			return out, err
		}
	}
	return out, nil
}

// reevaluateOne reads one resource and re-evaluates it.
func (f *follower) reevaluateOne(ctx context.Context, key backend.Key) (reevaluation, error) {
	for range maxAttempts {
		got, err := f.r.cfg.Store.Get(ctx, key)
		if errors.Is(err, backend.ErrUnreadable) || err == nil && got[0] == nil {
			return reevaluation{}, nil
		}
		if err != nil {
			return reevaluation{}, err
		}
		out, raced, err := f.reevaluateTogether(ctx, got, nil, dependency.OneByOne)
		if err != nil || len(raced) == 0 {
			return out, err
		}
	}
	return reevaluation{}, fmt.Errorf("%s: %w", key, backend.ErrConflict)
}

// reevaluateTogether re-evaluates resources in as few batches as possible. alone has the keys of resources that must be
// re-evaluated one by one: see storeBatch.
func (f *follower) reevaluateTogether(
	ctx context.Context, resources, known []*backend.Resource, read dependency.Reading,
) (out reevaluation, alone []backend.Key, err error) {
	if err := f.r.loadControllers(ctx); err != nil {
		return out, nil, err
	}
	todo, deadline, skipped, err := f.candidates(ctx, resources)
	out.skipped = skipped
	if err != nil || len(todo) == 0 {
		return out, nil, err
	}
	f.r.cfg.Reevaluated(len(todo))
	targets, err := f.openTargets(ctx, todo, known, read)
	if err != nil {
		return out, nil, err
	}
	b := reevaluationBatch{deadline: deadline}
	store := func() error {
		ready, again, err := f.storeBatch(ctx, b, read)
		out.ready, alone = append(out.ready, ready...), append(alone, again...)
		b = reevaluationBatch{deadline: deadline}
		return err
	}
	for _, one := range todo {
		// A resource that is being deleted waits for nothing and does not begin to rely on targets.
		j := dependency.Decision{Refs: one.refs.Kept().Refs}
		if !one.stored.Deleting {
			j = one.refs.Decide(targets, f.r.otherShardThan(one.stored.Key))
		}
		if !b.fits(one, j) {
			if err := store(); err != nil {
				return out, nil, err
			}
		}
		put, changed, err := f.r.write(one, j)
		if err != nil {
			err = f.r.logUnstorable(one.stored.Key, err)
		}
		if err != nil {
			return out, nil, err
		}
		if changed {
			b.add(one, put, j.Checks)
		}
	}
	err = store()
	return out, alone, err
}

// storeBatch stores a batch of reevaluateTogether, and returns the resources that became ready. alone has the keys of
// resources that must be re-evaluated one by one. These are all resources of the batch if it was refused, otherwise the
// resources whose targets must be read again.
func (f *follower) storeBatch(
	ctx context.Context, b reevaluationBatch, read dependency.Reading,
) (ready []*backend.Resource, alone []backend.Key, err error) {
	ready, err = f.store(ctx, b)
	var failed *backend.ConditionError
	switch {
	case err == nil:
		for i, one := range b.of {
			if f.reboundToOtherShard(one, b.puts[i]) {
				alone = append(alone, one.stored.Key)
			}
		}
	case errors.As(err, &failed), errors.Is(err, sender.ErrLost), read != dependency.OneByOne &&
		(errors.Is(err, backend.ErrUnreadable) || unstorable(err)):
		for _, one := range b.of {
			alone = append(alone, one.stored.Key)
		}
		err = nil
	default:
		// A resource that cannot be stored was re-evaluated alone, so it is the only one in the batch.
		err = f.r.logUnstorable(b.of[0].stored.Key, err)
	}
	return ready, alone, err
}

// candidates returns the resources that must be re-evaluated, without duplicates, sorted by namespace and kind.
// deadline is the time until which they must be stored; zero means the usual time. skipped reports whether some
// resources were left to a gateway with the newest catalogue.
func (f *follower) candidates(
	ctx context.Context, resources []*backend.Resource,
) (out []*candidate, deadline time.Time, skipped bool, err error) {
	vanished, err := f.r.vanished(ctx, resources)
	if err != nil {
		return nil, deadline, false, err
	}
	seen, foreign := make(map[backend.Key]bool, len(resources)), false
	for _, r := range resources {
		if seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		if one := f.r.candidate(r, vanished); one != nil {
			out = append(out, one)
			foreign = foreign || one.foreign()
		}
	}
	slices.SortStableFunc(out, func(a, b *candidate) int {
		return cmp.Or(cmp.Compare(a.stored.Namespace, b.stored.Namespace), cmp.Compare(a.kind.Name, b.kind.Name))
	})
	if !foreign {
		return out, deadline, false, nil
	}
	deadline = f.r.cfg.Clock().Add(min(rebindTime, f.r.cfg.WriteTimeout))
	newest, err := f.r.Newest(ctx)
	if err != nil {
		return out, deadline, false, err
	}
	n := len(out)
	out = slices.DeleteFunc(out, func(c *candidate) bool {
		if !c.foreign() {
			return false
		}
		of := f.r.followerOf(c.stored.Key)
		if newest && of.mayRebind.Load() {
			return false
		}
		of.leave(c.kind.Name)
		return true
	})
	if !slices.ContainsFunc(out, (*candidate).foreign) {
		deadline = time.Time{}
	}
	return out, deadline, len(out) < n, nil
}

// vanished returns targets that do not exist any more although resources are bound to them. Only targets that a service
// owns can vanish. The gateway itself does not delete a target while a resource is bound to it.
func (r *Reconciler) vanished(ctx context.Context, resources []*backend.Resource) (map[backend.Key]bool, error) {
	if !r.hasOwned {
		return nil, nil
	}
	var keys []backend.Key
	seen := map[backend.Key]bool{}
	for _, stored := range resources {
		for _, ref := range stored.Refs {
			if !ref.Bound || seen[ref.Key] || stored.Deleting {
				continue
			}
			seen[ref.Key] = true
			if k, err := r.cfg.Kinds.Find(ref.Key.Kind); err == nil && k.Service != "" {
				keys = append(keys, ref.Key)
			}
		}
	}
	if len(keys) == 0 {
		return nil, nil
	}
	got, err := r.get(ctx, keys, dependency.FromStore)
	if errors.Is(err, backend.ErrUnreadable) {
		got, err = r.get(ctx, keys, dependency.OneByOne)
	}
	out := map[backend.Key]bool{}
	for i, target := range got {
		if target.Stored == nil && !target.Damaged {
			out[keys[i]] = true
		}
	}
	return out, err
}

// candidate returns a candidate for a resource; nil if the resource need not be re-evaluated. The candidate waits again
// for targets in vanished.
func (r *Reconciler) candidate(stored *backend.Resource, vanished map[backend.Key]bool) *candidate {
	k, err := r.cfg.Kinds.Find(stored.Kind)
	if err != nil || stored.Deleting && stored.Declared == k.Declared {
		return nil
	}
	st, err := kind.StateOf(stored)
	if err != nil {
		r.cfg.Unreadable.Note(stored, err)
		return nil
	}
	lost := slices.ContainsFunc(stored.Refs, func(ref backend.Ref) bool { return ref.Bound && vanished[ref.Key] })
	if len(st.Meta.Waits) == 0 && stored.Declared == k.Declared && !lost && !r.needsConditions(k, st) {
		return nil
	}
	refs := dependency.NewReferences(
		stored.Key,
		k.Rows.Refs(stored.Namespace, st.Spec),
		dependency.BeforeOf(k, stored, st),
	)
	if lost {
		refs.Reopen(vanished)
	}
	return &candidate{kind: k, stored: stored, was: st, refs: refs}
}

// needsConditions reports whether this gateway must write the conditions of a resource. It must if the kind has no
// controller and the resource has no final condition Available: see [dependency.HasFinalCondition].
func (r *Reconciler) needsConditions(k *kind.Kind, st *kind.State) bool {
	return k.Conditions != nil && k.Service == "" && !r.controllers.owns(k.Name) && !dependency.HasFinalCondition(st.Status())
}

// openTargets returns the targets on which the candidates do not rely yet. It does not read targets in known from the
// store, except targets in another shard. A batch cannot check these, so they are read after the candidates. Otherwise
// a candidate that began to wait after the known target was stored could stop waiting because of the old state.
func (f *follower) openTargets(
	ctx context.Context, todo []*candidate, known []*backend.Resource, read dependency.Reading,
) (map[backend.Key]dependency.Target, error) {
	have := make(map[backend.Key]bool, len(known))
	for _, r := range known {
		have[r.Key] = true
	}
	var keys []backend.Key
	requested := map[backend.Key]bool{}
	for _, one := range todo {
		apart := f.r.otherShardThan(one.stored.Key)
		for _, key := range one.refs.Open() {
			if !requested[key] && (!have[key] || apart(key)) {
				requested[key] = true
				keys = append(keys, key)
			}
		}
	}
	targets, err := f.r.targets(ctx, keys, read, nil)
	if err != nil {
		return nil, err
	}
	for _, r := range known {
		if requested[r.Key] {
			continue
		}
		k, err := f.r.cfg.Kinds.Find(r.Kind)
		if err != nil {
			return nil, err
		}
		targets[r.Key] = dependency.Target{Kind: k, Stored: r, MayBeStale: true}
	}
	return targets, nil
}

// write returns the action that stores a decision about a resource. changed is false if there is nothing to store. If
// only references change, the action is a rebind.
func (r *Reconciler) write(one *candidate, j dependency.Decision) (put backend.Action, changed bool, err error) {
	state := *one.was
	next := &state
	if !one.stored.Deleting {
		next.Meta.Waits = j.Stored()
		if !slices.Equal(next.Meta.Waits, one.was.Meta.Waits) || len(j.Waits) > 0 ||
			r.needsConditions(one.kind, one.was) {
			next = r.conclude(one.kind, one.was, next, j.Waits)
		}
	}
	switch {
	case !slices.Equal(next.Meta.Waits, one.was.Meta.Waits) || !next.SameStatus(one.was):
		if put, err = Rewrite(one.kind, one.stored, next); err != nil {
			return put, false, err
		}
	case one.foreign():
		put = backend.Action{
			Key: one.stored.Key,
			Op:  backend.OpRebind,
			If:  backend.Condition{Revision: one.stored.Revision},
		}
	default:
		return put, false, nil
	}
	put.Put.Refs, put.Put.Declared = j.Refs, one.kind.Declared
	if put.Op == backend.OpRebind || put.Put.Declared != "" { // fails if the references were derived again meanwhile
		put.If.BindingVersion = one.stored.BindingVersion
	}
	return put, true, nil
}

// reevaluationBatch has the writes of resources of one kind and namespace.
type reevaluationBatch struct {
	of           []*candidate
	puts, checks []backend.Action
	size         int
	// deadline is the deadline of the batch; zero means the usual deadline.
	deadline time.Time
	// released are resources to which resources of the batch are no longer bound.
	released []backend.Key
}

// fits reports whether the write of a resource can be added to the batch.
func (b *reevaluationBatch) fits(one *candidate, j dependency.Decision) bool {
	if len(b.of) == 0 {
		return true
	}
	checks := len(b.checks)
	for _, c := range j.Checks {
		if has(b.puts, c.Key) {
			return false
		}
		if !has(b.checks, c.Key) {
			checks++
		}
	}
	return one.kind == b.of[0].kind && one.stored.Namespace == b.of[0].stored.Namespace &&
		!has(b.checks, one.stored.Key) &&
		len(b.of) < backend.MaxWrites && checks <= backend.MaxChecks && b.size <= backend.MaxResourceBytes
}

// has reports whether one of the actions is on a key.
func has(actions []backend.Action, key backend.Key) bool {
	return slices.ContainsFunc(actions, func(a backend.Action) bool { return a.Key == key })
}

// add adds the write of a resource and its checks.
func (b *reevaluationBatch) add(one *candidate, put backend.Action, checks []backend.Action) {
	b.of, b.puts = append(b.of, one), append(b.puts, put)
	b.size += (backend.Batch{Actions: []backend.Action{put}}).Size()
	for _, c := range checks {
		if !has(b.checks, c.Key) {
			b.checks = append(b.checks, c)
		}
	}
	if put.Op != backend.OpRebind && put.Put.Declared == "" {
		return // the put keeps the references
	}
	for _, ref := range one.stored.Refs {
		if ref.Bound && !slices.Contains(put.Put.Refs, ref) && !slices.Contains(b.released, ref.Key) {
			b.released = append(b.released, ref.Key)
		}
	}
}

// store sends a batch, finishes deletions that waited for released references, and returns the resources that became
// ready.
func (f *follower) store(ctx context.Context, b reevaluationBatch) (ready []*backend.Resource, err error) {
	if len(b.of) == 0 {
		return nil, nil
	}
	if b.deadline.IsZero() {
		b.deadline = f.r.cfg.Clock().Add(f.r.cfg.WriteTimeout)
	}
	res, err := f.r.cfg.ApplyBy(ctx, b.deadline, append(b.puts, b.checks...)...)
	if err != nil {
		return nil, err
	}
	for _, key := range b.released {
		if err := f.r.Finish(ctx, key); err != nil {
			return nil, err
		}
	}
	for i, one := range b.of {
		if dependency.Ready(one.kind, res.Resources[i]) && !dependency.Ready(one.kind, one.stored) {
			ready = append(ready, res.Resources[i])
		}
	}
	return ready, nil
}

// reevaluateCreated re-evaluates new resources that wait for nothing. The gateway that created them may not have known,
// when it set their conditions, that a controller owns the kind.
func (f *follower) reevaluateCreated(ctx context.Context, created []*backend.Resource) error {
	if err := f.r.loadControllers(ctx); err != nil {
		return err
	}
	var own []*backend.Resource
	for _, stored := range created {
		k, err := f.r.cfg.Kinds.Find(stored.Kind)
		if err != nil || k.Conditions == nil || k.Service != "" || stored.Deleting {
			continue
		}
		st, err := kind.StateOf(stored)
		if err != nil || len(st.Meta.Waits) > 0 {
			continue
		}
		if !f.r.controllers.owns(k.Name) {
			own = append(own, stored)
			continue
		}
		if err := f.leaveToController(ctx, k, stored, st); err != nil {
			return err
		}
	}
	_, err := f.reevaluate(ctx, own, nil) // their changes wake the resources that wait for them
	return err
}

// leaveToController handles a resource that a gateway has declared ready although a controller owns the kind. It
// replaces the conditions by conditions that wait for the controller. If the resource was changed since, it does
// nothing.
func (f *follower) leaveToController(
	ctx context.Context, k *kind.Kind, stored *backend.Resource, st *kind.State,
) error {
	generation := st.Meta.Generation
	if _, done := dependency.WithObservedGeneration(st.StoredStatus(), generation, generation, true); !done {
		return nil
	}
	put, err := Rewrite(
		k,
		stored,
		st.WithStatus(dependency.SetConditions(
			st.Status(),
			k.Conditions,
			dependency.Released(generation),
			f.r.cfg.Clock(),
		)),
	)
	if err == nil {
		_, err = f.r.cfg.Apply(ctx, put)
	}
	var failed *backend.ConditionError
	if err = f.r.logUnstorable(stored.Key, err); errors.As(err, &failed) {
		return nil
	}
	return err
}
