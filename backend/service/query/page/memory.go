package page

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Memory executes the reads of one operation, from one state of the index. It is not safe for concurrent use.
type Memory struct {
	*Read
	spent      *budget.Budget
	explained  *plan.Explanation
	unreadable *kind.Unreadable
	now        time.Time
	// edgesPerRow is how many resources on a page are charged as one row.
	edgesPerRow int

	// reused is the plan of the current read. The next read uses the same memory for its plan.
	reused *plan.Plan
	kind   *index.Kind
	values filter.Values
	// at is the position of the read in the runs of the plan.
	at struct {
		run   int    // index in plan.Runs
		group string // the value of the last row, for Grouped plans
		ended bool   // the rest of the run is not on the page
	}
	// yield is the method row as a function value. It is kept, because it would otherwise be allocated for each run.
	yield func(value string, e *index.Entry) bool
	// charged is the number of steps of the current read that were charged; see due.
	charged int
	err     error // of the budget or the context
}

// NewMemory returns a Memory that skips resources that have expired at now. It charges one row for edgesPerRow
// resources on a page.
func NewMemory(ctx context.Context, tracker *kind.Unreadable, now time.Time, edgesPerRow int) *Memory {
	m := &Memory{
		spent:       budget.From(ctx),
		explained:   plan.ExplanationFrom(ctx),
		unreadable:  tracker,
		now:         now,
		edgesPerRow: edgesPerRow,
		reused:      &plan.Plan{},
	}
	m.yield = func(value string, e *index.Entry) bool { return m.row(ctx, value, e) }
	return m
}

// edgeBytes is the memory of an edge. The resource of the edge belongs to the index.
const edgeBytes = 128

// firstEdges is the maximum initial capacity of a page.
const firstEdges = 128

// Do executes a read of a kind. An error ends the operation: all later calls return the same error.
func (m *Memory) Do(ctx context.Context, r *Read, k *index.Kind) error {
	if m.err != nil {
		return m.err
	}
	m.Read = r
	m.kind = k
	m.charged = 0
	m.values.Compared = 0
	r.plan = m.reused
	*m.reused = (plan.Plan{})
	if !r.idle() {
		m.reused.Make(r.Query, k, &r.Want)
		m.values.Compared = budget.Run * r.plan.Measured
		if m.reused.Sorting == plan.Sorted {
			room := min(r.Limit(), firstEdges)
			if r.plan.ByName {
				room = min(room, len(r.Query.Names))
			}
			r.Edges = make([]Edge, 0, room)
		}
		switch {
		case r.plan.ByName:
			m.lookup(ctx)
		case r.plan.Length:
			m.length(ctx)
		default:
			m.runs(ctx)
		}
		r.finish()
	}
	r.explain(m.explained, "index")
	m.charge(ctx)
	m.fail(m.spent.Spend(budget.Steps, budget.Scan))
	m.fail(m.spent.Spend(budget.Rows, len(r.Edges)/m.edgesPerRow))
	if m.err == nil {
		m.fail(Failure(m.spent.Hold(ctx, edgeBytes*len(r.Edges)), backend.Key{}))
	}
	return m.err
}

// fail records an error, unless one was recorded before.
func (m *Memory) fail(err error) {
	if m.err == nil {
		m.err = err
	}
}

// chargeEvery is the number of steps after which steps are charged. So an operation stops soon after its budget is used
// up.
const chargeEvery = 2048

// due returns the number of steps that were not charged yet.
func (m *Memory) due() int { return budget.Looked*m.looked + m.values.Compared - m.charged }

// charge charges the steps that are due, and records an error if the operation must end.
func (m *Memory) charge(ctx context.Context) {
	due := m.due()
	m.charged += due
	m.fail(m.spent.Spend(budget.Steps, due))
	m.spent.Pace(ctx)
	if err := ctx.Err(); err != nil && m.err == nil {
		m.err = failure.Of(err, backend.Key{})
	}
}

// look counts a row, and charges steps from time to time.
func (m *Memory) look(ctx context.Context) {
	m.looked++
	if m.due() >= chargeEvery {
		m.charge(ctx)
	}
}

