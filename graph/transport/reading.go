package transport

import (
	"errors"
	"io"

	"github.com/sluicegw/sluice/backend/budget"
)

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
	from io.Reader
	most int64 // bytes
	room *budget.Room
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
		if !r.room.Take(size) {
			return errBudget
		}
		var bigger []byte
		if taken == 0 && size <= int64(len(r.space)) {
			bigger = r.space[:0:size]
		} else {
			bigger = append(make([]byte, 0, size), data...)
		}
		r.room.Give(taken)
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
