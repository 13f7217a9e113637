package plan

import (
	"bytes"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// Common is shared by the queries of one field for all its parents. It does not change.
type Common struct {
	Kind *kind.Kind
	// Reference is the path by which the resources refer to a parent of ParentKind; empty means
	// that there is no parent.
	Reference, ParentKind string
	Filter                filter.Filter
	Order                 Order
	// Scope has the resources that the caller may see; nil means all.
	Scope *access.Scope
}

// Query selects and orders the resources of a connection. [Query.Narrow] completes it.
type Query struct {
	*Common
	// Namespace is the namespace of the resources. Empty means all namespaces.
	Namespace string
	// ParentNamespace and ParentName name the parent.
	ParentNamespace, ParentName string
	// Names are the names of the resources, sorted and each once; nil means all.
	Names []string
	// places is the range of places that the resources have.
	places filter.Range
	// scope is the part of Scope that matters in Namespace; nil if the caller may see everything there.
	scope *access.Scope
	// bounds holds three parts in one allocation, as one operation may have hundreds of queries:
	// the parent's value in an index (parentEnd bytes), the namespace, and 0xFF, which with the
	// two is the end of the range that they begin.
	bounds    []byte
	parentEnd int
}

// Parent returns the key of the resource that the resources refer to.
func (q *Query) Parent() backend.Key {
	return backend.Key{Kind: q.ParentKind, Namespace: q.ParentNamespace, Name: q.ParentName}
}

// parentValue returns the parent's value in an index.
func (q *Query) parentValue() []byte { return q.bounds[:q.parentEnd:q.parentEnd] }

// parentRange returns the range of rows with the parent's value, or of the names if there is no
// parent. The query has no filter.
func (q *Query) parentRange() (r filter.Range) {
	if n := len(q.bounds) - 1; n > 0 {
		r = filter.Range{Start: q.bounds[:n:n], End: q.bounds}
	}
	return r
}

// Narrow completes a query: it derives the namespace, the names or a range of names from the
// filter, encodes the bounds, and drops the scope if it makes no difference in the namespace. The
// whole filter still has to be matched.
func (q *Query) Narrow() {
	namespaced := q.Kind.Scope != descriptor.Global
	if q.Reference == "" && q.Names == nil && !q.Filter.Empty() {
		if namespaced && q.Namespace == "" {
			q.places, _ = q.Filter.Range(filter.Namespace)
			if name, _, err := backend.TakeString(q.places.Start); err == nil && name != "" &&
				bytes.Equal(q.places.End, backend.PrefixEnd(q.places.Start)) {
				q.Namespace = name
			}
		}
		if q.inOneNamespace() {
			q.Names = namesOf(q.Filter.All)
			if q.Names == nil {
				q.places, _ = q.Filter.Range(filter.Name)
				q.places = q.places.WithPrefix(backend.AppendString(nil, q.Namespace))
			}
		}
	}
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
	q.scope = q.Scope
	if q.scope != nil && (q.scope.All() || q.Namespace != "" && q.scope.HasNamespace(q.Namespace)) {
		q.scope = nil
	}
}

// namesOf returns the valid names that one of the conditions lists, sorted and each once. It is
// nil if no condition lists names.
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

// inOneNamespace reports whether the order of places is the order of names.
func (q *Query) inOneNamespace() bool {
	return q.Namespace != "" || q.Kind.Scope == descriptor.Global
}

// Filtered reports whether the query has a filter, a parent or a scope.
func (q *Query) Filtered() bool { return q.Reference != "" || !q.Filter.Empty() || q.Scoped() }

// Scoped reports whether the caller may not see all resources in the query's namespace.
func (q *Query) Scoped() bool { return q.scope != nil }

// ScopeKey returns a text that tells the scopes of queries apart.
func (q *Query) ScopeKey() string {
	if q.scope == nil {
		return ""
	}
	return q.scope.Key()
}

// Plain reports whether a page in name order is wanted, of a query without a filter, names and a
// scope. It may have a parent.
func (q *Query) Plain(w *Want) bool {
	return q.Filter.Empty() && q.Names == nil && len(q.Order) == 0 && !w.Count && !q.Scoped()
}

// Match reports whether a resource in the query's places matches.
func (q *Query) Match(v *filter.Values) bool {
	if q.scope != nil && !(inScope{q.scope}).Match(v) {
		return false
	}
	if q.Reference != "" &&
		!v.Has(q.Reference, func(value []byte) bool { return bytes.Equal(value, q.parentValue()) }) {
		return false
	}
	return q.Filter.Match(v)
}

// Within reports whether place is one of the query's places.
func (q *Query) Within(place string) bool { return q.places.Holds(place) }

// inNameOrder reports whether the query is in name order, ascending or descending.
func (q *Query) inNameOrder() bool {
	return len(q.Order) == 0 || q.Order[0].Field == filter.Name && q.inOneNamespace()
}

// clip returns the part of a run that an interval of the order can hold. All rows of the run begin
// with value, and so are in name order.
func (q *Query) clip(in Interval, r index.Run, value []byte) index.Run {
	_, after := q.Order.Split(in.After)
	_, from := q.Order.Split(in.From)
	_, before := q.Order.Split(in.Before)
	page := filter.Range{Start: from, End: before}
	descending := len(q.Order) > 0 && q.Order[0].Descending
	switch {
	case descending:
		// Before is the key of a place or the successor of one. Without its last byte, the range
		// begins at that place in both cases, or earlier; the keys are compared with the interval
		// afterwards.
		page = filter.Range{Start: before[:max(len(before)-1, 0)], End: after}
		if after == nil && from != nil {
			page.End = backend.Successor(from)
		}
	case after != nil:
		page.Start = backend.Successor(after)
	}
	page = filter.Range{Start: r.Start, End: r.End}.And(page.WithPrefix(value))
	return index.Run{Index: r.Index, Start: page.Start, End: page.End}
}
