package query

import (
	"bytes"
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// dependents reads the places of a connection of dependencies that a page wants. What
// refers to a resource is read from the store step by step: the references that stores
// keep are those that guard deletions.
type dependents struct {
	*relation
	in       interval
	backward bool
	size     int
	// ahead says to look whether there is more than size.
	ahead bool
	// of is the kind of those that are wanted; empty for all.
	of string
	// start and end bound what is still to be read; nil is open.
	start, end []byte
	begun      bool
	found      []related
	more, done bool
	looked     int
}

// begin prepares the first step.
func (sc *dependents) begin() {
	sc.begun = true
	switch {
	case sc.size == 0 && !sc.ahead:
		sc.done = true
	case sc.Relation == Dependencies:
		list := sc.dependencies()
		if sc.backward {
			slices.Reverse(list)
		}
		sc.take(list)
		sc.done = true
	case sc.Relation == Dependents && len(sc.kinds) == 0:
		sc.done = true
	default:
		// The places of one resource follow each other: the bounds have all of them.
		if key := sc.in.after; key != nil {
			sc.start = resourceOf(key)
		}
		if key := sc.in.from; key != nil {
			sc.start = resourceOf(key)
		}
		if key := sc.in.before; key != nil {
			sc.end = backend.Successor(resourceOf(key))
		}
	}
}

// resourceOf is the part of a place that says which resource it is of: (kind, namespace, name).
func resourceOf(key []byte) []byte {
	rest := key
	for range 3 {
		rest, _ = backend.SkipElement(rest) // it was checked
	}
	return bytes.Clone(key[:len(key)-len(rest)])
}

// take puts places on the page, in the page's direction, until it has all it wants.
func (sc *dependents) take(list []related) {
	for _, d := range list {
		if !sc.in.holds(d.key) {
			continue
		}
		if len(sc.found) == sc.size {
			sc.more, sc.done = true, true
			return
		}
		sc.found = append(sc.found, d)
		if !sc.ahead && len(sc.found) == sc.size {
			sc.done = true
			return
		}
	}
}

// request is the next range of the scan.
func (sc *dependents) request(left int) backend.Range {
	want := sc.size - len(sc.found)
	if sc.ahead {
		want++
	}
	return backend.Range{
		Kind: sc.of, Referenced: &sc.key, BoundOnly: sc.Relation != Dependents, Start: sc.start, End: sc.end, Reverse: sc.backward,
		Limit: max(min(want, backend.MaxLimit, left), 1), Bare: true,
	}
}

// judge takes what a step has read.
func (r *Reader) judge(ctx context.Context, sc *dependents, page backend.Page, arena *body.Arena) {
	damaged := page.Unreadable
	for _, stored := range page.Resources {
		sc.looked++
		for len(damaged) > 0 && sc.precedes(damaged[0], stored.Key) {
			sc.take(sc.unreadable(damaged[0]))
			damaged = damaged[1:]
		}
		list := r.dependentsOf(ctx, sc.relation, stored, arena)
		if sc.backward {
			slices.Reverse(list)
		}
		if sc.take(list); sc.done {
			return
		}
	}
	for _, key := range damaged {
		if sc.take(sc.unreadable(key)); sc.done {
			return
		}
	}
	if sc.done = !page.More || len(page.Resources) == 0; sc.done {
		return
	}
	last := page.Resources[len(page.Resources)-1].Key.Append(nil)
	if sc.backward {
		sc.end = last
	} else {
		sc.start = backend.Successor(last)
	}
}

// precedes reports whether a key comes before another on the page.
func (sc *dependents) precedes(a, b backend.Key) bool {
	order := bytes.Compare(a.Append(nil), b.Append(nil))
	return order < 0 && !sc.backward || order > 0 && sc.backward
}

// shows reports whether the connection has the resource under a key, which refers to that
// of the relation: dependents are of kinds that are known to.
func (rel *relation) shows(key backend.Key) bool {
	if rel.Relation == BlockedBy {
		return key != rel.key
	}
	return slices.ContainsFunc(rel.kinds, func(k *referring) bool { return k.Name == key.Kind })
}

// unreadable returns the place of a resource that cannot be read, so that its path is
// unknown.
func (rel *relation) unreadable(key backend.Key) []related {
	if key == (backend.Key{}) || !rel.shows(key) {
		return nil
	}
	return []related{rel.place(key, "", dependency.Unreadable)}
}

// place returns the place of a resource that refers to rel.key.
func (rel *relation) place(key backend.Key, path string, state dependency.State) related {
	return related{
		Dependency: Dependency{Key: key, Path: path, Guarded: rel.Relation == BlockedBy, State: state},
		key:        backend.AppendString(key.Append(nil), path),
	}
}

// dependentsOf are the places of one resource that refers to that of the relation.
func (r *Reader) dependentsOf(ctx context.Context, rel *relation, stored *backend.Resource, arena *body.Arena) (out []related) {
	if !rel.shows(stored.Key) {
		return nil
	}
	k, err := r.kinds.Find(stored.Kind)
	if err != nil || access.Authorize(ctx, rel.caller, k.Kind, descriptor.VerbGet) != nil {
		return []related{rel.place(stored.Key, "", dependency.Bound)}
	}
	b, err := arena.Read(k.Body, stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return rel.unreadable(stored.Key)
	}
	state := dependency.Bound
	if rel.Relation == Dependents {
		state = dependency.StateOf(waitsFor(b, rel.key), rel.body.Stored)
	}
	for i := range r.declared[stored.Kind] {
		d := &r.declared[stored.Kind][i]
		if d.Kind != rel.key.Kind || !d.Guard && rel.Relation == BlockedBy {
			continue
		}
		named := false
		d.eachName(b, func(name string) { named = named || name == rel.key.Name })
		if named {
			one := rel.place(stored.Key, d.Path, state)
			one.Guarded = d.Guard
			out = append(out, one)
		}
	}
	if len(out) == 0 { // other declarations have taken it
		out = append(out, rel.place(stored.Key, "", state))
	}
	for i := range out {
		out[i].Resource = Resource{Stored: stored, Body: b}
	}
	slices.SortFunc(out, func(a, b related) int { return bytes.Compare(a.key, b.key) })
	return out
}

// finish puts the places on the page, in their order.
func (sc *dependents) finish(p *Page) {
	if sc.backward {
		slices.Reverse(sc.found)
	}
	p.cut, p.ahead = sc.more, sc.ahead || len(sc.found) < sc.size
	p.Edges = make([]Edge, len(sc.found))
	for i := range sc.found {
		p.Edges[i] = Edge{Resource: sc.found[i].Resource, key: sc.found[i].key}
		if p.Dependencies != nil {
			p.Dependencies = append(p.Dependencies, sc.found[i].Dependency)
		}
	}
}

// runDependents reads until all scans are done. The next steps of all are one call, as
// far as the store takes so many.
func (r *Reader) runDependents(ctx context.Context, scans []*dependents) error {
	arena := &body.Arena{}
	for {
		var asked []*dependents
		firsts := 0 // bytes, as [maxFirsts] counts them
		for _, sc := range scans {
			if !sc.begun {
				sc.begin()
			}
			if !sc.done && len(asked) < maxStepRanges && firsts < maxFirsts {
				asked = append(asked, sc)
				firsts += r.sizes.estimate(r.largest(sc.relation), 1)
			}
		}
		if len(asked) == 0 {
			break
		}
		pages, err := r.stepDependents(ctx, asked)
		if err != nil {
			return err
		}
		for i, sc := range asked {
			r.judge(ctx, sc, pages[i], arena)
		}
	}
	if why := explanation(ctx); why != nil {
		for _, sc := range scans {
			if sc.looked > 0 {
				why.add(Explained{Kind: sc.key.Kind, Source: "store", By: "references to it", Looked: sc.looked, Returned: len(sc.found)})
			}
		}
	}
	return nil
}

// stepDependents reads the next step of scans, which the budget of the operation pays.
func (r *Reader) stepDependents(ctx context.Context, asked []*dependents) ([]backend.Page, error) {
	spent := budget.From(ctx)
	spent.Pace(ctx)
	if err := ctx.Err(); err != nil {
		return nil, failure.Of(err, backend.Key{})
	}
	left, expected := spent.Left(budget.Rows), 0
	ranges := make([]backend.Range, 0, len(asked))
	for _, sc := range asked {
		one := sc.request(max(left, 1))
		left -= one.Limit
		expected += r.sizes.estimate(r.largest(sc.relation), one.Limit)
		ranges = append(ranges, one)
	}
	expected = min(expected, backend.MaxPageBytes)
	err := spent.Spend(budget.Steps, budget.Scan*len(ranges))
	if err == nil && spent.Left(budget.Rows) == 0 {
		err = spent.Spend(budget.Rows, 1)
	}
	if err == nil {
		err = held(spent.Expect(ctx, expected))
	}
	if err != nil {
		return nil, err
	}
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, ranges)
	spent.Return(ctx)
	spent.Unexpect(expected)
	if err != nil {
		return nil, failure.Of(err, backend.Key{Kind: asked[0].key.Kind})
	}
	if err := spent.Spend(budget.Rows, resources(pages)); err != nil {
		return nil, err
	}
	for i := range pages {
		if err := hold(ctx, pages[i].Resources); err != nil {
			return nil, held(err)
		}
	}
	return pages, nil
}

