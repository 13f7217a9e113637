package query

import (
	"cmp"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
)

// all is everything that the query is about, before its filter.
func (c *chooser) all() choice {
	out := choice{exact: true, once: true, named: true}
	out.add(index.Run{Start: c.scope.start, End: c.scope.end})
	return out
}

// readPlain reads a page without filter and order: of the names, or of what refers to
// a parent. There are hundreds of these in a level.
func (rd *reading) readPlain() {
	q := rd.query
	rd.whole, rd.by = true, "order of names"
	r := index.Run{}
	room := rd.space[:0]
	join := func(parts ...[]byte) []byte {
		from := len(room)
		for _, part := range parts {
			room = append(room, part...)
		}
		return room[from:]
	}
	if q.reference != "" {
		r.Index, rd.by = q.reference, "order of names in "+q.reference
		room = append(room, q.parent...)
	}
	parent := len(room)
	if q.namespace != "" {
		room = backend.AppendString(room, q.namespace)
	}
	if len(room) > 0 {
		r.Start = room
		r.End = join(r.Start, []byte{0xFF}) // as [backend.PrefixEnd]
	}
	behind := r.Start[:parent]
	var page bounds
	switch in := rd.in; {
	case in.after != nil:
		page.start = join(behind, in.after, []byte{0}) // as [backend.Successor]
	case in.from != nil:
		page.start = join(behind, in.from)
	}
	if rd.in.before != nil {
		page.end = join(behind, rd.in.before)
	}
	page = page.and(bounds{r.Start, r.End}) // a cursor never leads out of the namespace
	r.Start, r.End = page.start, page.end
	rd.space = room[:0]
	rd.found = rd.memory.room(min(rd.wanted(), maxReady))
	rd.kind.Scan(r, rd.backward, func(_ string, e *index.Entry) bool { return !rd.add(e) })
}

// maxReady is the room that a page begins with.
const maxReady = 128

// readPage reads a page in the way that probably looks at the fewest resources.
func (rd *reading) readPage() {
	by, ordered := rd.orderedBy()
	names := by == "" && ordered
	if along, ok := rd.onlyWalk(by); ok {
		rd.whole = true
		rd.scanOrder(by, along)
		return
	}
	chosen, ok := rd.best()
	rd.weigh(&chosen)
	if names && ok && chosen.named && len(chosen.runs) == 1 {
		rd.whole = chosen.exact
		rd.explain("order of names in ", &chosen)
		rd.scanNames(chosen.runs[0])
		return
	}
	all := rd.all()
	if rd.measure(&all); !ok || rd.measure(&chosen) >= all.rows {
		chosen, ok = all, false
		chosen.exact = !rd.query.filtered()
	}
	if chosen.rows == 0 {
		rd.explain("nothing: ", &chosen)
		return
	}
	// In the order every so-many-th resource is a match, as far as one can tell. That of an
	// index has the resources of all namespaces.
	among, along := all.rows, walk{}
	if by != "" && ordered {
		along, among = rd.walk(by, &chosen)
	}
	inOrder := min((rd.wanted()*among+chosen.rows-1)/chosen.rows, among) + rd.tied(by, along)
	switch {
	case names && (!ok || inOrder <= chosen.rows):
		rd.explain("order of names in ", &all)
		rd.scanNames(all.runs[0])
	case ordered && inOrder < chosen.rows:
		rd.whole = !rd.query.filtered() && rd.everywhere()
		rd.scanOrder(by, along)
	default:
		rd.whole = chosen.exact
		rd.explain("", &chosen)
		rd.collect(chosen)
	}
}

// walk is what a page is read along: the rows of an index in the order of the page, or
// those of one value of another index in that order.
type walk struct {
	index string
	// of is the other index, and value the value; nil for all resources.
	of    string
	value []byte
}

// run is the part of the walk between bounds of the order.
func (w walk) run(b bounds) index.Run {
	if w.value != nil {
		b = b.behind(w.value)
	}
	return index.Run{Index: w.index, Start: b.start, End: b.end}
}

