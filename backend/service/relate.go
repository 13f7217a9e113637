package service

import (
	"context"
	"errors"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
)

// relating is a state on its way to the store, whose references are to be judged.
type relating struct {
	kind *kind.Kind
	key  backend.Key
	// stored is what the state takes the place of, nil for nothing, and was what could be
	// read of it.
	stored *backend.Resource
	was    *kind.State
	// respecified: the spec is another, or there was none.
	respecified bool
	// reported: a controller reports this status.
	reported bool
	// lookup says how what is referred to is read.
	lookup lookup
}

// before is what the resource referred to until now.
func (r relating) before() dependency.Before {
	if r.was == nil {
		return dependency.Before{}
	}
	return dependency.Known(r.kind, r.stored, r.was)
}

// relate says what a state refers to, what it waits for, and what its conditions say
// of that. A spec that stays leaves the stored references as they are.
func (s *Service) relate(ctx context.Context, r relating, next *kind.State) (*kind.State, dependency.Judgement, error) {
	var j dependency.Judgement
	if r.kind.Conditions != nil {
		if err := s.knowOwners(ctx); err != nil {
			return nil, j, err
		}
	}
	if !r.respecified {
		next, j.Overruled = s.report(r, next)
		return next, j, nil
	}
	foreign := r.stored != nil && r.stored.Declared != r.kind.Declared
	if foreign {
		newest, err := s.Newest(ctx)
		if err != nil {
			return nil, j, err
		}
		if !newest {
			return s.relateSuperseded(ctx, r, next)
		}
	}
	before := r.before()
	if refs := r.kind.Rows.Refs(r.key.Namespace, next.Spec); len(refs) > 0 || len(before.Waits) > 0 {
		rel := dependency.Of(r.key, refs, before)
		if status, ok := r.waitsOn(rel, next); ok && !foreign {
			j := rel.Kept()
			return next.WithStoredStatus(status), dependency.Judgement{Refs: j.Refs, Declared: r.kind.Declared}, nil
		}
		targets, err := s.targets(ctx, rel.Open(), r.lookup)
		if err != nil {
			return nil, j, err
		}
		j = rel.Judge(targets)
	}
	j.Declared = r.kind.Declared
	next.Meta.Waits = j.Stored()
	return s.conclude(r, next, j.Waits), j, nil
}

// relateSuperseded judges a spec whose references a gateway with a newer catalogue has
// taken. What the resource is bound to stays bound, and what it waits for that this
// gateway cannot name it waits for still: then its conditions stay as they are. The
// newer gateway finds the change by the fingerprint of the references, and judges it.
func (s *Service) relateSuperseded(ctx context.Context, r relating, next *kind.State) (*kind.State, dependency.Judgement, error) {
	var was []row.Ref
	var waits []string
	if r.was != nil {
		was, waits = r.kind.Rows.Refs(r.key.Namespace, r.was.Spec), r.was.Meta.Waits
	}
	rel := dependency.Of(r.key, r.kind.Rows.Refs(r.key.Namespace, next.Spec), r.before())
	targets, err := s.targets(ctx, rel.Open(), r.lookup)
	if err != nil {
		return nil, dependency.Judgement{}, err
	}
	j := rel.Judge(targets)
	j.Refs, j.Declared = j.Keeping(r.stored.Refs, was), dependency.Mixed
	others := slices.DeleteFunc(slices.Clone(waits), func(wait string) bool {
		return slices.ContainsFunc(was, func(ref row.Ref) bool { return dependency.Name(ref.Key) == wait })
	})
	next.Meta.Waits = append(j.Stored(), others...)
	if len(others) == 0 {
		return s.conclude(r, next, j.Waits), j, nil
	}
	if status, ok := dependency.Renumbered(next.StoredStatus(), r.was.Meta.Generation, next.Meta.Generation, false); ok {
		next = next.WithStoredStatus(status)
	}
	return next, j, nil
}

// conclude returns the state with the conditions that follow from what it waits for.
func (s *Service) conclude(r relating, next *kind.State, waits []dependency.Wait) *kind.State {
	if r.kind.Conditions == nil || next.Meta.Finalizing {
		return next
	}
	generation := next.Meta.Generation
	aspects := dependency.Done(generation)
	switch controlled := s.owners.controlled(r.kind.Name); {
	case len(waits) > 0:
		aspects = dependency.Waiting(waits, generation)
	case controlled && (r.was == nil || len(r.was.Meta.Waits) > 0):
		aspects = dependency.Released(generation)
	case controlled:
		return next
	}
	if status, ok := s.renumbered(r, next, waits); ok {
		return next.WithStoredStatus(status)
	}
	return next.WithStatus(dependency.In(next.Status(), r.kind.Conditions, aspects, s.cfg.Clock()))
}

