package query

import (
	"context"
	"maps"
	"slices"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/row"
)

// route is how a scan reads from a store: runs of rows, or the names.
type route struct {
	choice
	// streams says that the one run is in the order of the query.
	streams bool
	// by is the index of the first criterion of the order, if the one run is in the order
	// of its values; else empty.
	by string
	// valued says that what has no value in that index is not asked for, and nullsFirst
	// that it would come before the run.
	valued, nullsFirst bool
	// step is about how many resources the page looks at; 0 if nobody knows.
	step int
}

// String names the route for a person.
func (rt *route) String() string {
	switch {
	case rt.by != "":
		return "order of " + rt.by
	case rt.streams && rt.runs[0].Index == "":
		return "order of names"
	case rt.streams:
		return "order of names in " + rt.choice.String()
	}
	return rt.choice.String()
}

// Bounds of what a store is asked for.
const (
	// maxRuns is the most runs that a scan reads.
	maxRuns = 200
	// measured is up to how many rows are counted to choose a route: of the runs of
	// values together, and of others each, unless they are compared with a longer run:
	// then compared times as many as that has, and at most mostMeasured.
	measured     = 2000
	compared     = 10
	mostMeasured = 20_000
	// leastMeasured is up to how many of a run are counted however many runs there are.
	leastMeasured = 50
	// fewTimes is how many times as long as a page a run may be that is read without a look
	// at any other way.
	fewTimes = 4
	// unmeasured is how many times as long a run is taken for that was not counted to its end.
	unmeasured = 500
)

// measures are the lengths of runs that a store has told. They are [trees].
type measures struct {
	kind *kind.Kind
	// rows says that there are rows to choose.
	rows bool
	// most is up to how many rows of the names, and of an index, are counted.
	most int
	// known are the lengths, and wanted the runs that were asked for and are not known.
	known  map[runKey]int
	wanted []index.Run
}

type runKey struct{ index, start, end string }

func keyOf(r index.Run) runKey { return runKey{r.Index, string(r.Start), string(r.End)} }

// Has says whether the store has rows of an index.
func (m *measures) Has(name string) bool {
	return name == "" || m.rows && (name == row.LabelIndex || name == row.ConditionIndex || m.kind.Rows.Index(name) != nil)
}

// Len is the length of a run; 0 as long as it is not known.
func (m *measures) Len(r index.Run) int {
	n, ok := m.known[keyOf(r)]
	if !ok {
		m.wanted = append(m.wanted, r)
	}
	return n
}

// routes picks how scans are read. Where there is a choice, calls of the store measure
// what there is to choose from, for all scans together: first the runs of conditions, and,
// unless they are short, what they are compared with.
func (r *Reader) routes(ctx context.Context, scans []*scan) error {
	open := make([]*scan, 0, len(scans))
	for _, sc := range scans {
		if !sc.done && sc.query.names == nil {
			sc.measures = measures{kind: sc.query.kind, rows: r.indexed(sc.query.kind), known: maps.Clone(sc.known)}
			open = append(open, sc)
		}
	}
	for len(open) > 0 {
		var a asking
		asked := open[:0]
		for _, sc := range open {
			sc.measures.wanted = nil
			sc.route = sc.choose()
			if n := len(sc.measures.wanted); n > 0 && n <= 2*maxRuns {
				a.add(sc)
				asked = append(asked, sc)
			}
		}
		for part := range slices.Chunk(a.ranges, backend.MaxRanges) {
			some, err := r.measure(ctx, part)
			if err != nil {
				return err
			}
			a.lengths = append(a.lengths, some...)
		}
		for _, sc := range asked {
			a.tell(sc)
		}
		open = asked
	}
	return nil
}

// asking is what a call of the store measures for several scans, each run once.
type asking struct {
	ranges  []backend.Range
	lengths []int // parallel to the ranges
	at      map[measuredRun]int
}

type measuredRun struct {
	kind, namespace string
	runKey
}

// add asks for what a scan wants to know.
func (a *asking) add(sc *scan) {
	if a.at == nil {
		a.at = map[measuredRun]int{}
	}
	for i, one := range sc.measures.ranges(sc.query.namespace) {
		of := measuredRun{one.Kind, one.Namespace, keyOf(sc.measures.wanted[i])}
		if _, asked := a.at[of]; !asked {
			a.at[of] = len(a.ranges)
			a.ranges = append(a.ranges, one)
		}
	}
}

// tell gives a scan what was measured for it.
func (a *asking) tell(sc *scan) {
	m := &sc.measures
	known := maps.Clone(m.known)
	if known == nil {
		known = make(map[runKey]int, len(m.wanted))
	}
	for _, run := range m.wanted {
		k := keyOf(run)
		known[k] = a.lengths[a.at[measuredRun{m.kind.Name, sc.query.namespace, k}]]
	}
	m.known = known
}

