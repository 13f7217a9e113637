package transport

import (
	"errors"
	"io"
	"sync/atomic"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Budget bounds the bytes of all requests that are being read or executed, over
// all connections: the bodies of POSTs, the messages of WebSockets, and the answers
// to queries and mutations while they are sent. An answer that is there is always sent; what it takes
// is missing to those who come later.
type Budget struct {
	most int64
	used atomic.Int64
}

// NewBudget returns a budget of a number of bytes.
func NewBudget(most int64) *Budget { return &Budget{most: most} }

// Used is how many bytes are reserved at the moment.
func (b *Budget) Used() int64 { return b.used.Load() }

// take reserves bytes if that many are left. A nil budget has no bound.
func (b *Budget) take(n int64) bool {
	if b == nil {
		return true
	}
	if b.used.Add(n) > b.most {
		b.used.Add(-n)
		return false
	}
	return true
}

// hold reserves bytes that are in use already, whether or not they are left.
func (b *Budget) hold(n int64) {
	if b != nil {
		b.used.Add(n)
	}
}

// full says that nothing is left for another request.
func (b *Budget) full() bool { return b != nil && b.used.Load() >= b.most }

func (b *Budget) give(n int64) {
	if b != nil {
		b.used.Add(-n)
	}
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
	// begin is called at the start, and again after each progress bytes.
	begin func()
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
		bigger := make([]byte, len(data), size)
		copy(bigger, data)
		r.budget.give(taken)
		data, taken = bigger, size
		return nil
	}
	r.begin()
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
			r.begin()
		}
	}
}

// overBudget refuses a request because the budget is used up.
func (b *Budget) overBudget() *gqlerror.Error {
	return &gqlerror.Error{
		Message:    "the requests and answers in flight have the bytes that they may have together (configuration key limit-bodies); try again",
		Extensions: map[string]any{"code": string(failure.CodeUnavailable), "limit": b.most, "key": "limit-bodies", "retryable": true},
	}
}
