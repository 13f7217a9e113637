package engine

import (
	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service/query"
	"github.com/sluicegw/sluice/graph/stream"
)

// This file manages the memory that operations reuse: the pieces of a run and the buffer of its
// answer. BenchmarkGraph of graph/server measures it: without reuse, 20 networks with their subnets
// and ports cost twice as much. A run that panics is not reused.
//
//	begin -> execute -> end                                          the answer is in memory of its own
//	begin -> execute -> Output.Fill ... Release -> TakeBack -> end   the transport sends it from run.buf

// begin returns a run that reads a snapshot, a spare one if there is one.
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

// maxSpare is the most bytes of a buffer that is kept for another answer.
const maxSpare = 1 << 20

// keptPieces is the most links, pages and items whose memory is kept for the next answer.
const keptPieces = 2048

var _ stream.OutputOwner = (*run)(nil)

// TakeBack implements [stream.OutputOwner].
func (r *run) TakeBack(buf []byte) { r.engine.end(r, buf) }

// end gives a run back, with the buffer of its answer.
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

// release drops everything that was read, since a stream may wait long for its next
// event.
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

// maxAsked is the most requests whose memory is reused.
const maxAsked = 1024

// emptied returns the memory of answered requests for reuse.
func (p *pageRequests) emptied() pageRequests {
	if max(cap(p.list), cap(p.related), len(p.same)) > maxAsked {
		return pageRequests{}
	}
	clear(p.list)
	clear(p.related)
	clear(p.same)
	return pageRequests{list: p.list[:0], related: p.related[:0], of: p.of[:0], same: p.same}
}
