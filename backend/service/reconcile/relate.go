package reconcile

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Write is the write of a state whose references are to be judged.
type Write struct {
	Kind *kind.Kind
	Key  backend.Key
	// Stored is the resource that the state replaces, nil for none.
	Stored *backend.Resource
	// Was is the state of Stored, nil if it could not be read.
	Was *kind.State
	// SpecChanged reports whether the spec is new or differs from the stored one.
	SpecChanged bool
	// StatusReport reports whether a controller reports this status.
	StatusReport bool
	// Read says how targets are read.
	Read Reading
}

// before returns the references of the resource until now.
func (w Write) before() Before {
	if w.Was == nil {
		return Before{}
	}
	return Known(w.Kind, w.Stored, w.Was)
}

// Relate judges the references of a state, and returns it with its waits and conditions. A spec that stays
// leaves the stored references as they are.
func (r *Reconciler) Relate(ctx context.Context, w Write, next *kind.State) (*kind.State, Judgement, error) {
	var j Judgement
	if w.Kind.Conditions != nil {
		if err := r.knowControllers(ctx); err != nil {
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
		rel := Of(w.Key, refs, before)
		// The targets that the resource waited for need not be read: a change of one re-evaluates the
		// resource.
		if w.Was != nil && len(w.Was.Meta.Waits) > 0 && w.Kind.Conditions != nil && !foreign && rel.WaitsFor(w.Was.Meta.Waits) {
			if status, ok := Renumbered(next.StoredStatus(), w.Was.Meta.Generation, next.Meta.Generation, false); ok {
				return next.WithStoredStatus(status), Judgement{Refs: rel.Kept().Refs, Declared: w.Kind.Declared}, nil
			}
		}
		targets, err := r.targets(ctx, rel.Open(), w.Read, r.apartFrom(w.Key))
		if err != nil {
			return nil, j, err
		}
		j = rel.Judge(targets, r.apartFrom(w.Key))
	}
	j.Declared = w.Kind.Declared
	next.Meta.Waits = j.Stored()
	return r.conclude(w.Kind, w.Was, next, j.Waits), j, nil
}

// relateSuperseded judges a spec whose references a gateway with a newer catalogue has
// taken. Bound references stay bound, and waits for kinds that this gateway does not know stay: then its
// conditions stay as they are. The newer gateway finds the change by the fingerprint of the references, and
// judges it.
func (r *Reconciler) relateSuperseded(ctx context.Context, w Write, next *kind.State) (*kind.State, Judgement, error) {
	var was []kind.Ref
	var waits []string
	if w.Was != nil {
		was, waits = w.Kind.Rows.Refs(w.Key.Namespace, w.Was.Spec), w.Was.Meta.Waits
	}
	rel := Of(w.Key, w.Kind.Rows.Refs(w.Key.Namespace, next.Spec), w.before())
	targets, err := r.targets(ctx, rel.Open(), w.Read, r.apartFrom(w.Key))
	if err != nil {
		return nil, Judgement{}, err
	}
	j := rel.Judge(targets, r.apartFrom(w.Key))
	j.Refs, j.Declared = j.Keeping(w.Stored.Refs, was), Mixed
	others := slices.DeleteFunc(slices.Clone(waits), func(wait string) bool {
		return slices.ContainsFunc(was, func(ref kind.Ref) bool { return Name(ref.Key) == wait })
	})
	next.Meta.Waits = append(j.Stored(), others...)
	if len(others) == 0 {
		return r.conclude(w.Kind, w.Was, next, j.Waits), j, nil
	}
	if status, ok := Renumbered(next.StoredStatus(), w.Was.Meta.Generation, next.Meta.Generation, false); ok {
		next = next.WithStoredStatus(status)
	}
	return next, j, nil
}

// conclude returns the state with the conditions that follow from what it waits for. was is
// the state before, nil for none.
func (r *Reconciler) conclude(k *kind.Kind, was, next *kind.State, waits []Wait) *kind.State {
	if k.Conditions == nil || next.Meta.Finalizing {
		return next
	}
	generation := next.Meta.Generation
	waited := was == nil || len(was.Meta.Waits) > 0
	aspects := Done(generation)
	switch controlled := r.controllers.control(k.Name); {
	case len(waits) > 0:
		aspects = Waiting(waits, generation)
	case controlled && waited:
		aspects = Released(generation)
	case controlled:
		return next
	}
	if len(waits) == 0 && !waited {
		if status, ok := Renumbered(next.StoredStatus(), was.Meta.Generation, generation, true); ok {
			return next.WithStoredStatus(status)
		}
	}
	return next.WithStatus(In(next.Status(), k.Conditions, aspects, r.cfg.Clock()))
}

// report returns the state with a status that a controller reports. While the resource
// waits, its conditions Available and Progressing stay; overruled reports whether the
// controller gave others. A resource that no controller owns keeps those that the report
// leaves out.
func (r *Reconciler) report(w Write, next *kind.State) (out *kind.State, overruled bool) {
	if !w.StatusReport || w.Kind.Conditions == nil {
		return next, false
	}
	if len(next.Meta.Waits) > 0 && w.Was != nil && next.Meta.DeletionRequestedAt.IsZero() {
		kept := Kept(next.Status(), w.Was.Status())
		return next.WithStatus(kept), Mentions(next.Status()) && !jsontree.Equal(kept, next.Status())
	}
	if r.controllers.control(w.Kind.Name) {
		return next, false
	}
	absent := Absent(next.Status(), Done(next.Meta.Generation))
	if len(absent) == 0 {
		return next, false
	}
	return next.WithStatus(In(next.Status(), w.Kind.Conditions, absent, r.cfg.Clock())), false
}

// Finalizing returns a state whose conditions say that nothing but finalizers holds it.
func (r *Reconciler) Finalizing(k *kind.Kind, st *kind.State) *kind.State {
	next := *st
	next.Meta.Finalizing = true
	if k.Conditions == nil {
		return &next
	}
	return next.WithStatus(In(next.Status(), k.Conditions, Finalizing(next.Meta.Finalizers, next.Meta.Generation), r.cfg.Clock()))
}

// targets returns the resources under keys. Those that are apart are read from the store
// however others are read, because no check finds out that they have changed since.
func (r *Reconciler) targets(ctx context.Context, keys []backend.Key, read Reading, apart func(backend.Key) bool) (map[backend.Key]Target, error) {
	out := make(map[backend.Key]Target, len(keys))
	var ask []backend.Key
	for _, key := range keys {
		k, err := r.cfg.Kinds.Find(key.Kind)
		if err != nil {
			return nil, err
		}
		out[key] = Target{Kind: k}
		if read == FromIndex && r.cfg.Index != nil && !apart(key) {
			if held := r.cfg.Index.Recent(key); held != nil {
				out[key] = Target{Kind: k, Stored: held, Unpinned: true}
				continue
			}
		}
		ask = append(ask, key)
	}
	for len(ask) > 0 {
		some := ask[:min(len(ask), backend.MaxKeys)]
		if read == OneByOne {
			some = ask[:1]
		}
		got, err := r.cfg.Store.Get(ctx, some...)
		damaged := errors.Is(err, backend.ErrUnreadable) && len(some) == 1
		if damaged {
			got, err = make([]*backend.Resource, 1), nil
		}
		if err != nil {
			return nil, err
		}
		for i, stored := range got {
			out[some[i]] = Target{Kind: out[some[i]].Kind, Stored: stored, Damaged: damaged}
		}
		ask = ask[len(got):]
	}
	return out, nil
}
