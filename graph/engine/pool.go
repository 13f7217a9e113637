package engine

import (
	"context"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/stream"
)

// This file has all memory that operations use one after another: the pieces of a
// run and the buffer of its answer. Without it, 20 networks with their subnets and ports
// cost twice as much, a page of 100 two fifths more: BenchmarkGraph of graph/server, medians of
// seven rounds. A run that panics is never used again.
//
//	begin -> execute -> end                                    nobody reads the answer in place
//	begin -> execute -> Output.Fill ... Release -> TakeBack -> end   the transport sends it from there

// begin returns a run, a new one if none is spare.
func (e *Engine) begin(ctx context.Context, oc *graphql.OperationContext, p *plan) *run {
	r, _ := e.spare.Get().(*run)
	if r == nil {
		r = &run{}
		r.linkSlab.Keep, r.pageSlab.Keep, r.itemSlab.Keep, r.nameSlab.Keep = keptPieces, keptPieces, keptPieces, keptPieces
	}
	r.engine, r.ctx, r.oc, r.plan, r.caller = e, ctx, oc, p, access.CallerFrom(ctx)
	return r
}

// maxSpare is the largest memory of an answer that is kept for another one.
const maxSpare = 1 << 20

// keptPieces is how many links, pages and items of an answer have memory that the next
// one uses.
const keptPieces = 2048

var _ stream.OutputOwner = (*run)(nil)

// TakeBack is part of [stream.OutputOwner].
func (r *run) TakeBack(buf []byte) { r.engine.end(r, buf) }

// end gives a run back, with the memory of its answer.
func (e *Engine) end(r *run, buf []byte) {
	if cap(buf) > maxSpare {
		buf = nil
	}
	r.release()
	r.releaseArguments()
	r.oc, r.plan, r.ctx, r.ended, r.applied = nil, nil, nil, nil, false
	r.buf, r.path, r.wanted, r.level, r.next, r.scratch = buf[:0], r.path[:0], r.wanted[:0], r.level[:0], r.next[:0], r.scratch[:0]
	r.caller, r.spent = access.Caller{}, spending{}
	e.spare.Put(r)
}

// release drops what an event has read: a stream may wait long for the next one.
func (r *run) release() {
	clear(r.wanted)
	clear(r.level)
	clear(r.next)
	r.found, r.sharedItems, r.moment, r.manifests = nil, nil, nil, [2]manifest{}
	r.linkSlab.Reset()
	r.pageSlab.Reset()
	r.itemSlab.Reset()
	r.nameSlab.Reset()
}

// maxSpareArguments is how many arguments of an operation have memory that the next one uses.
const maxSpareArguments = 64

// releaseArguments takes the memory of arguments back. What they hold is not: the service may keep it.
func (r *run) releaseArguments() {
	for f, a := range r.args {
		if a != f.args && len(r.spareArguments) < maxSpareArguments {
			clear(a.values)
			*a = arguments{values: a.values}
			r.spareArguments = append(r.spareArguments, a)
		}
	}
	clear(r.args)
	r.spent.budget.Release(r.spent.inputs)
	r.spent.inputs = 0
}

// maxAsked is how many requests have room that is used again.
const maxAsked = 1024

// emptied returns the memory of requests that are not needed any more, for other requests.
func (p *pageRequests) emptied() pageRequests {
	if max(cap(p.list), cap(p.related), len(p.same)) > maxAsked {
		return pageRequests{}
	}
	clear(p.list)
	clear(p.related)
	clear(p.same)
	return pageRequests{list: p.list[:0], related: p.related[:0], of: p.of[:0], same: p.same}
}
