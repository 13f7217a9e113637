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

// Common is the part of a query that the queries of one field share for all parents. It is immutable.
type Common struct {
	Kind *kind.Kind
	// Reference is the path by which resources refer to a parent of the kind ParentKind. Both are empty if there is no
	// parent.
	Reference, ParentKind string
	Filter                filter.Filter
	Order                 Order
	// Scope has the resources that the caller may see; nil means all.
	Scope *access.Scope
}

// Query selects and orders the resources of a connection. It is complete after [Query.Narrow].
type Query struct {
	*Common
	// Namespace is the namespace of the resources; empty for all.
	Namespace string
	// ParentNamespace and ParentName identify the parent.
	ParentNamespace, ParentName string
	// Names are the names of the resources, sorted and without duplicates; nil means all.
	Names []string
	// places is the range of the places of the resources.
	places filter.Range
	// scope is the part of Scope within Namespace; nil if the caller may see all resources there.
	scope *access.Scope
	// bounds has three values in one allocation, because an operation may have hundreds of queries. The values are the
	// parent's value in an index (the first parentEnd bytes), the namespace, and 0xFF. The first two are the start of a
	// range, and all three are its end.
	bounds    []byte
	parentEnd int
}

// Parent returns the key of the parent.
func (q *Query) Parent() backend.Key {
	return backend.Key{Kind: q.ParentKind, Namespace: q.ParentNamespace, Name: q.ParentName}
}

// parentValue returns the parent's value in an index.
func (q *Query) parentValue() []byte { return q.bounds[:q.parentEnd:q.parentEnd] }

// parentRange returns the range of the rows with the parent's value, or of names if there is no parent. The query must
// not have a filter.
func (q *Query) parentRange() (r filter.Range) {
	if n := len(q.bounds) - 1; n > 0 {
		r = filter.Range{Start: q.bounds[:n:n], End: q.bounds}
	}
	return r
}

// Narrow completes a query. It derives the namespace, the names or a range of names from the filter, encodes the
// bounds, and drops the scope if the scope restricts nothing. The whole filter must still be tested.
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

// namesOf returns the valid names that one of the conditions lists, sorted and without duplicates; nil if none of the
// conditions lists names.
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

// inOneNamespace reports whether all resources are in one namespace or are GLOBAL. Then the order of places is the
// order of names.
func (q *Query) inOneNamespace() bool {
	return q.Namespace != "" || q.Kind.Scope == descriptor.Global
}

// Filtered reports whether the query has a filter, a parent or a scope.
func (q *Query) Filtered() bool { return q.Reference != "" || !q.Filter.Empty() || q.Scoped() }

// Scoped reports whether the caller may not see all resources in the query's namespace.
func (q *Query) Scoped() bool { return q.scope != nil }

// ScopeKey returns a text that differs for queries with different scopes. It is empty if the query has no scope.
func (q *Query) ScopeKey() string {
	if q.scope == nil {
		return ""
	}
	return q.scope.Key()
}

// Plain reports whether w is a page in the order of names, and the query has no filter, names or scope. The query may
// have a parent.
func (q *Query) Plain(w *Want) bool {
	return q.Filter.Empty() && q.Names == nil && len(q.Order) == 0 && !w.Count && !q.Scoped()
}

// Match reports whether a resource matches the query. The place of the resource must be within the places of the query.
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

// Within reports whether a place is within the places of the query.
func (q *Query) Within(place string) bool { return q.places.Contains(place) }

// inNameOrder reports whether the query is ordered by name, ascending or descending.
func (q *Query) inNameOrder() bool {
	return len(q.Order) == 0 || q.Order[0].Field == filter.Name && q.inOneNamespace()
}

// clip returns the part of a run that can be in an interval of sort keys. All rows of the run must begin with value, so
// that the rows are ordered by name.
func (q *Query) clip(in Interval, r index.Run, value []byte) index.Run {
	_, after := q.Order.Split(in.After)
	_, from := q.Order.Split(in.From)
	_, before := q.Order.Split(in.Before)
	page := filter.Range{Start: from, End: before}
	descending := len(q.Order) > 0 && q.Order[0].Descending
	switch {
	case descending:
		// before is the key of a row, or the successor of such a key. In both cases it is not greater than the key of
		// the row once its last byte is removed. The range may then be slightly too large. That does no harm, because
		// each key is compared with the interval afterwards.
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