// walk is the shortest walk in the order of an index that has all that the query keeps,
// and how many resources it has, in all namespaces.
func (rd *reading) walk(by string, chosen *choice) (w walk, rows int) {
	w, rows = walk{index: by}, rd.kind.Len(index.Run{})
	if by != index.CreatedIndex {
		return w, rows
	}
	for _, e := range rd.conditions(nil, rd.query.filter.all) {
		one, ok := rd.walkOf(e)
		if !ok {
			continue
		}
		run, n := index.Run{Index: one.of, Start: one.value, End: backend.PrefixEnd(one.value)}, chosen.rows
		if len(chosen.runs) != 1 || keyOf(chosen.runs[0]) != keyOf(run) {
			n = rd.kind.Len(run)
		}
		if n < rows {
			w, rows = one, n
		}
	}
	return w, rows
}

// walkOf is the walk in the order of creation that has all that a condition keeps.
func (rd *reading) walkOf(e expr) (w walk, ok bool) {
	t, _ := e.(test)
	if _, one, ok := t.bounds(); !ok || !one {
		return walk{}, false
	}
	w = walk{index: index.CreationIndex(t.attribute), of: t.attribute, value: t.values[0]}
	return w, rd.kind.Has(w.index)
}

// onlyWalk is the walk in the order of creation that has just what the query keeps: then
// nothing can be shorter.
func (rd *reading) onlyWalk(by string) (w walk, ok bool) {
	if by != index.CreatedIndex || len(rd.query.order) > 1 || rd.query.reference != "" || !rd.everywhere() {
		return walk{}, false
	}
	conditions := rd.conditions(nil, rd.query.filter.all)
	if len(conditions) != 1 {
		return walk{}, false
	}
	t, _ := conditions[0].(test)
	w, ok = rd.walkOf(t)
	return w, ok && len(t.values) == 1
}

// explain says in words how the page or the count is read, if anybody asks.
func (rd *reading) explain(how string, c *choice) {
	if rd.explained != nil {
		rd.by = how + c.String()
	}
}

// orderedBy is the index in whose order the page can be read; empty is that of the names.
func (c *chooser) orderedBy() (by string, ok bool) {
	if c.q.inNames() {
		return "", true
	}
	field := c.q.order[0].Field
	return field, field != namespaceAttribute && c.trees.Has(field)
}

// tied is how many resources are probably read to have those with the first value of
// an order, if others of its criteria decide among them.
func (rd *reading) tied(by string, along walk) (most int) {
	if len(rd.query.order) < 2 || by == "" {
		return 0
	}
	for _, reverse := range []bool{false, true} {
		rd.kind.Scan(along.run(bounds{}), reverse, func(value string, _ *index.Entry) bool {
			most = max(most, rd.kind.Len(along.run(rd.scope.behind([]byte(value)))))
			return false
		})
	}
	return max(most, rd.kind.Len(rd.nullRun(by)))
}

func (c *chooser) nullRun(by string) index.Run {
	return index.Run{Index: index.NullIndex(by), Start: c.scope.start, End: c.scope.end}
}

// collect reads the runs of a choice and keeps the nearest of what the query keeps.
func (rd *reading) collect(c choice) {
	rd.nearest = true
	sorted := c.named && len(rd.query.order) == 0
	for i, r := range c.runs {
		if sorted {
			r = rd.paged(r)
		}
		rd.kind.Scan(r, rd.backward, func(value string, e *index.Entry) bool {
			beyond := !rd.repeated(e, &c, i, value) && rd.offer(e)
			return rd.err == nil && !(beyond && sorted)
		})
		if rd.err != nil {
			return
		}
	}
}

// scanNames reads a run that is in the order of the names, behind one value.
func (rd *reading) scanNames(r index.Run) {
	reverse := rd.backward
	if len(rd.query.order) > 0 {
		reverse = rd.backward != rd.query.order[0].Descending
	}
	rd.kind.Scan(rd.paged(r), reverse, func(_ string, e *index.Entry) bool { return !rd.add(e) })
}

