package plan

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/query/filter"
)

// choice is a set of runs that contain all rows which a condition can match. choiceOf returns the choice of a
// condition. It calls testChoice or placeChoice for a test, anyChoice for an Any, and scopeChoice for the condition
// that the caller may see the resource. For an All it calls shortest, which returns the best choice.
type choice struct {
	runs []index.Run
	// rows is the number of rows in the runs. It is valid only if measured is set.
	rows     int
	measured bool
	// exact reports whether all rows in the runs match the condition.
	exact bool
	// meets is the number, counted from 1, of a condition of the query that all rows in the runs match; 0 if there is
	// none.
	meets int
	// once reports whether each resource occurs at most once in the runs.
	once bool
	// oneValue reports whether all rows of each run have the same value. Such rows are ordered by name.
	oneValue bool
	// inOrder reports whether the runs are consecutive ranges of the tree of names.
	inOrder bool
}

// add adds a run, unless the choice already has it.
func (c *choice) add(r index.Run) {
	if !slices.ContainsFunc(c.runs, func(known index.Run) bool {
		return known.Index == r.Index && string(known.Start) == string(r.Start) && string(known.End) == string(r.End)
	}) {
		c.runs = append(c.runs, r)
	}
}

// rows returns the number of rows in a choice. If the kind is not in memory, the number is unknown and the result is 0.
func (p *planner) rows(c *choice) int {
	if !c.measured && p.trees != nil {
		for _, r := range c.runs {
			c.rows += p.length(r)
		}
		c.measured = true
	}
	return c.rows
}

// shorter reports whether a choice has fewer rows than limit. It stops counting at limit.
func (p *planner) shorter(c *choice, limit int) bool {
	if c.measured || p.trees == nil {
		return p.rows(c) < limit
	}
	n := 0
	for _, r := range c.runs {
		n += p.length(r)
		if n >= limit {
			return false
		}
	}
	c.rows, c.measured = n, true
	return n < limit
}

// length returns the number of rows in a run.
func (p *planner) length(r index.Run) int {
	p.measured++
	return p.trees.Len(r)
}

// everything returns the choice of all places of the query.
func (p *planner) everything() choice {
	return choice{
		runs:     []index.Run{{Start: p.q.places.Start, End: p.q.places.End}},
		exact:    !p.q.Filtered(),
		once:     true,
		oneValue: true,
	}
}

// shortest returns the choice with the fewest rows among the choices of conditions that must all match. ok is false if
// none of the conditions has a choice.
func (p *planner) shortest(conditions filter.All) (best choice, ok bool) {
	if len(conditions) == 0 {
		best = p.everything()
		best.exact = true // an empty All matches everything
		return best, true
	}
	for i, e := range conditions {
		one, covers, found := p.choiceOf(e, conditions)
		one.meets = 0
		if one.exact && covers == 1 {
			one.meets = i + 1
		}
		one.exact = one.exact && covers == len(conditions)
		if found && (!ok || p.shorter(&one, p.rows(&best))) {
			best, ok = one, true
		}
	}
	return best, ok
}

// choiceOf returns the choice of the condition e, which is an element of among. If the choice is exact, all rows in its
// runs match a number of elements of among, which is covers.
func (p *planner) choiceOf(e filter.Condition, among filter.All) (c choice, covers int, ok bool) {
	switch e := e.(type) {
	case filter.Test:
		if p.trees == nil {
			return choice{}, 0, false
		}
		return p.testChoice(e, among)
	case filter.All:
		c, ok = p.shortest(e)
	case filter.Any:
		c, ok = p.anyChoice(e)
	case inScope:
		c, ok = p.scopeChoice(e.Scope)
	}
	return c, 1, ok
}

// maxRuns is the maximum number of runs for an Any. If an Any needs more runs, each resource is tested instead.
const maxRuns = 128

