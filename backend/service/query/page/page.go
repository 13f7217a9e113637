// Package page reads what a plan says, from the index in memory or from a store, and keeps
// what a page shows.
package page

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Edge is one resource of a page.
type Edge struct {
	Resource Resource
	// key is the place in the order; nil where that is the name alone.
	key []byte
}

// At returns an edge at a place in an order.
func At(r Resource, key []byte) Edge { return Edge{r, key} }

// Key is the place of the edge in the order.
func (e *Edge) Key() []byte {
	if e.key != nil {
		return e.key
	}
	return backend.OrderTuple(e.Resource.Stored.Namespace, e.Resource.Stored.Name)
}

// Read is a page or a count of a query.
type Read struct {
	Query *plan.Query
	plan.Want
	// Edges are what was found, in the order of the query, and More that there is more in the
	// direction of the page.
	Edges []Edge
	More  bool
	// Matches is the number of all, if it is wanted.
	Matches int

	plan *plan.Plan
	// looked is how many resources were looked at.
	looked int
	// space is memory for keys.
	space []byte
}

// idle reports whether nothing is wanted.
func (r *Read) idle() bool { return r.Size == 0 && !r.Ahead && !r.Count && !r.Total }

// take takes a match, whose values are needed unless the order is that of the names. It
// reports whether nothing of what follows is on the page: in the plan if that is sorted, in
// the run if its runs are.
func (r *Read) take(res Resource, v *filter.Values) (past bool) {
	if r.Count || r.Total && !r.plan.Length {
		if r.Matches++; r.Count {
			return false
		}
	}
	inRun := r.plan.Sorting == plan.Sorted || r.plan.Sorting == plan.RunsSorted
	e := Edge{Resource: res}
	if len(r.Query.Order) > 0 || r.plan.Sorting != plan.Sorted {
		r.space = r.Query.Order.AppendKey(r.space[:0], v)
		if !r.In.Holds(r.space) {
			return inRun && r.In.Past(r.space, r.Backward)
		}
		if r.plan.Sorting != plan.Sorted {
			return r.insert(r.space, e) && inRun
		}
		e.key = bytes.Clone(r.space)
	}
	if len(r.Edges) == r.Size {
		r.More = true
		return true
	}
	r.Edges = append(r.Edges, e)
	return !r.Ahead && len(r.Edges) == r.Size
}

// insert puts an edge among those found, which are in order, if it is nearer than the
// farthest of as many as are wanted. It reports whether it is not.
func (r *Read) insert(key []byte, e Edge) (farther bool) {
	at, _ := slices.BinarySearchFunc(r.Edges, key, func(e Edge, key []byte) int { return bytes.Compare(e.key, key) })
	full := r.full()
	if full && (r.Backward && at == 0 || !r.Backward && at == len(r.Edges)) {
		return true
	}
	e.key = bytes.Clone(key)
	r.Edges = slices.Insert(r.Edges, at, e)
	if full && r.Backward {
		r.Edges = slices.Delete(r.Edges, 0, 1)
	} else if full {
		r.Edges = r.Edges[:len(r.Edges)-1]
	}
	return false
}

// explain says how the page or the count was read.
func (r *Read) explain(e *plan.Explanation, source string) {
	if e == nil {
		return
	}
	one := plan.Explained{Kind: r.Query.Kind.Name, Source: source, By: r.plan.String(), Looked: r.looked, Returned: len(r.Edges)}
	if r.Count {
		one.Returned = r.Matches
	}
	e.Add(one)
}

// full reports whether the page has all that is looked for.
func (r *Read) full() bool { return len(r.Edges) == r.Limit() }

// finish puts the edges in the order of the query, without the one that looks ahead.
func (r *Read) finish() {
	switch {
	case r.plan.Sorting == plan.Sorted && r.Backward:
		slices.Reverse(r.Edges)
	case r.plan.Sorting != plan.Sorted && len(r.Edges) > r.Size:
		if r.More = true; r.Backward {
			r.Edges = r.Edges[1:]
		} else {
			r.Edges = r.Edges[:r.Size]
		}
	}
}
