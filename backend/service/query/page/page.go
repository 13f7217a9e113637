// Package page carries out plans: it reads a page or a count from the index in memory or from a store.
//
//	                 plan.Make
//	                     |
//	  kind in memory     |     kind in a store
//	      +--------------+--------------+
//	      v                             v
//	 Memory.Do                      Scanner.Do, for many pages at once
//	 names, length or runs          begin -> admit -> readNames -> steps
//	      |                             |
//	    offer: readable, not expired, meets the rest of the plan's conditions
//	      +--------------+--------------+
//	                     v
//	Read.take: counts a match, or puts it into the page, until the page is full
//	                     v
//	Read.finish: the order of the query, without the resource that looks ahead
//
// The [plan.Sorting] of the plan decides how Read.take adds a resource to the page. If resources come in the order of
// the page, they are appended. Otherwise they are inserted in order, and the last one is dropped once there are more
// than the page needs.
//
// Both ways charge the budget of the operation. Memory charges steps for each resource that it looks at and each value
// that it compares, and rows for the resources of a page. Scanner charges a row for each resource that it reads, and
// steps for each request, counted resource and compared value.
package page

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Edge is a resource on a page.
type Edge struct {
	Resource Resource
	// key is the sort key of the edge. It is nil if the order is by name, because it then follows from the name.
	key []byte
}

// At returns an edge with a sort key.
func At(r Resource, key []byte) Edge { return Edge{r, key} }

// Key returns the sort key of the edge.
func (e *Edge) Key() []byte {
	if e.key != nil {
		return e.key
	}
	return backend.OrderTuple(e.Resource.Stored.Namespace, e.Resource.Stored.Name)
}

// Read is a read of a page or a count, with its result.
type Read struct {
	Query *plan.Query
	plan.Want
	// Edges are the resources of the page, in the order of the query.
	Edges []Edge
	// More reports whether more resources follow in the direction of the page.
	More bool
	// Matches is the number of matching resources, if the read counts them.
	Matches int
	// Groups has the number of matching resources for each combination of values of Want.By, if By is set. The key of a
	// group is the concatenation of [filter.Values.AppendKey] for each element of By. There are at most [MaxGroups]+1
	// groups. That many groups mean that there are too many, and that others are missing.
	Groups map[string]*int

	plan *plan.Plan
	// looked is the number of resources that were looked at.
	looked int
	// space is a buffer for keys.
	space []byte
}

// idle reports whether there is nothing to read.
func (r *Read) idle() bool { return r.Size == 0 && !r.Ahead && !r.Count && !r.Total }

// names yields each name of the query that can be on the page. In a sorted plan, the names are in the direction of the
// page. place is the encoded (namespace, name). It is valid until the next call of yield.
func (r *Read) names(yield func(name string, place []byte) bool) {
	sorted := r.plan.Sorting == plan.Sorted
	var place []byte
	for i, name := range r.Query.Names {
		if sorted && r.Backward {
			name = r.Query.Names[len(r.Query.Names)-1-i]
		}
		place = backend.AppendString(backend.AppendString(place[:0], r.Query.Namespace), name)
		if sorted && !r.In.Contains(place) {
			continue
		}
		if !yield(name, place) {
			return
		}
	}
}

// take counts a matching resource, or adds it to the page. v may be nil if the order is by name. past reports whether
// all later resources of the plan (Sorted) or of the run (RunsSorted) lie beyond the page.
func (r *Read) take(res Resource, v *filter.Values) (past bool) {
	if r.Count || r.Total && !r.plan.Length {
		if r.Matches++; r.Count {
			r.group(v)
			return false
		}
	}
	inRun := r.plan.Sorting == plan.Sorted || r.plan.Sorting == plan.RunsSorted
	e := Edge{Resource: res}
	if len(r.Query.Order) > 0 || r.plan.Sorting != plan.Sorted {
		r.space = r.Query.Order.AppendKey(r.space[:0], v)
		if !r.In.Contains(r.space) {
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

// MaxGroups is the maximum number of groups of a count.
const MaxGroups = 1000

// group counts a matching resource in its group, if groups are wanted.
func (r *Read) group(v *filter.Values) {
	if r.By == nil {
		return
	}
	r.space = r.space[:0]
	for _, k := range r.By {
		r.space = v.AppendKey(r.space, k)
	}
	if r.Groups == nil {
		r.Groups = map[string]*int{}
	}
	if n := r.Groups[string(r.space)]; n != nil {
		*n++
	} else if len(r.Groups) <= MaxGroups {
		r.Groups[string(r.space)] = new(1)
	}
}

// insert inserts an edge into the sorted edges, and drops the last edge if there are more than the page needs. If it
// would drop the new edge itself, it does not insert it, and farther is true.
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

// explain adds this read to an explanation.
func (r *Read) explain(e *plan.Explanation, source string) {
	if e == nil {
		return
	}
	one := plan.Explained{
		Kind:     r.Query.Kind.Name,
		Source:   source,
		By:       r.plan.String(),
		Looked:   r.looked,
		Returned: len(r.Edges),
	}
	if r.Count {
		one.Returned = r.Matches
	}
	if r.Query.Scoped() { // the number of other resources is hidden from the caller
		one.By, one.Looked = "what the caller may see", one.Returned
	}
	e.Add(one)
}

// full reports whether the page has as many edges as it needs.
func (r *Read) full() bool { return len(r.Edges) == r.Limit() }

// finish brings the edges into the order of the query, and removes the additional edge that was read because of
// Want.Ahead.
func (r *Read) finish() {
	switch {
	case r.plan.Sorting == plan.Sorted && r.Backward:
		slices.Reverse(r.Edges)
	case r.plan.Sorting != plan.Sorted && len(r.Edges) > r.Size:
		r.More = true
		if r.Backward {
			r.Edges = r.Edges[1:]
		} else {
			r.Edges = r.Edges[:r.Size]
		}
	}
}