// anyChoice returns the union of the choices of all conditions in an Any. It returns false if one of the conditions has
// no choice, or if the union has too many runs.
func (p *planner) anyChoice(e filter.Any) (choice, bool) {
	out := choice{exact: true, oneValue: true}
	for _, x := range e {
		one, _, found := p.choiceOf(x, filter.All{x})
		if !found || len(out.runs)+len(one.runs) > maxRuns {
			p.measured += len(out.runs) + len(one.runs)
			return choice{}, false
		}
		for _, r := range one.runs {
			out.add(r)
		}
		out.exact = out.exact && one.exact
		out.oneValue = out.oneValue && one.oneValue
		out.once = one.once
	}
	out.once = out.once && len(out.runs) == 1
	return out, true
}

// testChoice returns the choice of a test. If a resource has at most one value of the attribute, all range tests of the
// attribute in among share one run. covers is the number of tests that share the run.
func (p *planner) testChoice(t filter.Test, among filter.All) (c choice, covers int, ok bool) {
	if t.Attribute == filter.Name && p.q.inOneNamespace() || t.Attribute == filter.Namespace {
		c, ok = p.placeChoice(t)
		return c, 1, ok
	}
	if !p.trees.Has(t.Attribute) {
		return choice{}, 0, false
	}
	c = choice{exact: true, once: !p.many(t.Attribute)}
	switch t.Op {
	case "eq", "in", "hasAny":
		c.oneValue, c.once = true, c.once || len(t.Values) == 1
		for _, v := range t.Values {
			c.add(p.valued(t.Attribute, v))
		}
		return c, 1, true
	case "hasAll":
		for i, v := range t.Values {
			one := choice{
				runs:     []index.Run{p.valued(t.Attribute, v)},
				exact:    len(t.Values) == 1,
				once:     true,
				oneValue: true,
			}
			if i == 0 || p.rows(&one) < p.rows(&c) {
				c = one
			}
		}
		return c, 1, len(t.Values) > 0
	case "isNull":
		c.exact = p.q.places.Whole()
		if t.Null {
			c = choice{runs: []index.Run{p.nulls(t.Attribute)}, exact: true, once: true, oneValue: true}
			return c, 1, p.trees.Has(c.runs[0].Index)
		}
		c.add(index.Run{Index: t.Attribute})
		return c, 1, true
	case "contains":
		all := filter.Range{}.WithPrefix(t.Key)
		c.exact = false
		c.add(index.Run{Index: t.Attribute, Start: all.Start, End: all.End})
		return c, 1, true
	}
	r, ok := t.Range()
	covers = 1
	if ok && c.once {
		r, covers = among.Range(t.Attribute)
	}
	c.exact = p.q.places.Whole()
	c.add(index.Run{Index: t.Attribute, Start: r.Start, End: r.End})
	return c, covers, ok
}

// placeChoice returns the choice of a test of the namespace, or of the name if the query has one namespace. Its runs
// are parts of the tree of names.
func (p *planner) placeChoice(t filter.Test) (choice, bool) {
	var prefix []byte
	if t.Attribute == filter.Name {
		prefix = backend.AppendString(nil, p.q.Namespace)
	} else if p.q.Kind.Scope == descriptor.Global {
		return choice{}, false
	}
	out := choice{exact: true, once: true, oneValue: true}
	add := func(r filter.Range) {
		r = r.WithPrefix(prefix).And(p.q.places)
		out.add(index.Run{Start: r.Start, End: r.End})
	}
	if t.Op == "in" {
		for _, v := range t.Values {
			add(filter.Range{Start: v, End: backend.PrefixEnd(v)})
		}
		return out, true
	}
	r, ok := t.Range()
	if ok {
		add(r)
	}
	return out, ok
}

// valued returns the run of one value of an attribute, within the places of the query.
func (p *planner) valued(attribute string, value []byte) index.Run {
	r := p.q.places.WithPrefix(value)
	return index.Run{Index: attribute, Start: r.Start, End: r.End}
}

// many reports whether a resource may have several rows in an index.
func (p *planner) many(attribute string) bool {
	switch attribute {
	case filter.Name, filter.CreatedAt, filter.UpdatedAt, filter.DeletionRequestedAt:
		return false
	}
	idx := p.q.Kind.Rows.Index(attribute)
	return idx == nil || idx.Many
}