// paged is the part of a run in the order of the names, behind a value, that a page of
// an interval of the order can have.
func (o order) paged(in interval, r index.Run, value []byte) index.Run {
	after, from, before := o.place(in.after), o.place(in.from), o.place(in.before)
	page := bounds{from, before}
	switch descending := len(o) > 0 && o[0].Descending; {
	case descending:
		// The interval ends with the resource of that place, or just before it, as
		// the scan judges. What makes a successor of the key has no part in the place.
		page = bounds{onlyPlace(before), nil}
		if after != nil {
			page.end = after
		} else if from != nil {
			page.end = backend.Successor(from)
		}
	case after != nil:
		page.start = backend.Successor(after)
	}
	page = bounds{r.Start, r.End}.and(page.behind(value))
	return index.Run{Index: r.Index, Start: page.start, End: page.end}
}

// paged is [order.paged] of a run that [chooser.valued] made, or of the names.
func (rd *reading) paged(r index.Run) index.Run {
	var value []byte
	if r.Index != "" {
		value = r.Start[:len(r.Start)-len(rd.scope.start)]
	}
	return rd.query.order.paged(rd.in, r, value)
}

// onlyPlace is the place with which a text begins.
func onlyPlace(b []byte) []byte {
	rest := b
	for range 2 { // namespace, name
		var err error
		if rest, err = backend.SkipElement(rest); err != nil {
			return b
		}
	}
	return b[:len(b)-len(rest)]
}

// scanOrder reads in the order of an index: first those without a value, if it ascends.
func (rd *reading) scanOrder(by string, along walk) {
	if rd.by = "order of " + by; along.value != nil {
		rd.by += ", of one value of " + along.of
	}
	value, place := rd.start()
	nullsFirst := rd.query.order[0].Descending == rd.backward
	inNulls := place != nil && value == nil
	if nullsFirst && (place == nil || inNulls) && rd.scanNulls(by, place) {
		return
	}
	if !nullsFirst && inNulls || !rd.scanValues(by, along, value, place) {
		if !nullsFirst {
			if !inNulls {
				place = nil
			}
			rd.scanNulls(by, place)
		}
	}
}

// scanNulls reads those without a value in an index, from a place on.
func (rd *reading) scanNulls(by string, place []byte) (done bool) {
	r := rd.nullRun(by)
	if place != nil && len(rd.query.order) == 1 {
		page := bounds{start: place}
		if rd.backward {
			page = bounds{end: place}
		}
		page = bounds{r.Start, r.End}.and(page)
		r.Start, r.End = page.start, page.end
	}
	return rd.scanTied(r)
}

// scanTied reads a run of one value, or of none, and says whether the page has all it wants.
func (rd *reading) scanTied(r index.Run) (done bool) {
	if len(rd.query.order) == 1 {
		rd.kind.Scan(r, rd.backward, func(_ string, e *index.Entry) bool {
			done = rd.add(e)
			return !done
		})
		return done
	}
	// Of those that are tied no more than the page still wants, and as many again.
	type tie struct {
		key string
		*index.Entry
	}
	var ties []tie
	room := rd.wanted() - len(rd.found)
	sift := func() {
		slices.SortFunc(ties, func(a, b tie) int {
			if rd.backward {
				a, b = b, a
			}
			return cmp.Compare(a.key, b.key)
		})
		ties = ties[:min(len(ties), room)]
	}
	rd.kind.Scan(r, false, func(_ string, e *index.Entry) bool {
		if rd.sees(e) {
			rd.key = rd.query.order.appendKey(rd.key[:0], &rd.resource)
			if rd.in.holds(rd.key) {
				ties = append(ties, tie{string(rd.key), e})
			}
		}
		if len(ties) > 2*room+maxTied {
			sift()
		}
		return rd.err == nil
	})
	sift()
	for _, t := range ties {
		if rd.add(t.Entry) {
			return true
		}
	}
	return rd.err != nil
}

