package plan

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// inScope is the condition that the caller may see a resource. It is planned like the conditions of filters:
//
//	scope {team-a, team-b: x}    names    a/n1 | team-a/n1 | team-a/n2 | team-b/a | team-b/x | team-c/n1
//	                                             '----- a run ------'              '- one -'
type inScope struct{ *access.Scope }

var _ filter.Condition = inScope{}

// Match is part of [filter.Condition].
func (s inScope) Match(v *filter.Values) bool {
	v.Compared++
	return s.Has(v.Resource.Namespace, v.Resource.Name)
}

// inScope returns the runs of what the scope has. A scope of many places has none: each resource is tested.
func (p *planner) inScope(s *access.Scope) (choice, bool) {
	out := choice{exact: true, once: true, oneValue: true, inOrder: true}
	most := maxPlaces
	if p.trees == nil {
		most = maxStorePlaces
	}
	for place := range places(p.q, s) {
		if len(out.runs) == most {
			p.measured += most
			return choice{}, false
		}
		if r := (filter.Range{Start: place, End: backend.PrefixEnd(place)}).And(p.q.places); r.End == nil || string(r.Start) < string(r.End) {
			out.runs = append(out.runs, index.Run{Start: r.Start, End: r.End})
		}
	}
	// A store's numbers count what cannot be read, which is known for whole namespaces.
	out.exact = p.trees != nil || s.Whole()
	if p.q.inOneNamespace() {
		return out, true
	}
	for _, name := range s.Everywhere() {
		if p.trees == nil || len(out.runs) == maxPlaces {
			return choice{}, false
		}
		out.once, out.inOrder = false, false
		out.runs = append(out.runs, p.valued(index.NameIndex, backend.AppendString(nil, name)))
	}
	return out, true
}

// The most runs of a scope, in memory and in a store. Beyond it each resource is tested.
const (
	maxPlaces      = 1024
	maxStorePlaces = 32
)

// Counts returns what a store is asked to count a query whose plan has Length.
func (p *Plan) Counts(q *Query) []backend.Range {
	if !q.Scoped() {
		return []backend.Range{q.Range()}
	}
	if q.Namespace != "" { // of which the caller may see nothing
		return nil
	}
	var out []backend.Range
	for _, namespace := range q.scope.Namespaces() {
		out = append(out, backend.Range{Kind: q.Kind.Name, Namespace: namespace, Count: true})
	}
	return out
}

// places yields the encoded places of a scope in their order: namespaces, and names in namespaces. What the scope
// has in all namespaces is left out, unless the query is in one namespace.
func places(q *Query, s *access.Scope) func(yield func(place []byte) bool) {
	return func(yield func([]byte) bool) {
		namespaces := s.Namespaces()
		if q.inOneNamespace() {
			namespaces = []string{q.Namespace}
		}
		for _, namespace := range namespaces {
			prefix := backend.AppendString(nil, namespace)
			if s.HasNamespace(namespace) {
				if !yield(prefix) {
					return
				}
				continue
			}
			names := s.Names(namespace)
			if q.inOneNamespace() {
				names = s.NamesIn(namespace)
			}
			for _, name := range names {
				if !yield(backend.AppendString(prefix[:len(prefix):len(prefix)], name)) {
					return
				}
			}
		}
	}
}
