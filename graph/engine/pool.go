package engine

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/stream"
)

// This file manages memory that operations use again: parts of a run, and the buffer of its answer. BenchmarkGraph of
// graph/server measures it: without it, a query for 20 networks with their subnets and ports would take twice as long.
// A run that has panicked is not used again.
//
//	begin -> execute -> end                                          the answer is in memory of its own
//	begin -> execute -> Output.Fill ... Release -> TakeBack -> end   the transport sends it from run.buf

// begin returns a run for an operation. s is the state from which it reads.
func (e *Engine) begin(oc *graphql.OperationContext, p *plan, s *query.Snapshot) *run {
	r, _ := e.spare.Get().(*run)
	if r == nil {
		r = &run{}
		r.linkSlab.Keep = keptPieces
		r.pageSlab.Keep = keptPieces
		r.itemSlab.Keep = keptPieces
		r.nameSlab.Keep = keptPieces
	}
	r.engine = e
	r.oc = oc
	r.plan = p
	r.snapshot = s
	return r
}

// maxSpare is the maximum size of a buffer that is kept for another answer, in bytes.
const maxSpare = 1 << 20

// keptPieces is the maximum number of links, pages, items and names, of each separately, whose memory is kept for
// another answer.
const keptPieces = 2048

var _ stream.OutputOwner = (*run)(nil)

// TakeBack implements [stream.OutputOwner].
func (r *run) TakeBack(buf []byte) { r.engine.end(r, buf) }

// end makes a run and the buffer of its answer available to other operations.
func (e *Engine) end(r *run, buf []byte) {
	if cap(buf) > maxSpare {
		buf = nil
	}
	r.release()
	r.releaseArguments()
	r.oc = nil
	r.plan = nil
	r.ended = nil
	r.applied = false
	r.buf = buf[:0]
	r.path = r.path[:0]
	r.wanted = r.wanted[:0]
	r.level = r.level[:0]
	r.next = r.next[:0]
	r.scratch = r.scratch[:0]
	r.spent = spending{}
	e.spare.Put(r)
}

// release drops everything that was read, because a stream may wait for its next event for a long time.
func (r *run) release() {
	clear(r.wanted)
	clear(r.level)
	clear(r.next)
	r.found = nil
	r.sharedItems = nil
	r.snapshot = nil
	r.manifests = [2]manifest{}
	r.linkSlab.Reset()
	r.pageSlab.Reset()
	r.itemSlab.Reset()
	r.nameSlab.Reset()
}

// releaseArguments drops the arguments and returns their memory to the budget.
func (r *run) releaseArguments() {
	clear(r.args)
	r.spent.budget.Release(r.spent.inputs)
	r.spent.inputs = 0
}

// maxKeptRequests is the maximum number of requests whose memory is kept.
const maxKeptRequests = 1024

// emptied returns p without its requests, so that the next level can use its memory. It returns the zero value if p has
// had too many requests.
func (p *pageRequests) emptied() pageRequests {
	if max(cap(p.list), cap(p.related), len(p.same)) > maxKeptRequests {
		return pageRequests{}
	}
	clear(p.list)
	clear(p.related)
	clear(p.same)
	return pageRequests{list: p.list[:0], related: p.related[:0], of: p.of[:0], same: p.same}
}
