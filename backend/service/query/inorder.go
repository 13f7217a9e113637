package query

import (
	"cmp"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
)

// all is everything that the query is about, before its filter.
func (c *chooser) all() choice {
	out := choice{exact: true, once: true, named: true}
	out.add(c, index.Run{Start: c.scope.start, End: c.scope.end})
	return out
}

// readPage reads a page in the way that probably looks at the fewest resources.
func (rd *reading) readPage() {
	all := rd.all()
	chosen, ok := rd.best()
	if !ok {
		chosen = all
		chosen.exact = rd.query.filter.all == nil && rd.query.reference == ""
	}
	if chosen.rows == 0 || all.rows == 0 {
		rd.by = "nothing: no rows in " + chosen.String()
		return
	}
	by, ordered := rd.orderedBy()
	// In the order every so-many-th resource is a match, as far as one can tell.
	inOrder := min((rd.wanted()*all.rows+chosen.rows-1)/chosen.rows, all.rows) + rd.tied(by)
	names := by == "" && ordered
	switch {
	case names && chosen.named && len(chosen.runs) == 1:
		rd.by, rd.whole = "order of names in "+chosen.String(), chosen.exact
		rd.scanNames(chosen.runs[0])
	case ok && (!ordered || chosen.rows <= inOrder):
		rd.by, rd.whole = chosen.String(), chosen.exact
		rd.collect(chosen)
	case names:
		rd.by = "order of names"
		rd.scanNames(all.runs[0])
	case ordered && inOrder <= all.rows:
		rd.by, rd.whole = "order of "+by, !ok && chosen.exact && rd.everywhere()
		rd.scanOrder(by)
	default:
		rd.by, rd.whole = "all", !ok && chosen.exact
		rd.collect(all)
	}
}

// orderedBy is the index in whose order the page can be read; empty is that of the names.
func (rd *reading) orderedBy() (by string, ok bool) {
	if len(rd.query.order) == 0 {
		return "", true
	}
	switch field := rd.query.order[0].Field; {
	case field == namespaceAttribute:
		return field, false
	case field == nameAttribute && (rd.query.namespace != "" || rd.query.kind.Scope == descriptor.Global):
		return "", true
	default:
		return field, rd.kind.Has(field)
	}
}

// tied is how many resources are probably read to have those with the first value of
// an order, if others of its criteria decide among them.
func (rd *reading) tied(by string) (most int) {
	if len(rd.query.order) < 2 || by == "" {
		return 0
	}
	for _, reverse := range []bool{false, true} {
		rd.kind.Scan(index.Run{Index: by}, reverse, func(value string, _ *index.Entry) bool {
			most = max(most, rd.kind.Len(rd.valued(by, []byte(value))))
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
	if !c.once {
		rd.seen = map[backend.Key]bool{}
	}
	sorted := c.named && len(rd.query.order) == 0
	for _, r := range c.runs {
		if sorted {
			r = rd.paged(r)
		}
		rd.kind.Scan(r, rd.backward, func(_ string, e *index.Entry) bool {
			beyond := rd.offer(e)
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

// paged is the part of a run in the order of the names that the page can have.
func (rd *reading) paged(r index.Run) index.Run {
	var value []byte
	if r.Index != "" {
		value = r.Start[:len(r.Start)-len(rd.scope.start)] // as [chooser.valued] made it
	}
	after, from, before := rd.query.order.place(rd.in.after), rd.query.order.place(rd.in.from), rd.query.order.place(rd.in.before)
	page := bounds{from, before}
	switch descending := len(rd.query.order) > 0 && rd.query.order[0].Descending; {
	case descending: // the place is that of a resource, with which the interval ends
		page = bounds{before, nil}
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

// scanOrder reads in the order of an index: first those without a value, if it ascends.
func (rd *reading) scanOrder(by string) {
	value, place := rd.begin()
	nullsFirst := rd.query.order[0].Descending == rd.backward
	inNulls := place != nil && value == nil
	if nullsFirst && (place == nil || inNulls) && rd.scanNulls(by, place) {
		return
	}
	if !nullsFirst && inNulls || !rd.scanValues(by, value, place) {
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
	type tie struct {
		key string
		*index.Entry
	}
	var ties []tie
	rd.kind.Scan(r, false, func(_ string, e *index.Entry) bool {
		if rd.sees(e) {
			ties = append(ties, tie{string(rd.query.order.appendKey(nil, &rd.resource)), e})
		}
		return rd.err == nil
	})
	slices.SortFunc(ties, func(a, b tie) int {
		if rd.backward {
			a, b = b, a
		}
		return cmp.Compare(a.key, b.key)
	})
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
func (rd *reading) scanValues(by string, first, place []byte) (done bool) {
	upward := rd.query.order[0].Descending == rd.backward
	r := index.Run{Index: by}
	switch {
	case first == nil:
	case upward:
		r.Start = first
	default:
		r.End = backend.PrefixEnd(first)
	}
	if upward == !rd.backward && len(rd.query.order) == 1 {
		switch {
		case first == nil:
		case upward:
			r.Start = append(slices.Clone(first), place...)
		default:
			r.End = append(slices.Clone(first), place...)
		}
		rd.kind.Scan(r, rd.backward, func(_ string, e *index.Entry) bool {
			done = rd.add(e)
			return !done
		})
		return done
	}
	for {
		var value []byte
		rd.kind.Scan(r, !upward, func(v string, _ *index.Entry) bool {
			value = []byte(v)
			return false
		})
		if value == nil {
			return false
		}
		tied := rd.valued(by, value)
		if string(value) == string(first) && len(rd.query.order) == 1 {
			at := append(slices.Clone(value), place...)
			if rd.backward {
				tied.End = bounds{end: tied.End}.and(bounds{end: at}).end
			} else {
				tied.Start = bounds{start: tied.Start}.and(bounds{start: at}).start
			}
		}
		if rd.scanTied(tied) {
			return true
		}
		if upward {
			r.Start = backend.PrefixEnd(value)
		} else {
			r.End = value
		}
	}
}

// begin is the value with which the page begins, and the place behind it; nil if it
// begins with the first one, or with those that have none.
func (rd *reading) begin() (value, place []byte) {
	key := rd.in.after
	switch {
	case rd.backward:
		key = rd.in.before
	case key == nil:
		key = rd.in.from
	}
	if key == nil {
		return nil, nil
	}
	value = rd.query.order[0].value(key)
	return value, rd.query.order.place(key)
}