// ranges ask for what is wanted.
func (m *measures) ranges(namespace string) []backend.Range {
	out := make([]backend.Range, 0, len(m.wanted))
	most := max(measured/len(m.wanted), leastMeasured)
	for _, run := range m.wanted {
		r := backend.Range{Kind: m.kind.Name, Namespace: namespace, Index: run.Index, Start: run.Start, End: run.End, Estimate: true, Limit: most}
		if run.Index == "" || run.Start == nil {
			r.Limit = max(m.most, measured)
		}
		out = append(out, r)
	}
	return out
}

// measure asks a store for lengths.
func (r *Reader) measure(ctx context.Context, ranges []backend.Range) ([]int, error) {
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan); err != nil {
		return nil, err
	}
	spent.Leave()
	pages, err := backend.Ranges(ctx, r.store, ranges)
	spent.Return(ctx)
	if err != nil {
		return nil, failure.Of(err, backend.Key{})
	}
	out, sum := make([]int, len(pages)), 0
	for i := range pages {
		out[i] = pages[i].Count
		sum += min(out[i], ranges[i].Limit)
		if out[i] == ranges[i].Limit {
			out[i] *= unmeasured
		}
	}
	return out, spent.Spend(budget.Steps, budget.Counted*sum)
}

// choose picks the route that probably looks at the fewest resources.
func (sc *scan) choose() route {
	q := sc.query
	c := &chooser{q: q, trees: &sc.measures, scope: q.places(), most: maxRuns}
	by, ordered := c.orderedBy()
	names := ordered && by == ""
	along := route{by: by}
	ordered = names || ordered && !c.many(by) && sc.along(&along)
	all := c.all()
	chosen, ok := c.best()
	if len(sc.measures.wanted) > 0 {
		return sc.inNames(inexact(all)) // until their lengths are known
	}
	everything := ok && len(chosen.runs) == 1 && keyOf(chosen.runs[0]) == keyOf(all.runs[0])
	all.exact = everything && chosen.exact
	ok = ok && !everything
	switch {
	case !ok && (names || sc.counting || !ordered):
		return sc.inNames(all)
	case ok && names && chosen.named && len(chosen.runs) == 1:
		return sc.inNames(chosen)
	case sc.counting && chosen.exact:
		return route{choice: chosen}
	}
	if ok {
		switch c.measure(&chosen); {
		case len(sc.measures.wanted) > 0:
			return sc.inNames(inexact(all))
		case chosen.rows <= min(fewTimes*sc.wanted(), scanStep): // no other can be much cheaper
			return route{choice: chosen}
		}
		sc.measures.most = min(compared*chosen.rows, mostMeasured)
	}
	if c.measure(&all); !ok || chosen.rows >= all.rows {
		chosen, ok = all, false
	}
	if sc.counting {
		return route{choice: chosen}
	}
	among := all.rows
	if ordered && !names {
		along.choice = choice{runs: []index.Run{sc.kept(by)}, once: true}
		among = c.measure(&along.choice)
	}
	inOrder := min((sc.wanted()*among+chosen.rows)/max(chosen.rows, 1), among)
	switch {
	case names && (!ok || inOrder <= chosen.rows):
		along = sc.inNames(all)
		along.step = inOrder
		return along
	case ordered && !names && inOrder < chosen.rows:
		along.step = inOrder + 1
		return along
	}
	return route{choice: chosen}
}

// inexact is a choice whose runs hold more than is asked for.
func inexact(c choice) choice {
	c.exact = false
	return c
}

// inNames reads a run in the order of the names, if that is the order of the page.
func (sc *scan) inNames(c choice) route {
	rt := route{choice: c}
	by, ok := (&chooser{q: sc.query, trees: &sc.measures}).orderedBy()
	if rt.streams = ok && by == "" && !sc.counting; rt.streams && c.exact {
		rt.step = sc.wanted()
	}
	return rt
}

// along says whether a page can be read in the order of the values of an index, and how.
func (sc *scan) along(rt *route) bool {
	rt.nullsFirst = sc.query.order[0].Descending == sc.backward
	for _, t := range sc.query.filter.tests() {
		rt.valued = rt.valued || t.attribute == rt.by && t.needsValue()
	}
	for _, key := range [][]byte{sc.in.after, sc.in.from, sc.in.before} {
		if key != nil && sc.query.order[0].value(key) == nil {
			return false // it begins or ends among those that have none
		}
	}
	_, place := sc.start()
	rt.valued = rt.valued || rt.nullsFirst && place != nil // they lie before the page
	return true
}

// kept is the part of an index of one value that holds all that the tests of its attribute keep.
func (sc *scan) kept(by string) index.Run {
	var b bounds
	for _, t := range sc.query.filter.tests() {
		if r, _, ok := t.bounds(); ok && t.attribute == by {
			b = b.and(r)
		}
	}
	return index.Run{Index: by, Start: b.start, End: b.end}
}

// needsValue says that the test keeps nothing that has no value.
func (t test) needsValue() bool {
	switch t.op {
	case "ne", "hasNone":
		return false
	case "isNull":
		return !t.null
	}
	return true
}