// offer takes a resource if it can be read, has not expired, and matches. past is as in [Read.take].
func (m *Memory) offer(ctx context.Context, e *index.Entry) (past bool) {
	if m.look(ctx); e.Err != nil {
		m.unreadable.Note(&e.Resource, e.Err)
		return m.err != nil
	}
	m.values.Read(m.kind, e)
	if e.ExpiredAt(m.now) || !m.plan.Exact && !(m.Query.Within(e.Place()) && m.plan.Match(&m.values)) {
		return m.err != nil
	}
	return m.take(Resource{Stored: &e.Resource, Body: &e.Body}, &m.values) || m.err != nil
}

// lookup reads the resources that the query names.
func (m *Memory) lookup(ctx context.Context) {
	for _, place := range m.names {
		if e := m.kind.At(place); e == nil {
			m.look(ctx)
		} else if m.offer(ctx, e) {
			return
		}
	}
}

// length counts matches by the lengths of the runs. It subtracts the unreadable and expired resources in the runs.
func (m *Memory) length(ctx context.Context) {
	m.Matches = m.plan.Rows
	for _, r := range m.plan.Runs {
		if r.Index == "" { // unreadable resources have no rows but their names
			m.Matches -= m.kind.Unreadable(r.Run)
		}
	}
	for e := range m.kind.Expired(m.now) {
		m.values.Read(m.kind, e)
		if m.look(ctx); m.Query.Within(e.Place()) && m.Query.Match(&m.values) {
			m.Matches--
		}
		if m.err != nil {
			return
		}
	}
}

// runs reads the runs of the plan until the page is full. With RunsSorted it ends a run when the rest of the run lies
// beyond the page. With Grouped it reads the whole group in which the page becomes full.
func (m *Memory) runs(ctx context.Context) {
	for i, r := range m.plan.Runs {
		m.at.run = i
		m.at.group = ""
		m.at.ended = false
		if r.ReversedTies != nil {
			m.at.ended = m.reversedTies(ctx, r)
		} else {
			m.kind.Scan(r.Run, r.Reverse, m.yield)
		}
		if m.at.ended || m.err != nil || m.plan.Sorting == plan.Grouped && m.full() {
			return
		}
	}
}

// row handles a row of the current run, and reports whether to continue with the next row.
func (m *Memory) row(ctx context.Context, value string, e *index.Entry) bool {
	if m.plan.Sorting == plan.Grouped && value != m.at.group {
		m.at.group = value
		if m.full() {
			m.at.ended = true
			return false
		}
	}
	if !m.plan.Once && m.repeated(e, m.at.run, value) {
		m.look(ctx)
		return m.err == nil
	}
	past := m.offer(ctx, e)
	m.at.ended = past && m.plan.Sorting == plan.Sorted
	return !past
}

// maxTied is the maximum number of rows with the same value that reversedTies keeps in memory.
const maxTied = 64

// reversedTies reads a run with ReversedTies, and reverses the rows of each value. If a value has more than maxTied
// rows, it reads these rows by another scan in the opposite direction. It reports whether the page is full.
func (m *Memory) reversedTies(ctx context.Context, r plan.Run) (full bool) {
	var space [maxTied]*index.Entry
	for {
		ties := space[:0]
		of := ""
		many := false
		flush := func() bool {
			for i := len(ties) - 1; i >= 0 && !full; i-- {
				full = m.offer(ctx, ties[i])
			}
			ties = ties[:0]
			return !full
		}
		m.kind.Scan(r.Run, r.Reverse, func(value string, e *index.Entry) bool {
			if value != of && !flush() {
				return false
			}
			of = value
			many = len(ties) == maxTied
			if many {
				return false
			}
			ties = append(ties, e)
			return true
		})
		if !many {
			flush()
			return full
		}
		tied := r.Tied(of)
		m.kind.Scan(tied.Run, tied.Reverse, func(_ string, e *index.Entry) bool {
			full = m.offer(ctx, e)
			return !full
		})
		if full {
			return true
		}
		r = r.Beyond(of)
	}
}

// repeated reports whether the resource of a row has occurred before, in an earlier run or in an earlier row of this
// run. value is the value of the row.
func (m *Memory) repeated(e *index.Entry, run int, value string) bool {
	m.values.Compared += run
	for i := range run {
		if _, ok := m.kind.First(e, m.plan.Runs[i].Run); ok {
			return true
		}
	}
	first, _ := m.kind.First(e, m.plan.Runs[run].Run)
	return first != value
}
