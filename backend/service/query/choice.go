package query

import (
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
)

// choice is a way to find what a condition of a filter can match: runs of rows that
// hold all of it.
type choice struct {
	runs []index.Run
	// rows is how many rows the runs have, once it is measured.
	rows     int
	measured bool
	// exact says that the runs hold nothing but what the condition matches.
	exact bool
	// once says that no resource is in them more than once.
	once bool
	// named says that the rows of each run have one value, so that they are in the order of the names.
	named bool
}

// chooser finds choices for a query among the trees of its kind.
type chooser struct {
	q     *query
	trees *index.Kind
	// scope bounds the names that the query is about, besides what the filter says.
	scope bounds
}

// runKey tells runs apart.
type runKey struct{ index, start, end string }

func keyOf(r index.Run) runKey { return runKey{r.Index, string(r.Start), string(r.End)} }

// best is the choice with the fewest rows for all conditions together, false if there
// is none. It is exact if it is for the one condition that there is.
func (c *chooser) best() (best choice, ok bool) {
	conditions := slices.DeleteFunc(c.conditions(nil, c.q.filter.all), c.implied)
	if c.q.reference != "" {
		parent := test{attribute: c.q.reference, op: "eq", values: [][]byte{c.q.parent}}
		conditions = append(conditions, parent)
	}
	if len(conditions) == 0 {
		return c.all(), true
	}
	return c.fewest(conditions)
}

// fewest is the choice with the fewest rows for conditions that must all hold.
func (c *chooser) fewest(conditions []expr) (best choice, ok bool) {
	conditions = c.spanned(conditions)
	for _, e := range conditions {
		one, found := c.ofExpr(e)
		one.exact = one.exact && len(conditions) == 1
		if found && (!ok || c.measure(&one) < c.measure(&best)) {
			best, ok = one, true
		}
	}
	return best, ok
}

// span is what range tests of one attribute have in common, if it has one value.
type span struct {
	attribute string
	bounds
}

func (s span) match(v *indexedResource) bool {
	return v.has(s.attribute, func(value []byte) bool {
		return (s.start == nil || bytes.Compare(value, s.start) >= 0) && (s.end == nil || bytes.Compare(value, s.end) < 0)
	})
}

// spanned puts a span in the place of the range tests of an attribute with rows.
func (c *chooser) spanned(conditions []expr) []expr {
	out, at := make([]expr, 0, len(conditions)), map[string]int{}
	for _, e := range conditions {
		t, is := e.(test)
		r, one, ok := t.bounds()
		if !is || !ok || one || t.attribute == nameAttribute || t.attribute == namespaceAttribute || !c.trees.Has(t.attribute) || c.many(t.attribute) {
			out = append(out, e)
			continue
		}
		if i, met := at[t.attribute]; met {
			out[i] = span{t.attribute, out[i].(span).and(r)}
			continue
		}
		at[t.attribute] = len(out)
		out = append(out, span{t.attribute, r})
	}
	return out
}

// measure is how many rows the runs of a choice have together.
func (c *chooser) measure(one *choice) int {
	if !one.measured {
		for _, r := range one.runs {
			one.rows += c.trees.Len(r)
		}
		one.measured = true
	}
	return one.rows
}

// conditions are those that must all hold.
func (c *chooser) conditions(out []expr, e all) []expr {
	for _, x := range e {
		if inner, nested := x.(all); nested {
			out = c.conditions(out, inner)
		} else {
			out = append(out, x)
		}
	}
	return out
}

// implied says that a condition holds for all that the query is about.
func (c *chooser) implied(e expr) bool {
	t, ok := e.(test)
	return ok && t.attribute == namespaceAttribute && t.op == "eq" && c.q.namespace != "" && bytes.Equal(t.values[0], backend.AppendString(nil, c.q.namespace))
}

func (c *chooser) ofExpr(e expr) (choice, bool) {
	switch e := e.(type) {
	case test:
		return c.of(e)
	case span:
		out := choice{exact: c.everywhere(), once: true}
		out.add(index.Run{Index: e.attribute, Start: e.start, End: e.end})
		return out, true
	case all:
		return c.fewest(c.conditions(nil, e))
	case some:
		out := choice{exact: true, named: true}
		for _, x := range e {
			one, found := c.ofExpr(x)
			if !found {
				return choice{}, false
			}
			out.runs = append(out.runs, one.runs...)
			out.exact, out.named = out.exact && one.exact, out.named && one.named
			out.once = one.once
		}
		out.runs = distinct(out.runs)
		out.once = out.once && len(out.runs) == 1
		return out, true
	}
	return choice{}, false
}

