package reconcile

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Replacement describes a write of a resource to [Reconciler.Relate].
type Replacement struct {
	Kind *kind.Kind
	Key  backend.Key
	// Stored is the resource that is replaced; nil if the resource is new.
	Stored *backend.Resource
	// Was is the state of Stored; nil if it could not be read.
	Was *kind.State
	// SpecChanged reports whether the spec is new or differs from the stored spec.
	SpecChanged bool
	// StatusReport reports whether the write replaces only the status.
	StatusReport bool
	// Read determines how thoroughly targets are read.
	Read dependency.Reading
}

// before returns the references of the resource before the write.
func (w Replacement) before() dependency.Before {
	if w.Was == nil {
		return dependency.Before{}
	}
	return dependency.BeforeOf(w.Kind, w.Stored, w.Was)
}

// Relate resolves the references of the state next, and returns the state with its waits and conditions. If the spec
// has not changed, it keeps the stored references and computes only the conditions.
func (r *Reconciler) Relate(
	ctx context.Context, w Replacement, next *kind.State,
) (*kind.State, dependency.Decision, error) {
	var j dependency.Decision
	if w.Kind.Conditions != nil {
		if err := r.loadControllers(ctx); err != nil {
			return nil, j, err
		}
	}
	if !w.SpecChanged {
		next, j.Overruled = r.report(w, next)
		return next, j, nil
	}
	foreign := w.Stored != nil && w.Stored.Declared != w.Kind.Declared
	if foreign {
		newest, err := r.Newest(ctx)
		if err != nil {
			return nil, j, err
		}
		if !newest {
			return r.relateSuperseded(ctx, w, next)
		}
	}
	before := w.before()
	if refs := w.Kind.Rows.Refs(w.Key.Namespace, next.Spec); len(refs) > 0 || len(before.Waits) > 0 {
		rel := dependency.NewReferences(w.Key, refs, before)
		// The targets for which the resource waited need not be read: if one of them changes, the resource is
		// re-evaluated.
		if w.Was != nil && len(w.Was.Meta.Waits) > 0 && w.Kind.Conditions != nil && w.Kind.Service == "" && !foreign &&
			rel.WaitsFor(w.Was.Meta.Waits) {
			status, ok := dependency.WithObservedGeneration(
				next.StoredStatus(),
				w.Was.Meta.Generation,
				next.Meta.Generation,
				false,
			)
			if ok {
				return next.WithStoredStatus(status),
					dependency.Decision{Refs: rel.Kept().Refs, Declared: w.Kind.Declared}, nil
			}
		}
		targets, err := r.targets(ctx, rel.Open(), w.Read, r.otherShardThan(w.Key))
		if err != nil {
			return nil, j, err
		}
		j = rel.Decide(targets, r.otherShardThan(w.Key))
	}
	j.Declared = w.Kind.Declared
	next.Meta.Waits = j.Stored()
	return r.conclude(w.Kind, w.Was, next, j.Waits), j, nil
}

// relateSuperseded does the work of Relate for a resource with foreign references, on a gateway whose catalogue is not
// the newest. Bound references stay bound. If the resource waits for targets that this gateway does not know, its waits
// and conditions stay. The fingerprint of the write is [Mixed], so that a gateway with the newest catalogue finds the
// resource and resolves its references again.
func (r *Reconciler) relateSuperseded(
	ctx context.Context, w Replacement, next *kind.State,
) (*kind.State, dependency.Decision, error) {
	var was []kind.ResourceRef
	var waits []string
	if w.Was != nil {
		was, waits = w.Kind.Rows.Refs(w.Key.Namespace, w.Was.Spec), w.Was.Meta.Waits
	}
	rel := dependency.NewReferences(w.Key, w.Kind.Rows.Refs(w.Key.Namespace, next.Spec), w.before())
	targets, err := r.targets(ctx, rel.Open(), w.Read, r.otherShardThan(w.Key))
	if err != nil {
		return nil, dependency.Decision{}, err
	}
	j := rel.Decide(targets, r.otherShardThan(w.Key))
	j.Refs, j.Declared = j.Keeping(w.Stored.Refs, was), dependency.Mixed
	others := slices.DeleteFunc(slices.Clone(waits), func(wait string) bool {
		return slices.ContainsFunc(was, func(ref kind.ResourceRef) bool { return dependency.Name(ref.Key) == wait })
	})
	next.Meta.Waits = append(j.Stored(), others...)
	if len(others) == 0 || w.Kind.Service != "" {
		return r.conclude(w.Kind, w.Was, next, j.Waits), j, nil
	}
	status, ok := dependency.WithObservedGeneration(
		next.StoredStatus(),
		w.Was.Meta.Generation,
		next.Meta.Generation,
		false,
	)
	if ok {
		next = next.WithStoredStatus(status)
	}
	return next, j, nil
}