// scanValues reads the values of an index in their order, or the reverse, and the
// resources of each by their names: from the first one on, if it is not nil, and of
// that from a place on.
func (rd *reading) scanValues(by string, along walk, first, place []byte) (done bool) {
	upward := rd.query.order[0].Descending == rd.backward
	inRun := upward == !rd.backward && len(rd.query.order) == 1 // the order is that of the rows
	var page, kept bounds
	if !rd.many(by) {
		r := rd.kept(by)
		kept = bounds{r.Start, r.End}
	}
	switch {
	case first == nil:
	case upward && inRun:
		page.start = append(slices.Clone(first), place...)
	case upward:
		page.start = first
	case inRun:
		page.end = append(slices.Clone(first), place...)
	default:
		page.end = backend.PrefixEnd(first)
	}
	page = page.and(kept)
	if inRun {
		rd.kind.Scan(along.run(page), rd.backward, func(_ string, e *index.Entry) bool {
			done = rd.add(e)
			return !done
		})
		return done
	}
	if len(rd.query.order) == 1 {
		var ok bool
		if page, done, ok = rd.scanFewTied(along, page, !upward); ok {
			return done
		}
	}
	for {
		var value []byte
		rd.kind.Scan(along.run(page), !upward, func(v string, _ *index.Entry) bool {
			value = []byte(v)
			return false
		})
		if rd.look(); value == nil || rd.err != nil {
			return rd.err != nil
		}
		tied := rd.scope.behind(value)
		if string(value) == string(first) && len(rd.query.order) == 1 {
			at := append(slices.Clone(value), place...)
			if rd.backward {
				tied = tied.and(bounds{end: at})
			} else {
				tied = tied.and(bounds{start: at})
			}
		}
		if rd.scanTied(along.run(tied)) {
			return true
		}
		if upward {
			page.start = backend.PrefixEnd(value)
		} else {
			page.end = value
		}
	}
}

// maxTied is how many resources of one value are turned round where they are met.
const maxTied = 64

// scanFewTied reads values against the order of the names, and turns those of one value
// round. If it meets one that many have, it returns what is left, and false.
func (rd *reading) scanFewTied(along walk, b bounds, reverse bool) (left bounds, done, ok bool) {
	var space [maxTied]*index.Entry
	ties, of := space[:0], ""
	flush := func() bool {
		for i := len(ties) - 1; i >= 0 && !done; i-- {
			done = rd.add(ties[i])
		}
		ties = ties[:0]
		return !done
	}
	ok = true
	rd.kind.Scan(along.run(b), reverse, func(value string, e *index.Entry) bool {
		if len(ties) > 0 && value != of && !flush() {
			return false
		}
		if of = value; len(ties) == maxTied {
			ok = false
			return false
		}
		ties = append(ties, e)
		return true
	})
	switch {
	case ok:
		flush()
	case reverse:
		b.end = backend.PrefixEnd([]byte(of))
	default:
		b.start = []byte(of)
	}
	return b, done, ok
}

// start is the value with which the page begins, and the place behind it; nil if it
// begins with the first one, or with those that have none.
func (sc *scan) start() (value, place []byte) {
	key := sc.in.after
	switch {
	case sc.backward:
		key = sc.in.before
	case key == nil:
		key = sc.in.from
	}
	if key == nil {
		return nil, nil
	}
	value = sc.query.order[0].value(key)
	return value, sc.query.order.place(key)
}

// kept is the part of an index of one value that holds all that the tests of its attribute keep.
func (sc *scan) kept(by string) index.Run {
	var b bounds
	for _, t := range sc.query.filter.tests() {
		if r, _, ok := t.bounds(); ok && t.attribute == by {
			b = b.and(r)
		}
	}
	return index.Run{Index: by, Start: b.start, End: b.end}
}
