package plan

import (
	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// inScope is the condition that the caller may see a resource. It is planned like the conditions of a filter:
//
//	scope {team-a, team-b: x}    names    a/n1 | team-a/n1 | team-a/n2 | team-b/a | team-b/x | team-c/n1
//	                                             '----- a run ------'              '- one -'
type inScope struct{ *access.Scope }

var _ filter.Condition = inScope{}

// Match implements [filter.Condition].
func (s inScope) Match(v *filter.Values) bool {
	v.Compared++
	return s.Has(v.Resource.Namespace, v.Resource.Name)
}

// The maximum numbers of runs for a scope. If a scope needs more runs, each resource is tested instead.
const (
	// maxMeasuredPlaces applies if the lengths of the runs are added up first, to decide whether to read them.
	maxMeasuredPlaces = 128
	// maxPlaces applies if the runs are used without such a decision.
	maxPlaces = 4096
	// maxStorePlaces applies to kinds that are not in memory.
	maxStorePlaces = 32
)

// scopeChoice returns the runs of the resources in a scope. It returns false if there are too many runs. Then each
// resource must be tested.
func (p *planner) scopeChoice(s *access.Scope) (choice, bool) {
	// Counts by the store include unreadable resources, whose number is known only for whole namespaces.
	out := choice{exact: p.trees != nil || s.Whole(), once: true, oneValue: true, inOrder: true}
	if p.q.inOneNamespace() {
		for _, name := range s.NamesIn(p.q.Namespace) {
			place := backend.OrderTuple(p.q.Namespace, name)
			out.addPlace(filter.Range{Start: place, End: backend.PrefixEnd(place)}, p.q.places)
		}
		return out, len(out.runs) <= p.mostPlaces()
	}
	everywhere := s.Everywhere()
	if s.Size()+len(everywhere) > p.mostPlaces() || p.trees == nil && len(everywhere) > 0 {
		return choice{}, false
	}
	out.runs = make([]index.Run, 0, s.Size()+len(everywhere))
	for _, place := range s.Places() {
		out.addPlace(filter.Range(place), p.q.places)
	}
	for _, name := range everywhere {
		out.once, out.inOrder = false, false
		out.runs = append(out.runs, p.valued(index.NameIndex, backend.AppendString(nil, name)))
	}
	return out, true
}

// mostPlaces returns the maximum number of runs for a scope in this plan.
func (p *planner) mostPlaces() int {
	switch {
	case p.trees == nil:
		return maxStorePlaces
	case len(p.conditions) == 1 && (p.q.inNameOrder() || p.want.Count):
		return maxPlaces
	}
	return maxMeasuredPlaces
}

// addPlace adds the run of a place, restricted to the range within.
func (c *choice) addPlace(place, within filter.Range) {
	if !within.Whole() {
		place = place.And(within)
		if place.End != nil && string(place.Start) >= string(place.End) {
			return
		}
	}
	c.runs = append(c.runs, index.Run{Start: place.Start, End: place.End})
}

// Counts returns the ranges whose resources the store must count for a query. The plan must have Length.
func (p *Plan) Counts(q *Query) []backend.Range {
	if !q.Scoped() {
		return []backend.Range{
			{Kind: q.Kind.Name, Namespace: q.Namespace, Start: q.places.Start, End: q.places.End, Count: true},
		}
	}
	if q.Namespace != "" { // the scope has whole namespaces, and not this one
		return nil
	}
	var out []backend.Range
	for _, namespace := range q.scope.Namespaces() {
		out = append(out, backend.Range{Kind: q.Kind.Name, Namespace: namespace, Count: true})
	}
	return out
}