// of finds the runs of one test.
func (c *chooser) of(t test) (choice, bool) {
	if t.attribute == nameAttribute && c.q.namespace != "" || t.attribute == namespaceAttribute {
		return c.ofNames(t)
	}
	if !c.trees.Has(t.attribute) {
		return choice{}, false
	}
	out := choice{exact: true, once: !c.many(t.attribute)}
	switch t.op {
	case "eq", "in", "hasAny":
		out.named = true
		out.once = out.once || len(t.values) == 1
		for _, v := range t.values {
			out.add(c.valued(t.attribute, v))
		}
		return out, true
	case "hasAll":
		for i, v := range t.values {
			one := choice{exact: len(t.values) == 1, once: true, named: true}
			if one.add(c.valued(t.attribute, v)); i == 0 || c.measure(&one) < c.measure(&out) {
				out = one
			}
		}
		return out, len(t.values) > 0
	case "isNull":
		run := index.Run{Index: t.attribute}
		if t.null {
			if run.Index = index.NullIndex(t.attribute); !c.trees.Has(run.Index) {
				return choice{}, false
			}
			run.Start, run.End = c.scope.start, c.scope.end
			out.named, out.once = true, true
		} else {
			out.exact = c.everywhere()
		}
		out.add(run)
		return out, true
	case "contains":
		out.exact = false
		out.add(index.Run{Index: t.attribute})
		return out, true
	}
	r, _, ok := t.bounds()
	if !ok {
		return choice{}, false
	}
	out.exact = c.everywhere()
	out.add(index.Run{Index: t.attribute, Start: r.start, End: r.end})
	return out, true
}

// ofNames finds the runs of a test of the namespace, or of the name within one.
func (c *chooser) ofNames(t test) (choice, bool) {
	if t.attribute == namespaceAttribute && c.q.kind.Scope == descriptor.Global {
		return choice{}, false
	}
	var prefix []byte
	if t.attribute == nameAttribute {
		prefix = backend.AppendString(nil, c.q.namespace)
	}
	var all []bounds
	if t.op == "eq" || t.op == "in" {
		for _, v := range t.values {
			all = append(all, bounds{v, backend.PrefixEnd(v)})
		}
	} else {
		r, _, ok := t.bounds()
		if !ok {
			return choice{}, false
		}
		all = append(all, r)
	}
	out := choice{exact: true, once: true, named: true}
	for _, r := range all {
		r = r.behind(prefix).and(c.scope)
		out.add(index.Run{Start: r.start, End: r.end})
	}
	return out, true
}

// valued is the run of one value, within the names that the query is about.
func (c *chooser) valued(attribute string, value []byte) index.Run {
	r := c.scope.behind(value)
	return index.Run{Index: attribute, Start: r.start, End: r.end}
}

// everywhere says that the query is about all names.
func (c *chooser) everywhere() bool { return c.scope.start == nil && c.scope.end == nil }

// many says whether a resource may have several rows in an index.
func (c *chooser) many(attribute string) bool {
	switch attribute {
	case nameAttribute, createdAttribute, updatedAttribute:
		return false
	}
	idx := c.q.kind.Rows.Index(attribute)
	return idx == nil || idx.Many
}

// distinct leaves out runs that were there before.
func distinct(runs []index.Run) []index.Run {
	known := make(map[runKey]bool, len(runs))
	return slices.DeleteFunc(runs, func(r index.Run) bool {
		k := keyOf(r)
		again := known[k]
		known[k] = true
		return again
	})
}

func (out *choice) add(r index.Run) {
	for _, known := range out.runs {
		if known.Index == r.Index && string(known.Start) == string(r.Start) && string(known.End) == string(r.End) {
			return
		}
	}
	out.runs = append(out.runs, r)
}

// String names the runs for a person.
func (out choice) String() string {
	if len(out.runs) == 0 {
		return "no run"
	}
	name := strings.TrimSuffix(out.runs[0].Index, index.NullIndex(""))
	if name == "" {
		name = "the names"
	}
	if len(out.runs) > 1 {
		name = fmt.Sprintf("%d runs of %s", len(out.runs), name)
	}
	if out.measured {
		name += fmt.Sprintf(", %d rows", out.rows)
	}
	return name
}
