package transport

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// The errors of reading.read, besides errors of the connection.
var (
	errNoMemory = errors.New("the requests in flight have all the memory that they may have")
	errTooLarge = errors.New("more bytes than one request may have")
)

const (
	// freeRead is the number of bytes of each request for which no memory is claimed. Small requests should not be
	// refused because other clients send large ones slowly, and the number of connections is limited anyway.
	freeRead = 4 << 10
	// readStep is the number of bytes that a client must send within the message timeout.
	readStep = 64 << 10
	// maxBodyTime is the maximum time for receiving a whole body.
	maxBodyTime = time.Minute
)

// counted returns the number of bytes of memory to be claimed for a request with size bytes.
func counted(size int64) int64 { return max(size-freeRead, 0) }

// reading is the state of reading one request.
type reading struct {
	from io.Reader
	most int64 // bytes
	room *budget.Room
	// announced is the Content-Length; 0 or negative if it is unknown.
	announced int64
	// extend extends the deadline for the next readStep bytes.
	extend func()
}

// read returns the bytes of a request. taken is the memory that was claimed for them, which the caller must release
// even after an error. Memory is claimed when bytes arrive, not when they are announced.
func (r reading) read() (data []byte, taken int64, err error) {
	defer func() { taken = counted(int64(cap(data))) }()
	first := int64(freeRead)
	if r.announced > 0 {
		first = min(first, r.announced+1) // one more, to see the end
	}
	r.extend()
	for next := readStep; ; {
		if len(data) == cap(data) {
			if int64(len(data)) > r.most {
				return data, 0, errTooLarge
			}
			size := min(max(2*int64(cap(data)), first), r.most+1)
			if !r.room.Take(counted(size)) {
				return data, 0, errNoMemory
			}
			r.room.Give(counted(int64(cap(data))))
			data = append(make([]byte, 0, size), data...)
		}
		n, err := r.from.Read(data[len(data):cap(data)])
		data = data[:len(data)+n]
		switch {
		case err == io.EOF && int64(len(data)) > r.most:
			return data, 0, errTooLarge
		case err == io.EOF:
			return data, 0, nil
		case err != nil:
			return data, 0, err
		case len(data) >= next:
			next = len(data) + readStep
			r.extend()
		}
	}
}

// readBody reads the body of a POST, which the client must send at the pace that the message timeout sets.
func (t *Transport) readBody(w http.ResponseWriter, r *http.Request) (data []byte, taken int64, err error) {
	d := &bodyDeadline{control: http.NewResponseController(w), end: time.Now().Add(maxBodyTime)}
	stop := context.AfterFunc(t.draining, func() { d.endBy(time.Now().Add(LateGrace)) })
	defer stop()
	data, taken, err = reading{
		from: r.Body, most: t.cfg.Body, room: t.cfg.Memory.Requests(), announced: r.ContentLength,
		extend: func() { d.extend(t.cfg.MessageTimeout) },
	}.read()
	if err == nil {
		d.lift()             // the answer has its own deadline
		err = r.Body.Close() // otherwise net/http looks for its end again
	}
	return data, taken, err
}

// bodyDeadline controls the read deadline of a connection while a body is read.
type bodyDeadline struct {
	control *http.ResponseController

	mu     sync.Mutex // guards the deadline of the connection, and the rest
	end    time.Time
	lifted bool
}

// extend extends the deadline, but not beyond end. If the connection has no deadlines, it does nothing.
func (d *bodyDeadline) extend(more time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := time.Now().Add(more)
	if next.After(d.end) {
		next = d.end
	}
	_ = d.control.SetReadDeadline(next)
}

// endBy sets end to an earlier time.
func (d *bodyDeadline) endBy(end time.Time) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.lifted && end.Before(d.end) {
		d.end = end
		_ = d.control.SetReadDeadline(end)
	}
}

func (d *bodyDeadline) lift() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lifted = true
	_ = d.control.SetReadDeadline(time.Time{})
}

// unread returns the HTTP status and the error for a request whose body could not be read.
func (t *Transport) unread(w http.ResponseWriter, err error) (int, *gqlerror.Error) {
	var network net.Error
	timeout := errors.As(err, &network) && network.Timeout()
	switch {
	case errors.Is(err, errTooLarge):
		return http.StatusRequestEntityTooLarge, exceeded("limit-body", t.cfg.Body, fmt.Sprintf("the request has more than the %d bytes that are accepted (configuration key limit-body)", t.cfg.Body))
	case errors.Is(err, errNoMemory):
		retryLater(w)
		return http.StatusServiceUnavailable, overBudget(t.cfg.Memory)
	case timeout && t.draining.Err() != nil:
		retryLater(w)
		return http.StatusServiceUnavailable, retryable(
			failure.CodeUnavailable, "the gateway is shutting down; try again",
		)
	case timeout:
		return http.StatusRequestTimeout, retryable(failure.CodeTimeout, "the body came too slowly")
	}
	return http.StatusBadRequest, badRequest("the body could not be read")
}
