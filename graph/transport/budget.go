package transport

import (
	"context"
	"errors"
	"io"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Budget bounds the bytes that all clients together make the gateway hold: requests
// that are being read or executed, what running operations hold, answers and events
// that are being sent. An answer that is there is always sent; what it takes is
// missing to those who come later. See [budget.Pool] for operations.
type Budget struct {
	pool *budget.Pool
	// queued are the events that wait for their clients, requests what subscriptions
	// keep of theirs.
	queued, requests *budget.Part
	// work is the allowance of all events of subscriptions.
	work *budget.Allowance
}

// NewBudget returns a budget of a number of bytes. An eighth of them may be events
// that wait for their clients, and an eighth requests that subscriptions keep. The
// events of subscriptions share the allowance, which may be nil.
func NewBudget(most int64, work *budget.Allowance) *Budget {
	pool := budget.NewPool(most)
	return &Budget{pool: pool, work: work, queued: pool.Part(most / 8), requests: pool.Part(most / 8)}
}

// Used is how many bytes are reserved at the moment.
func (b *Budget) Used() int64 { return b.pool.Used() }

// Waiting is how many operations and events wait for memory.
func (b *Budget) Waiting() int { return b.pool.Waiting() }

// take reserves bytes if that many are left. A nil budget has no bound.
func (b *Budget) take(n int64) bool { return b == nil || b.pool.Take(n) }

func (b *Budget) give(n int64) {
	if b != nil {
		b.pool.Give(n)
	}
}

// connection is the context of the subscriptions of one connection.
func (b *Budget) connection(ctx context.Context) context.Context {
	if b == nil {
		return ctx
	}
	return budget.WithShared(ctx, budget.Shared{Events: b.work.Connection()})
}

// begin reserves what an operation begins with.
func (b *Budget) begin() (*budget.Share, error) {
	if b == nil {
		return nil, nil
	}
	return b.pool.Begin()
}

// stream is what the events of a subscription hold.
func (b *Budget) stream() *budget.Share {
	if b == nil {
		return nil
	}
	return b.pool.BeginEvents()
}

// events are the bytes of the events that wait.
func (b *Budget) events() *budget.Part {
	if b == nil {
		return nil
	}
	return b.queued
}

// freeRequest is how much of its request a subscription keeps uncounted, in bytes.
const freeRequest = 4 << 10

// keep gives back what the request of a subscription took, but for what it keeps of it
// while it runs, which done gives back. It returns false if there is no room for that.
func (b *Budget) keep(taken int64) (done func(), ok bool) {
	if b == nil {
		return func() {}, true
	}
	b.give(taken)
	kept := max(taken-freeRequest, 0)
	if !b.requests.Take(kept) {
		return nil, false
	}
	return func() { b.requests.Give(kept) }, true
}

// Errors of reading within a budget.
var (
	errBudget  = errors.New("the requests in flight have all the bytes that they may have")
	errTooMany = errors.New("more bytes than one request may have")
)

const (
	// firstRead is the most that is taken for a request before any of it is there, in bytes.
	firstRead = 4 << 10
	// progress is how much a client must send within the body time-out, in bytes.
	progress = 64 << 10
)

// reading is a request that is read.
type reading struct {
	from   io.Reader
	most   int64 // bytes
	budget *Budget
	// announced is how many bytes the client says it sends; 0 or less if it does not say.
	announced int64
	// pace gives the client time, at the start and again after each progress bytes.
	pace interface{ extend() }
	// space is memory for a request that fits; it may be nil.
	space []byte
}

// read returns the bytes of a request and how much of the budget they use, which
// the caller gives back. Memory is taken as bytes arrive: what a client merely
// announces takes none.
func (r reading) read() (data []byte, taken int64, err error) {
	first := int64(firstRead)
	if r.announced > 0 {
		first = min(first, r.announced+1) // one more, to see its end
	}
	grow := func() error {
		size := max(2*taken, first)
		size = min(size, r.most+1)
		if !r.budget.take(size) {
			return errBudget
		}
		var bigger []byte
		if taken == 0 && size <= int64(len(r.space)) {
			bigger = r.space[:0:size]
		} else {
			bigger = append(make([]byte, 0, size), data...)
		}
		r.budget.give(taken)
		data, taken = bigger, size
		return nil
	}
	r.pace.extend()
	for next := progress; ; {
		if len(data) == cap(data) {
			if int64(len(data)) > r.most {
				return data, taken, errTooMany
			}
			if err := grow(); err != nil {
				return data, taken, err
			}
		}
		n, err := r.from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF && int64(len(data)) > r.most:
			return data, taken, errTooMany
		case err == io.EOF:
			return data, taken, nil
		case err != nil:
			return data, taken, err
		case len(data) >= next:
			next = len(data) + progress
			r.pace.extend()
		}
	}
}

// overBudget refuses a request, an operation or an event because the budget is used up.
func (b *Budget) overBudget() *gqlerror.Error {
	out := &gqlerror.Error{Message: budget.ErrBusy.Error(), Extensions: map[string]any{
		"code": string(failure.CodeUnavailable), "key": budget.MemoryKey, "retryable": true, "retryAfter": budget.RetryAfter,
	}}
	if b != nil {
		out.Extensions["limit"] = b.pool.Most()
	}
	return out
}
