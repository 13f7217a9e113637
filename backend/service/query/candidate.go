package query

import "github.com/sluicegw/sluice/backend/service/kind"

// isTest says whether the condition is one test of one attribute for one value.
func (e all) isTest() bool {
	if len(e) != 1 {
		return false
	}
	if inner, nested := e[0].(all); nested {
		return inner.isTest()
	}
	t, ok := e[0].(test)
	return ok && len(t.values) == 1
}

// candidate is a run of index rows that holds everything that a filter can match.
type candidate struct {
	index string
	bounds
	// exact: all rows have one value, so that they are in the order of the names.
	exact bool
}

// candidate finds the best run for a filter, if any serves: one value rather than
// several, and a range with two ends rather than one with one.
func (e all) candidate(k *kind.Kind) (best candidate, ok bool) {
	runs := map[string]candidate{}
	var order []string
	for _, t := range e.tests() {
		idx := k.Rows.Index(t.attribute)
		r, exact, found := t.bounds()
		if !found || isOwn(t.attribute) {
			continue
		}
		c := candidate{index: t.attribute, bounds: r, exact: exact}
		was, met := runs[t.attribute]
		switch {
		case !met:
			order = append(order, t.attribute)
		case was.exact:
			continue
		case !exact && idx != nil && !idx.Many: // else each test may hold for another value
			c.bounds = was.and(r)
		case !exact:
			continue
		}
		runs[t.attribute] = c
	}
	for _, index := range order {
		if c := runs[index]; !ok || c.rank() > best.rank() {
			best, ok = c, true
		}
	}
	return best, ok
}

// rank says how narrow a run probably is.
func (c candidate) rank() int {
	switch {
	case c.exact:
		return 2
	case c.start != nil && c.end != nil:
		return 1
	}
	return 0
}

// isOwn says whether an attribute is the resource's own, which has no index rows.
func isOwn(attribute string) bool {
	switch attribute {
	case nameAttribute, namespaceAttribute, createdAttribute, updatedAttribute:
		return true
	}
	return false
}
