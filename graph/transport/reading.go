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

// Errors of reading.read.
var (
	errNoMemory = errors.New("the requests in flight have all the memory that they may have")
	errTooLarge = errors.New("more bytes than one request may have")
)

const (
	// freeRead is how many bytes of each request are not counted: connections are bounded,
	// and a small request is not refused because others send large ones slowly.
	freeRead = 4 << 10
	// readStep is how many bytes a client must send within the message time-out.
	readStep = 64 << 10
	// maxBodyTime is how long a client may take to send a body.
	maxBodyTime = time.Minute
)

// counted returns how much of the memory a request of size bytes takes.
func counted(size int64) int64 { return max(size-freeRead, 0) }

// reading reads one request.
type reading struct {
	from io.Reader
	most int64 // bytes
	room *budget.Room
	// announced is the Content-Length; 0 or less if it is not known.
	announced int64
	// extend gives the client time for the next readStep bytes.
	extend func()
}

// read returns the bytes of a request and how much memory they take of the room, which the caller
// gives back. Memory is taken as bytes arrive, not when they are announced.
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

// readBody reads the body of a POST, which must arrive at the pace of the message time-out.
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

// bodyDeadline is the read deadline of a connection while a body is read.
type bodyDeadline struct {
	control *http.ResponseController

	mu     sync.Mutex // guards the deadline of the connection, and the rest
	end    time.Time
	lifted bool
}

// extend gives the client more time, but not beyond the end. Connections that cannot have deadlines
// have none.
func (d *bodyDeadline) extend(more time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	next := time.Now().Add(more)
	if next.After(d.end) {
		next = d.end
	}
	_ = d.control.SetReadDeadline(next)
}

// endBy brings the end forward.
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

// unread returns the status and the error of a request whose body was not read.
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
