package plan

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// Common is what the queries of a level have in common. It does not change.
type Common struct {
	Kind *kind.Kind
	// Reference is the path by which the resources refer to a parent of ParentKind; empty keeps
	// those that do not.
	Reference, ParentKind string
	Filter                filter.Filter
	Order                 Order
}

// Query is what a connection consists of, and in which order.
type Query struct {
	*Common
	// Namespace of the resources and of their parent. Empty: the resources of all namespaces; the
	// parent is GLOBAL.
	Namespace string
	// ParentName is what the resources refer to.
	ParentName string
	// Names of the resources, in order and each once; nil for all.
	Names []string
	// places bounds the places in the order of the names.
	places filter.Range
	// bounds is the value of the reference in an index, parentEnd bytes, the namespace behind it,
	// and a byte that ends what begins with the two.
	bounds    []byte
	parentEnd int
}

// Parent is the resource that the resources refer to.
func (q *Query) Parent() backend.Key {
	return backend.Key{Kind: q.ParentKind, Namespace: q.Namespace, Name: q.ParentName}
}

// parent is the value of the reference in an index.
func (q *Query) parent() []byte { return q.bounds[:q.parentEnd:q.parentEnd] }

// run is everything behind the parent, of a query without a filter.
func (q *Query) run() (r filter.Range) {
	if n := len(q.bounds) - 1; n > 0 {
		r = filter.Range{Start: q.bounds[:n:n], End: q.bounds}
	}
	return r
}

// Narrow completes a query: it derives from the filter which namespace, names or range of
// names the resources are in. The filter is matched all the same.
func (q *Query) Narrow() {
	namespaced := q.Kind.Scope != descriptor.Global
	if q.Reference == "" && q.Names == nil && !q.Filter.Empty() {
		if namespaced && q.Namespace == "" {
			q.places, _ = q.Filter.Range(filter.Namespace)
			if name, _, err := backend.TakeString(q.places.Start); err == nil && name != "" && bytes.Equal(q.places.End, backend.PrefixEnd(q.places.Start)) {
				q.Namespace = name
			}
		}
		if q.inOneNamespace() {
			if q.Names = namesOf(q.Filter.All); q.Names == nil {
				q.places, _ = q.Filter.Range(filter.Name)
				q.places = q.places.Behind(backend.AppendString(nil, q.Namespace))
			}
		}
	}
	// All in one piece: a level has hundreds of queries.
	piece := make([]byte, 0, len(q.ParentName)+len(q.Namespace)+8)
	if q.Reference != "" {
		piece = backend.AppendString(piece, q.ParentName)
	}
	n := len(piece)
	if q.Namespace != "" {
		piece = backend.AppendString(piece, q.Namespace)
	}
	q.bounds, q.parentEnd = append(piece, 0xFF), n // as [backend.PrefixEnd]
	if q.Namespace != "" {
		q.places = q.places.And(filter.Range{Start: piece[n:len(piece):len(piece)], End: q.bounds[n:]})
	}
}

// namesOf returns the names that one of the conditions lists, as far as a resource can have
// them: in order and each once. Nil: none lists names.
func namesOf(conditions filter.All) []string {
	for _, e := range conditions {
		t, _ := e.(filter.Test)
		if t.Attribute != filter.Name || t.Op != "eq" && t.Op != "in" {
			continue
		}
		out := make([]string, 0, len(t.Values))
		for _, v := range t.Values {
			if name, _, err := backend.TakeString(v); err == nil && name != "" && len(name) <= kind.MaxName {
				out = append(out, name)
			}
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	return nil
}

func (q *Query) inOneNamespace() bool {
	return q.Namespace != "" || q.Kind.Scope == descriptor.Global
}

// Referenced reports whether a store can tell what refers to the parent: it knows references
// to resources of the same namespace.
func (q *Query) Referenced() bool {
	return q.Reference != "" && (q.Namespace != "" || q.Kind.Scope == descriptor.Global)
}

// Filtered reports whether the query keeps less than its places have.
func (q *Query) Filtered() bool { return q.Reference != "" || !q.Filter.Empty() }

// Plain reports whether a page is wanted of everything in the query's places, or of all that
// refers to its parent, in the order of the names.
func (q *Query) Plain(w *Want) bool {
	return q.Filter.Empty() && q.Names == nil && len(q.Order) == 0 && !w.Count
}

// Match reports whether the query keeps a resource within its places.
func (q *Query) Match(v *filter.Values) bool {
	if q.Reference != "" && !v.Has(q.Reference, func(value []byte) bool { return bytes.Equal(value, q.parent()) }) {
		return false
	}
	return q.Filter.Match(v)
}

// Range asks a store for the number of resources in the places of the query.
func (q *Query) Range() backend.Range {
	return backend.Range{Kind: q.Kind.Name, Namespace: q.Namespace, Start: q.places.Start, End: q.places.End, Count: true}
}

// Within reports whether a place in the order of the names is one of the query.
func (q *Query) Within(place string) bool { return q.places.Holds(place) }

// inNames reports whether the order is that of the names, in one of the two directions.
func (q *Query) inNames() bool {
	return len(q.Order) == 0 || q.Order[0].Field == filter.Name && q.inOneNamespace()
}

// paged returns the part of a run in the order of the names, all behind one value, that an
// interval of the order can have.
func (q *Query) paged(in Interval, r index.Run, value []byte) index.Run {
	_, after := q.Order.Split(in.After)
	_, from := q.Order.Split(in.From)
	_, before := q.Order.Split(in.Before)
	page := filter.Range{Start: from, End: before}
	switch descending := len(q.Order) > 0 && q.Order[0].Descending; {
	case descending:
		// The interval ends with the resource of that place, or just before it: the bound is
		// a place or its successor, and the resource's key decides.
		page = filter.Range{Start: before[:max(len(before)-1, 0)], End: after}
		if after == nil && from != nil {
			page.End = backend.Successor(from)
		}
	case after != nil:
		page.Start = backend.Successor(after)
	}
	page = filter.Range{Start: r.Start, End: r.End}.And(page.Behind(value))
	return index.Run{Index: r.Index, Start: page.Start, End: page.End}
}
