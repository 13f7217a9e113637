package page

import (
	"context"
	"fmt"
	"slices"

	"golang.org/x/sync/semaphore"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/filter"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Scanner carries out reads of kinds that are not in memory, from a store. Safe for concurrent use. The steps of Do
// are:
//
//	begin        makes a scan of each page or count
//	admit        for scans of whole kinds: refuseTooMany, then wait for a slot
//	readNames    reads the scans that have names, in one call
//	next         returns the ranges of the next step, for all scans that are not done
//	  |  ^       and the resources to count
//	  v  |
//	Ranges       is one call of the store
//	  |  |
//	  v  |
//	addCount     end a scan when its page is full or its runs are read
//	takePage
type Scanner struct {
	fetch *Fetcher
	index *index.Index // nil if no kind is in memory
	slots *slots
}

// NewScanner returns a scanner that reads through a fetcher.
func NewScanner(r *Fetcher, idx *index.Index) *Scanner {
	return &Scanner{
		fetch: r,
		index: idx,
		slots: &slots{free: semaphore.NewWeighted(scansAtOnce), waiting: map[string]*pending{}},
	}
}

// scan is the state of a page or a count that is read from a store.
type scan struct {
	*Read
	arena *body.Arena
	// left is the unread part of the current run. rest are the runs after it.
	left backend.Range
	rest []plan.Run
	// counts are ranges that the store must count in the next step.
	counts []backend.Range
	// done reports that the scan needs no further steps.
	done bool
	// ended reports that the current run was read to its end.
	ended bool
	// refused is the error if the scan was refused before anything was read.
	refused error
}

const (
	// stepLimit is the number of resources that a step reads for a page if some of these resources may not match.
	stepLimit = 500
	// leastStep is the minimum number of a parent's referrers that a step reads.
	leastStep = 16
	// MaxStepRanges is the maximum number of ranges in a step.
	MaxStepRanges = backend.MaxRanges / 3
	// MaxFirsts is the maximum estimated size, in bytes, of the first resources of all ranges in a step. The store
	// returns the first resource of each range even if the page exceeds backend.MaxPageBytes.
	MaxFirsts = 8 * backend.MaxPageBytes
)

// Do executes reads. It returns an error or nil for each of them.
func (s *Scanner) Do(ctx context.Context, reads []*Read) []error {
	scans, whole := s.begin(reads)
	err := s.admit(ctx, scans, whole)
	errs := make([]error, len(reads))
	why := plan.ExplanationFrom(ctx)
	for i, sc := range scans {
		switch sc.finish(); {
		case sc.refused != nil:
			errs[i] = sc.refused
		case !sc.done:
			errs[i] = err
		}
		sc.settleTotal()
		sc.explain(why, "store")
	}
	return errs
}

// admit runs scans. If some of them read whole kinds, it first refuses scans that are too large, and waits for a slot.
func (s *Scanner) admit(ctx context.Context, scans, whole []*scan) error {
	if len(whole) == 0 {
		return s.run(ctx, scans)
	}
	if err := s.refuseTooMany(ctx, whole); err != nil {
		return err
	}
	if !slices.ContainsFunc(scans, func(sc *scan) bool { return !sc.done }) {
		return nil
	}
	if len(scans) == 1 {
		return s.slots.share(ctx, scans[0], func() error { return s.run(ctx, scans) })
	}
	end, err := s.slots.acquire(ctx)
	if err != nil {
		return err
	}
	defer end()
	return s.run(ctx, scans)
}

// begin makes a scan for each read. whole has the scans that test all resources of a kind or of a range of names.
func (s *Scanner) begin(reads []*Read) (scans, whole []*scan) {
	arena := &body.Arena{}
	for _, r := range reads {
		sc := &scan{Read: r, arena: arena}
		sc.plan = &plan.Plan{}
		scans = append(scans, sc)
		if r.idle() {
			sc.done = true
			continue
		}
		q := r.Query
		sc.plan.Make(q, nil, &r.Want)
		if sc.plan.ByName {
			continue
		}
		if sc.plan.Length {
			sc.counts = sc.plan.Counts(q)
		}
		if len(sc.plan.Runs) == 0 { // the caller may see nothing
			sc.done = len(sc.counts) == 0
			continue
		}
		run := sc.plan.Runs[0]
		sc.left, sc.rest = sc.rangeOf(run), sc.plan.Runs[1:]
		switch {
		case q.Reference != "":
			parent := q.Parent()
			sc.left.Referenced = &parent
			sc.left.Start, sc.left.End = sc.referrerBound(run.Start), sc.referrerBound(run.End)
		case !sc.plan.Exact || sc.plan.Sorting != plan.Sorted && !sc.plan.Length:
			whole = append(whole, sc)
		}
	}
	return scans, whole
}

// rangeOf converts a run of names to a range of the store.
func (sc *scan) rangeOf(run plan.Run) backend.Range {
	return backend.Range{
		Kind:      sc.Query.Kind.Name,
		Namespace: sc.Query.Namespace,
		Start:     run.Start,
		End:       run.End,
		Reverse:   run.Reverse,
		Bare:      true,
	}
}

// referrerBound converts a bound of names to a bound of the range of a parent's referrers. These are ordered by kind
// first.
func (sc *scan) referrerBound(bound []byte) []byte {
	if bound == nil {
		return nil
	}
	return append(backend.AppendString(nil, sc.Query.Kind.Name), bound...)
}

// refuseTooMany refuses scans that would read more resources than the operation may read. It asks the store only for
// counts.
func (s *Scanner) refuseTooMany(ctx context.Context, scans []*scan) error {
	var counts []RangeRequest
	for _, sc := range scans {
		parts := []backend.Range{sc.left}
		for _, run := range sc.rest {
			parts = append(parts, sc.rangeOf(run))
		}
		for _, part := range parts {
			part.Count = true
			counts = append(counts, RangeRequest{Range: part, Kind: sc.Query.Kind})
		}
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Steps, budget.Scan*len(counts)); err != nil {
		return err
	}
	var pages []backend.Page
	for some := range slices.Chunk(counts, MaxStepRanges) {
		more, err := s.fetch.Ranges(ctx, some...)
		if err != nil {
			return err
		}
		pages = append(pages, more...)
	}
	for _, sc := range scans {
		n, most := 0, spent.Left(budget.Rows)
		for _, one := range pages[:1+len(sc.rest)] {
			n += one.Count
		}
		pages = pages[1+len(sc.rest):]
		if n > most {
			sc.refused, sc.done = s.tooMany(sc.Query, n, most), true
		}
	}
	return nil
}

// tooMany returns the error for a scan that would read too many resources. The error names settings that would help.
func (s *Scanner) tooMany(q *plan.Query, n, most int) error {
	k, all := q.Kind, fmt.Sprintf("all of its %d resources", n)
	if q.Scoped() { // the number is hidden from the caller
		all = "more of its resources than that"
	}
	help := "with more memory it would be (configuration key index-memory)"
	if k.OutOfMemory {
		help = "the kind's author keeps it out of memory"
	} else if s.index != nil && !q.Scoped() {
		if bytes := s.index.Needs(k.Name, n); bytes > 0 {
			help = fmt.Sprintf("with about %d bytes it would be (configuration key index-memory)", bytes)
		}
	}
	return &failure.Error{
		Code:    failure.CodeLimitExceeded,
		Kind:    k.Name,
		Limit:   most,
		Setting: budget.Rows.Key(),
		Message: fmt.Sprintf(
			"a filter or an order of %s looks at %s, since the kind is not in memory, and the operation may look at %d (configuration key limit-rows); %s", k.Name, all, most, help),
	}
}

// run makes steps until all scans are done.
func (s *Scanner) run(ctx context.Context, scans []*scan) error {
	if err := s.readNames(ctx, scans); err != nil {
		return err
	}
	for {
		ranged, counted, requests := s.next(ctx, scans)
		if len(requests) == 0 {
			return nil
		}
		if err := budget.From(ctx).Spend(budget.Steps, budget.Scan*len(requests)); err != nil {
			return err
		}
		pages, err := s.fetch.Ranges(ctx, requests...)
		if err != nil {
			return err
		}
		for i, sc := range counted {
			if err := s.addCount(ctx, sc, requests[len(ranged)+i].Namespace, pages[len(ranged)+i].Count); err != nil {
				return err
			}
		}
		for i, sc := range ranged {
			if err := s.takePage(ctx, sc, pages[i]); err != nil {
				return err
			}
		}
	}
}

// next returns the requests of the next step: first a range for each scan in asked, then a count for each scan in
// counted. Together the ranges have at most as many resources as the operation may still read, but at least one. A scan
// that does not fit waits for a later step.
func (s *Scanner) next(ctx context.Context, scans []*scan) (ranged, counted []*scan, requests []RangeRequest) {
	var counts []RangeRequest
	left, firsts := budget.From(ctx).Left(budget.Rows), 0
	for _, sc := range scans {
		k := sc.Query.Kind
		if sc.done || len(ranged) > 0 && (len(ranged)+len(counts) >= MaxStepRanges || left <= 0 || firsts >= MaxFirsts) {
			continue
		}
		for _, r := range sc.counts {
			counted, counts = append(counted, sc), append(counts, RangeRequest{Range: r, Kind: k})
		}
		sc.counts = nil
		if sc.countsOnly() {
			continue
		}
		one := sc.left
		one.Limit = stepLimit
		switch {
		case sc.plan.Exact && sc.plan.Sorting == plan.Sorted:
			one.Limit = sc.Limit() - len(sc.Edges)
		case sc.plan.Sorting == plan.Sorted && one.Referenced != nil && sc.Query.Filter.Empty():
			// Nearly all referrers match.
			one.Limit = min(max(sc.Limit()-len(sc.Edges), leastStep), stepLimit)
		}
		one.Limit = min(one.Limit, backend.MaxLimit, max(left, 1))
		left, firsts = left-one.Limit, firsts+s.fetch.Estimate(k, 1)
		ranged, requests = append(ranged, sc), append(requests, RangeRequest{Range: one, Kind: k})
	}
	return ranged, counted, append(requests, counts...)
}

// settleTotal corrects a total that the store has counted, because the store may have changed between the count and the
// page. If the page has all matches, the total is their number. Otherwise the total is at least their number.
func (sc *scan) settleTotal() {
	if !sc.plan.Length || !sc.Total {
		return
	}
	if sc.ended && sc.In.After == nil && sc.In.Before == nil && sc.In.From == nil {
		sc.Matches = len(sc.Edges)
	}
	sc.Matches = max(sc.Matches, len(sc.Edges))
}

// countsOnly reports whether the scan needs only a count by the store.
func (sc *scan) countsOnly() bool {
	return sc.plan.Length && (sc.Count || sc.Limit() == 0 || len(sc.plan.Runs) == 0)
}

// addCount adds a count by the store to the matches of a scan. n is the number of resources in a namespace, or in all
// namespaces if namespace is empty. Resources that are known to be unreadable are subtracted, because they are on no
// page.
func (s *Scanner) addCount(ctx context.Context, sc *scan, namespace string, n int) error {
	if err := budget.From(ctx).Spend(budget.Steps, budget.Counted*n); err != nil {
		return err
	}
	unreadable, err := s.fetch.unreadable.Count(ctx, sc.Query.Kind, namespace)
	sc.Matches += max(n-unreadable, 0)
	sc.done = sc.done || sc.countsOnly()
	return err
}

// takePage takes the resources that a step has read for a scan. It releases the memory of the resources that are not on
// the page.
func (s *Scanner) takePage(ctx context.Context, sc *scan, page backend.Page) error {
	before, compared := sc.size(), 0
	sc.ended = !page.More
	for i, stored := range page.Resources {
		sc.looked++
		if b := s.fetch.Read(sc.arena, sc.Query.Kind, stored); b != nil &&
			sc.offer(Resource{Stored: stored, Body: b}, &compared) {
			sc.done, sc.ended = true, sc.ended && !sc.More && i == len(page.Resources)-1
			break
		}
	}
	if !sc.done {
		sc.advance(page)
	}
	spent := budget.From(ctx)
	spent.Release(Size(page.Resources) + before - sc.size())
	return spent.Spend(budget.Steps, compared)
}

// advance moves left past the resources that were read, or to the next run. After the last run it sets done.
func (sc *scan) advance(page backend.Page) {
	n := len(page.Resources)
	if !page.More || n == 0 {
		if len(sc.rest) == 0 {
			sc.done = true
			return
		}
		sc.left = sc.rangeOf(sc.rest[0])
		sc.rest = sc.rest[1:]
		sc.ended = false
		return
	}
	at := backend.OrderTuple(page.Resources[n-1].Namespace, page.Resources[n-1].Name)
	if sc.left.Referenced != nil {
		at = sc.referrerBound(at)
	}
	if sc.left.Reverse {
		sc.left.End = at
	} else {
		sc.left.Start = backend.Successor(at)
	}
}

// size returns the memory of the resources on the page, in bytes.
func (sc *scan) size() (n int) {
	for i := range sc.Edges {
		n += SizeOf(sc.Edges[i].Resource.Stored)
	}
	return n
}

// offer takes a resource if it matches, and adds the number of compared values to *compared. It reports whether the
// page is full.
func (sc *scan) offer(r Resource, compared *int) (full bool) {
	if sc.plan.Exact && sc.plan.Sorting == plan.Sorted && len(sc.Query.Order) == 0 {
		return sc.take(r, nil)
	}
	v := filter.Of(sc.Query.Kind, r.Body)
	kept := sc.plan.Exact || sc.plan.Match(v)
	*compared += v.Compared
	return kept && sc.take(r, v) && sc.plan.Sorting == plan.Sorted
}

// readNames reads the resources of all scans that read by name, in one call.
func (s *Scanner) readNames(ctx context.Context, scans []*scan) error {
	var keys []backend.Key
	var kinds []*kind.Kind
	at := map[backend.Key]int{}
	looks := 0
	for _, sc := range scans {
		for _, key := range sc.keys() {
			looks++
			if _, known := at[key]; !known {
				at[key] = len(keys)
				keys, kinds = append(keys, key), append(kinds, sc.Query.Kind)
			}
		}
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Rows, looks); err != nil {
		return err
	}
	got, err := s.fetch.Keys(ctx, keys, func(i int) *kind.Kind { return kinds[i] })
	if err != nil {
		return err
	}
	compared := 0
	for _, sc := range scans {
		for _, key := range sc.keys() {
			sc.looked++
			if r := got[at[key]]; r != nil && sc.offer(*r, &compared) {
				break
			}
		}
		sc.done = sc.done || sc.plan.ByName
	}
	return spent.Spend(budget.Steps, compared)
}

// keys returns the keys for [Read.names]. It returns none if the scan is done or does not read by name.
func (sc *scan) keys() (keys []backend.Key) {
	if sc.done || !sc.plan.ByName {
		return nil
	}
	for name := range sc.names {
		keys = append(keys, backend.Key{Kind: sc.Query.Kind.Name, Namespace: sc.Query.Namespace, Name: name})
	}
	return keys
}