// conclude returns the state with the conditions that follow from its waits. was is the state before the write; nil if
// there was none. conclude does not change the conditions of a resource that a service owns.
func (r *Reconciler) conclude(k *kind.Kind, was, next *kind.State, waits []dependency.Wait) *kind.State {
	if k.Conditions == nil || k.Service != "" || next.Meta.Finalizing {
		return next
	}
	generation := next.Meta.Generation
	waited := was == nil || len(was.Meta.Waits) > 0
	conditions := dependency.Done(generation)
	switch controlled := r.controllers.owns(k.Name); {
	case len(waits) > 0:
		conditions = dependency.Waiting(waits, generation)
	case controlled && waited:
		conditions = dependency.Released(generation)
	case controlled:
		return next
	}
	if len(waits) == 0 && !waited {
		status, ok := dependency.WithObservedGeneration(next.StoredStatus(), was.Meta.Generation, generation, true)
		if ok {
			return next.WithStoredStatus(status)
		}
	}
	return next.WithStatus(dependency.SetConditions(next.Status(), k.Conditions, conditions, r.cfg.Clock()))
}

// report returns the state with the reported status. While the resource waits, its conditions Available and Progressing
// are kept. overruled reports whether the report had other ones. If no controller owns the kind, conditions that the
// report leaves out are kept too.
func (r *Reconciler) report(w Replacement, next *kind.State) (out *kind.State, overruled bool) {
	if !w.StatusReport || w.Kind.Conditions == nil || w.Kind.Service != "" {
		return next, false
	}
	if len(next.Meta.Waits) > 0 && w.Was != nil && next.Meta.DeletionRequestedAt.IsZero() {
		kept := dependency.KeepConditions(next.Status(), w.Was.Status())
		return next.WithStatus(kept), slices.ContainsFunc(dependency.ConditionsOf(next.Status()), dependency.IsOwned) &&
			!jsontree.Equal(kept, next.Status())
	}
	if r.controllers.owns(w.Kind.Name) {
		return next, false
	}
	absent := dependency.MissingConditions(next.Status(), dependency.Done(next.Meta.Generation))
	if len(absent) == 0 {
		return next, false
	}
	return next.WithStatus(dependency.SetConditions(next.Status(), w.Kind.Conditions, absent, r.cfg.Clock())), false
}

// Finalizing returns the state with conditions that name its finalizers, as the only reason why the resource still
// exists.
func (r *Reconciler) Finalizing(k *kind.Kind, st *kind.State) *kind.State {
	next := st.WithMetadata(st.Meta)
	next.Meta.Finalizing = true
	if k.Conditions == nil || k.Service != "" {
		return next
	}
	return next.WithStatus(dependency.SetConditions(
		next.Status(), k.Conditions, dependency.Finalizing(next.Meta.Finalizers, next.Meta.Generation), r.cfg.Clock(),
	))
}

// targets returns the resources with the given keys. It always reads a key for which apart returns true from the store,
// because no check of a batch detects that it has changed. apart may be nil unless read is FromIndex.
func (r *Reconciler) targets(
	ctx context.Context, keys []backend.Key, read dependency.Reading, apart func(backend.Key) bool,
) (map[backend.Key]dependency.Target, error) {
	out := make(map[backend.Key]dependency.Target, len(keys))
	var ask []backend.Key
	for _, key := range keys {
		k, err := r.cfg.Kinds.Find(key.Kind)
		if err != nil {
			return nil, err
		}
		out[key] = dependency.Target{Kind: k}
		if read == dependency.FromIndex && r.cfg.Index != nil && !apart(key) {
			if held := r.cfg.Index.Recent(key); held != nil {
				out[key] = dependency.Target{Kind: k, Stored: held, MayBeStale: true}
				continue
			}
		}
		ask = append(ask, key)
	}
	got, err := r.get(ctx, ask, read)
	for i, key := range ask[:len(got)] {
		got[i].Kind = out[key].Kind
		out[key] = got[i]
	}
	return out, err
}
