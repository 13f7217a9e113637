package query

import "github.com/sluicegw/sluice/backend"

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
	index      string
	start, end []byte
	// exact: all rows have one value, so that they are in the order of the names.
	exact bool
}

// candidate finds the best run for a filter, if any serves.
func (e all) candidate() (best candidate, ok bool) {
	for _, x := range e {
		t, isTest := x.(test)
		if inner, nested := x.(all); nested {
			if c, found := inner.candidate(); found && (!ok || c.exact && !best.exact) {
				best, ok = c, true
			}
			continue
		}
		if !isTest {
			continue
		}
		if c, found := t.candidate(); found && (!ok || c.exact && !best.exact) {
			best, ok = c, true
		}
	}
	return best, ok
}

func (t test) candidate() (candidate, bool) {
	switch t.attribute {
	case nameAttribute, namespaceAttribute, createdAttribute, updatedAttribute:
		return candidate{}, false
	}
	if len(t.values) == 0 {
		return candidate{}, false
	}
	c, v := candidate{index: t.attribute}, t.values[0]
	switch {
	case t.op == "eq", (t.op == "in" || t.op == "hasAny") && len(t.values) == 1, t.op == "hasAll":
		c.start, c.end, c.exact = v, backend.PrefixEnd(v), true
	case t.op == "startsWith":
		c.start, c.end = v, backend.StringPrefixEnd(v)
	case t.op == "first":
		c.start, c.end = v, backend.PrefixEnd(v)
	case t.op == "lt":
		c.end = v
	case t.op == "lte":
		c.end = backend.PrefixEnd(v)
	case t.op == "gt":
		c.start = backend.PrefixEnd(v)
	case t.op == "gte":
		c.start = v
	default:
		return candidate{}, false
	}
	return c, true
}
