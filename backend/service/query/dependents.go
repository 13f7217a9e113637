package query

import (
	"bytes"
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/page"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// dependents reads a page of related resources. For Dependents and BlockedBy it reads, in several steps, the resources
// that the store finds by their references.
type dependents struct {
	*relation
	plan.Want
	// of is the name of the kind to read; empty for all kinds.
	of string
	// start and end bound the keys that are still to be read; nil means no bound.
	start, end []byte
	found      []related
	more, done bool
	looked     int
	// hidden is the number of referring resources that the caller may not see.
	hidden int
}

// begin prepares the first step. Dependencies need no step, because they follow from the body.
func (sc *dependents) begin() {
	switch {
	case sc.Limit() == 0:
		sc.done = true
	case sc.Relation == Dependencies:
		list := sc.dependencies()
		if sc.Backward {
			slices.Reverse(list)
		}
		sc.take(list)
		sc.done = true
	case sc.Relation == Dependents && len(sc.kinds) == 0:
		sc.done = true
	default:
		// All entries of one resource are neighbours, so the bound may be the resource itself.
		if key := sc.In.After; key != nil {
			sc.start = resourceOf(key)
		}
		if key := sc.In.From; key != nil {
			sc.start = resourceOf(key)
		}
		if key := sc.In.Before; key != nil {
			sc.end = backend.Successor(resourceOf(key))
		}
	}
}

// resourceOf returns the part of a sort key that identifies the resource: (kind, namespace, name).
func resourceOf(key []byte) []byte {
	rest := key
	for range 3 {
		rest, _ = backend.SkipElement(rest) // the key has the form of a sort key
	}
	return bytes.Clone(key[:len(key)-len(rest)])
}

// take adds entries to the page until the page is full. The entries must be in the direction of the page.
func (sc *dependents) take(list []related) {
	for _, d := range list {
		if !sc.In.Contains(d.key) {
			continue
		}
		if len(sc.found) == sc.Size {
			sc.more, sc.done = true, true
			return
		}
		sc.found = append(sc.found, d)
		if !sc.Ahead && len(sc.found) == sc.Size {
			sc.done = true
			return
		}
	}
}

// request returns the range to read in the next step.
func (sc *dependents) request(left int) backend.Range {
	return backend.Range{
		Kind:       sc.of,
		Referenced: &sc.key,
		BoundOnly:  sc.Relation != Dependents,
		Start:      sc.start,
		End:        sc.end,
		Reverse:    sc.Backward,
		// Only Dependents needs Refs, to find out which references are guarded: BoundOnly excludes the others.
		Limit: max(min(sc.Limit()-len(sc.found), backend.MaxLimit, left), 1),
		Bare:  sc.Relation != Dependents,
	}
}

// addPage adds the entries of the resources that a step has read.
func (r *Reader) addPage(sc *dependents, got backend.Page, arena *body.Arena) {
	damaged := got.Unreadable
	for _, stored := range got.Resources {
		sc.looked++
		for len(damaged) > 0 && sc.precedes(damaged[0], stored.Key) {
			sc.take(r.damaged(sc, damaged[0]))
			damaged = damaged[1:]
		}
		if !r.sees(sc.relation, stored.Key) {
			if sc.shows(stored.Key) {
				sc.hidden++
			}
			continue
		}
		list := r.dependentsOf(sc.relation, stored, arena)
		if sc.Backward {
			slices.Reverse(list)
		}
		if sc.take(list); sc.done {
			return
		}
	}
	for _, key := range damaged {
		if sc.take(r.damaged(sc, key)); sc.done {
			return
		}
	}
	sc.done = !got.More || len(got.Resources) == 0
	if sc.done {
		return
	}
	last := got.Resources[len(got.Resources)-1].Key.Append(nil)
	if sc.Backward {
		sc.end = last
	} else {
		sc.start = backend.Successor(last)
	}
}

// damaged returns the entry of a resource that cannot be read. If the caller may not see the resource, it returns none.
func (r *Reader) damaged(sc *dependents, key backend.Key) []related {
	out := sc.unreadable(key)
	if out != nil && !r.sees(sc.relation, key) {
		sc.hidden++
		return nil
	}
	return out
}

// sees reports whether the caller may see a resource. Only callers who may do everything see resources of unknown
// kinds.
func (r *Reader) sees(rel *relation, key backend.Key) bool {
	if rel.rights.All() {
		return true
	}
	k, err := r.kinds.Find(key.Kind)
	return err == nil && rel.rights.Sees(k.Kind, key)
}

// precedes reports whether a comes before b on the page.
func (sc *dependents) precedes(a, b backend.Key) bool {
	order := bytes.Compare(a.Append(nil), b.Append(nil))
	return order < 0 && !sc.Backward || order > 0 && sc.Backward
}

// shows reports whether a resource that refers to the relation's resource belongs to the relation. Dependents shows
// only kinds whose references this catalogue declares.
func (rel *relation) shows(key backend.Key) bool {
	if rel.Relation == BlockedBy {
		return key != rel.key
	}
	return slices.ContainsFunc(rel.kinds, func(k *referring) bool { return k.Name == key.Kind })
}

// unreadable returns the entry of a resource that cannot be read. The entry has no path, because the path is unknown.
func (rel *relation) unreadable(key backend.Key) []related {
	if key == (backend.Key{}) || !rel.shows(key) {
		return nil
	}
	return []related{rel.place(key, "", dependency.Unreadable)}
}

// place returns the entry of a resource that refers to rel.key.
func (rel *relation) place(key backend.Key, path string, state dependency.State) related {
	return related{
		Dependency: Dependency{Key: key, Path: path, Guarded: rel.Relation == BlockedBy, State: state},
		key:        backend.AppendString(key.Append(nil), path),
	}
}

// dependentsOf returns an entry for each reference from a stored resource to the relation's resource.
func (r *Reader) dependentsOf(rel *relation, stored *backend.Resource, arena *body.Arena) (out []related) {
	if !rel.shows(stored.Key) {
		return nil
	}
	k, err := r.kinds.Find(stored.Kind)
	if err != nil || !k.Has(descriptor.VerbGet) {
		return []related{rel.place(stored.Key, "", dependency.Bound)}
	}
	b := r.fetch.Read(arena, k, stored)
	if b == nil {
		out := rel.unreadable(stored.Key)
		for i := range out {
			out[i].Guarded = out[i].Guarded || Guards{stored.Key: stored}.HasGuard(stored.Key, rel.key, false)
		}
		return out
	}
	state := dependency.Bound
	if rel.Relation == Dependents {
		state = dependency.StateOf(waitsFor(b, rel.key), rel.body.Stored)
	}
	for i := range r.declared[stored.Kind] {
		d := &r.declared[stored.Kind][i]
		if d.Kind != rel.key.Kind || !d.Guarded && rel.Relation == BlockedBy {
			continue
		}
		named := false
		d.eachName(b, func(name string) { named = named || name == rel.key.Name })
		if named {
			one := rel.place(stored.Key, d.apiPath, state)
			one.Guarded = d.Guarded
			if r.foreign(stored) {
				one.Guarded = Guards{stored.Key: stored}.HasGuard(stored.Key, rel.key, d.Guarded)
			}
			out = append(out, one)
		}
	}
	if len(out) == 0 { // only another catalogue declares the reference
		out = append(out, rel.place(stored.Key, "", state))
	}
	for i := range out {
		out[i].Resource = Resource{Stored: stored, Body: b}
	}
	slices.SortFunc(out, func(a, b related) int { return bytes.Compare(a.key, b.key) })
	return out
}

// finish copies the entries to the page.
func (sc *dependents) finish(p *Page) {
	if sc.Backward {
		slices.Reverse(sc.found)
	}
	p.cut, p.ahead = sc.more, sc.Ahead || len(sc.found) < sc.Size
	for _, d := range sc.found {
		p.Edges, p.Dependencies = append(p.Edges, page.At(d.Resource, d.key)), append(p.Dependencies, d.Dependency)
	}
}

// runDependents reads until all scans are done. Each call of the store makes the next step of as many scans as the
// store accepts in one call.
func (r *Reader) runDependents(ctx context.Context, scans []*dependents) error {
	arena, spent := &body.Arena{}, budget.From(ctx)
	for _, sc := range scans {
		sc.begin()
	}
	for {
		var reading []*dependents
		var requests []page.RangeRequest
		left, firsts := spent.Left(budget.Rows), 0
		for _, sc := range scans {
			if sc.done || len(reading) == page.MaxStepRanges || firsts >= page.MaxFirsts {
				continue
			}
			one := page.RangeRequest{Range: sc.request(max(left, 1)), Kind: r.largest(sc.relation)}
			left, firsts = left-one.Limit, firsts+r.fetch.Estimate(one.Kind, 1)
			reading, requests = append(reading, sc), append(requests, one)
		}
		if len(reading) == 0 {
			break
		}
		if err := spent.Spend(budget.Steps, budget.Scan*len(reading)); err != nil {
			return err
		}
		pages, err := r.fetch.Ranges(ctx, requests...)
		if err != nil {
			return err
		}
		for i, sc := range reading {
			r.addPage(sc, pages[i], arena)
		}
	}
	for _, sc := range scans {
		why, looked := plan.ExplanationFrom(ctx), sc.looked
		if !sc.rights.All() { // the caller may not know how many others there are
			looked = len(sc.found)
		}
		if looked > 0 {
			why.Add(plan.Explained{
				Kind:     sc.key.Kind,
				Source:   "store",
				By:       "references to it",
				Looked:   looked,
				Returned: len(sc.found),
			})
		}
	}
	return nil
}

// largest returns, among the kinds of a relation, the one with the largest resources; nil if there are no kinds. It
// serves to estimate memory.
func (r *Reader) largest(rel *relation) *kind.Kind {
	if len(rel.kinds) == 0 {
		return nil
	}
	return slices.MaxFunc(
		rel.kinds, func(a, b *referring) int { return cmp.Compare(r.fetch.Mean(a.Kind), r.fetch.Mean(b.Kind)) },
	).Kind
}

// allRelated reads all entries of a relation.
func (r *Reader) allRelated(ctx context.Context, rel *relation) (*dependents, error) {
	sc := &dependents{relation: rel, Want: plan.Want{Size: math.MaxInt}}
	return sc, r.runDependents(ctx, []*dependents{sc})
}

// countRelated returns the number of entries of a relation. If a kind has only one reference to the resource's kind,
// the store counts the resources of the kind without reading them.
func (r *Reader) countRelated(ctx context.Context, rel *relation) (int, error) {
	if rel.Relation == Dependencies {
		return len(rel.dependencies()), nil
	}
	if !rel.rights.All() {
		all, err := r.allRelated(ctx, rel)
		return len(all.found), err
	}
	var counts []page.RangeRequest
	var scans []*dependents
	one := backend.Range{Referenced: &rel.key, BoundOnly: rel.Relation != Dependents, Count: true}
	rest := one // covers the kinds that are not in rel.kinds
	for _, k := range rel.kinds {
		rest.End = backend.AppendString(nil, k.Name)
		counts = append(counts, page.RangeRequest{Range: rest})
		rest.Start = backend.PrefixEnd(rest.End)
		one.Kind = k.Name
		if len(k.paths) == 1 {
			counts = append(counts, page.RangeRequest{Range: one, Kind: k.Kind})
		} else {
			scans = append(scans, &dependents{relation: rel, of: k.Name, Want: plan.Want{Size: math.MaxInt}})
		}
	}
	rest.End = nil
	counts = append(counts, page.RangeRequest{Range: rest})
	if rel.Relation == Dependents { // has only the kinds in rel.kinds
		counts = slices.DeleteFunc(counts, func(r page.RangeRequest) bool { return r.Range.Kind == "" })
	}
	n := 0
	if spent := budget.From(ctx); len(counts) > 0 {
		if err := spent.Spend(budget.Steps, budget.Scan); err != nil {
			return 0, err
		}
		pages, err := r.fetch.Ranges(ctx, counts...)
		if err != nil {
			return 0, err
		}
		for i := range pages {
			n += pages[i].Count
		}
		if err := spent.Spend(budget.Steps, budget.Counted*n); err != nil {
			return 0, err
		}
	}
	if err := r.runDependents(ctx, scans); err != nil {
		return 0, err
	}
	for _, sc := range scans {
		n += len(sc.found)
	}
	return n, nil
}
