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
	// firstRead is what each request has without asking, in bytes: connections are bounded,
	// and a small request is not refused because others send large ones slowly.
	firstRead = 4 << 10
	// progress is how much a client must send within the body time-out, in bytes.
	progress = 64 << 10
)

// counted is what a request of so many bytes takes of the memory.
func counted(size int64) int64 { return max(size-firstRead, 0) }

// reading is a request that is read.
type reading struct {
	from io.Reader
	most int64 // bytes
	room *budget.Room
	// announced is how many bytes the client says it sends; 0 or less if it does not say.
	announced int64
	// pace gives the client time, at the start and again after each progress bytes.
	pace interface{ extend() }
}

// read returns the bytes of a request and how much of the budget they use, which
// the caller gives back. Memory is taken as bytes arrive: what a client merely
// announces takes none.
func (r reading) read() (data []byte, taken int64, err error) {
	size := int64(0) // of the memory of data
	defer func() { taken = counted(size) }()
	first := int64(firstRead)
	if r.announced > 0 {
		first = min(first, r.announced+1) // one more, to see its end
	}
	grow := func() error {
		next := min(max(2*size, first), r.most+1)
		if !r.room.Take(counted(next)) {
			return errBudget
		}
		bigger := append(make([]byte, 0, next), data...)
		r.room.Give(counted(size))
		data, size = bigger, next
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