// renumbered is the stored status of a resource that waited for nothing and waits for
// nothing, for another generation.
func (s *Service) renumbered(r relating, next *kind.State, waits []dependency.Wait) ([]byte, bool) {
	if len(waits) > 0 || r.was == nil || len(r.was.Meta.Waits) > 0 {
		return nil, false
	}
	return dependency.Renumbered(next.StoredStatus(), r.was.Meta.Generation, next.Meta.Generation, true)
}

// waitsOn is the stored status, for another generation, of a resource that waits for just
// what it waited for. That need not be read: whoever changes it has those judged anew
// that wait for it.
func (r relating) waitsOn(rel dependency.Relation, next *kind.State) ([]byte, bool) {
	if r.was == nil || len(r.was.Meta.Waits) == 0 || r.kind.Conditions == nil || !rel.WaitsFor(r.was.Meta.Waits) {
		return nil, false
	}
	return dependency.Renumbered(next.StoredStatus(), r.was.Meta.Generation, next.Meta.Generation, false)
}

// report is the state with a status that a controller reports. While the resource
// waits, its conditions are those that say so; overruled says that the report has others.
// One that nobody controls keeps some.
func (s *Service) report(r relating, next *kind.State) (out *kind.State, overruled bool) {
	if !r.reported || r.kind.Conditions == nil {
		return next, false
	}
	if len(next.Meta.Waits) > 0 && r.was != nil && next.Meta.DeletionRequestedAt.IsZero() {
		kept := dependency.Kept(next.Status(), r.was.Status())
		return next.WithStatus(kept), dependency.Mentions(next.Status()) && !jsontree.Equal(kept, next.Status())
	}
	if s.owners.controlled(r.kind.Name) {
		return next, false
	}
	absent := dependency.Absent(next.Status(), dependency.Done(next.Meta.Generation))
	if len(absent) == 0 {
		return next, false
	}
	status := dependency.In(next.Status(), r.kind.Conditions, absent, s.cfg.Clock())
	return next.WithStatus(status), false
}

// lookup says how targets are read.
type lookup uint8

const (
	// recently: from the index, which may be older than the store, and what it does not
	// have in one call. The store refuses a write that was made from an old state.
	recently lookup = iota
	// together: from the store, in one call, in which what is damaged seems to be missing.
	together
	// oneByOne: from the store, one by one, so that what is damaged is told from what is missing.
	oneByOne
)

// targets are the resources under keys.
func (s *Service) targets(ctx context.Context, keys []backend.Key, how lookup) (map[backend.Key]dependency.Target, error) {
	out := make(map[backend.Key]dependency.Target, len(keys))
	var ask []backend.Key
	for _, key := range keys {
		k, err := s.kinds.Find(key.Kind)
		if err != nil {
			return nil, err
		}
		out[key] = dependency.Target{Kind: k}
		if how == recently && s.index != nil {
			if held := s.index.Recent(key); held != nil {
				out[key] = dependency.Target{Kind: k, Stored: held, Recent: true}
				continue
			}
		}
		ask = append(ask, key)
	}
	for len(ask) > 0 {
		some := ask[:min(len(ask), backend.MaxKeys)]
		if how == oneByOne {
			some = ask[:1]
		}
		got, err := s.cfg.Store.Get(ctx, some...)
		damaged := errors.Is(err, backend.ErrUnreadable) && len(some) == 1
		if damaged {
			got, err = make([]*backend.Resource, 1), nil
		}
		if err != nil {
			return nil, err
		}
		for i, r := range got {
			out[some[i]] = dependency.Target{Kind: out[some[i]].Kind, Stored: r, Damaged: damaged}
		}
		ask = ask[len(got):]
	}
	return out, nil
}

// waitWarnings says what a resource waits for, and what was not taken over since it waits.
func waitWarnings(j dependency.Judgement) []failure.Warning {
	var out []failure.Warning
	if j.Overruled {
		out = append(out, failure.Warning{
			Code: failure.WarningWaiting, Path: "status.conditions",
			Message: "the resource waits for others: its conditions Available and Progressing say so, and what the status says of them was not taken over",
		})
	}
	for _, w := range j.Waits {
		out = append(out, failure.Warning{Code: failure.WarningWaiting, Message: w.String(), Path: w.Path})
	}
	return out
}

// releases says whether an intent does nothing but remove finalizers of what is stored.
func (in *intent) releases(was *kind.State) bool {
	m := in.meta
	return in.verb == descriptor.VerbPatch && in.unspecified && m.Finalizers.Set &&
		!m.Labels.Set && !m.Annotations.Set && !m.Description.Set && !m.ExpiresAt.Set &&
		!slices.ContainsFunc(m.Finalizers.Value, func(f string) bool { return !slices.Contains(was.Meta.Finalizers, f) })
}