// largest is the kind of those that refer to a resource whose resources are the largest, nil
// if none is known to.
func (r *Reader) largest(rel *relation) *kind.Kind {
	var largest *kind.Kind
	for _, k := range rel.kinds {
		if largest == nil || r.sizes.mean(k.Kind) > r.sizes.mean(largest) {
			largest = k.Kind
		}
	}
	return largest
}

// anyRelated says whether a connection of dependencies has a place in the interval.
func (r *Reader) anyRelated(ctx context.Context, rel *relation, in interval) (bool, error) {
	sc := &dependents{relation: rel, in: in, size: 1}
	err := r.runDependents(ctx, []*dependents{sc})
	return len(sc.found) > 0, err
}

// countRelated counts the places of a connection of dependencies. Those of a kind that
// refers to the resource by one path are as many as its resources, which a store counts
// without reading them.
func (r *Reader) countRelated(ctx context.Context, rel *relation) (int, error) {
	if rel.Relation == Dependencies {
		return len(rel.dependencies()), nil
	}
	var counts []backend.Range
	var scans []*dependents
	one := backend.Range{Referenced: &rel.key, BoundOnly: rel.Relation != Dependents, Count: true}
	rest := one // of kinds that this catalogue does not know to refer to it
	for _, k := range rel.kinds {
		rest.End = backend.AppendString(nil, k.Name)
		counts = append(counts, rest)
		rest.Start = backend.PrefixEnd(rest.End)
		if one.Kind = k.Name; len(k.paths) == 1 {
			counts = append(counts, one)
		} else {
			scans = append(scans, &dependents{relation: rel, of: k.Name, size: backend.MaxLimit})
		}
	}
	rest.End = nil
	counts = append(counts, rest)
	if rel.Relation == Dependents { // which are of known kinds alone
		counts = slices.DeleteFunc(counts, func(r backend.Range) bool { return r.Kind == "" })
	}
	n, err := r.countRanges(ctx, counts)
	if err != nil {
		return 0, err
	}
	for len(scans) > 0 {
		if err := r.runDependents(ctx, scans); err != nil {
			return 0, err
		}
		var rest []*dependents
		for _, sc := range scans {
			if n += len(sc.found); len(sc.found) == sc.size {
				rest = append(rest, &dependents{relation: rel, of: sc.of, in: interval{after: sc.found[sc.size-1].key}, size: sc.size})
			}
		}
		scans = rest
	}
	return n, nil
}

// countRanges is the number of resources in ranges that count.
func (r *Reader) countRanges(ctx context.Context, ranges []backend.Range) (n int, err error) {
	if len(ranges) == 0 {
		return 0, nil
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan); err != nil {
		return 0, err
	}
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, ranges)
	spent.Return(ctx)
	if err != nil {
		return 0, failure.Of(err, backend.Key{})
	}
	for i := range pages {
		n += pages[i].Count
	}
	return n, spent.Spend(budget.Steps, budget.Counted*n)
}
