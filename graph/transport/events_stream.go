package transport

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/stream"
)

// eventStream is the answer to one request. The goroutine of the request writes it.
type eventStream struct {
	of                         *Events
	w                          http.ResponseWriter
	control                    *http.ResponseController
	ending                     <-chan struct{} // closed: the gateway stops
	heartbeat, timeout, gather time.Duration
	out                        stream.Queue
	ready                      chan struct{} // holds a token when there is something to write
	wrote                      time.Time
	frames                     []stream.Frame
	buf                        []byte
	aborted                    atomic.Bool
	work                       sync.WaitGroup // ends with the operation
}

// abort ends the connection.
func (s *eventStream) abort() {
	s.aborted.Store(true)
	_ = s.control.SetWriteDeadline(time.Now()) // else it ends with the next part
}

func (s *eventStream) wake(bool) {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

var _ stream.Wire = (*eventStream)(nil)

// Frame is part of [stream.Wire].
func (s *eventStream) Frame(payload []byte, cursor string) stream.Frame {
	return event("next", cursor, payload)
}

// End is part of [stream.Wire].
func (s *eventStream) End(ctx context.Context, errs gqlerror.List) {
	last := []stream.Frame{event("complete", "", nil)}
	if len(errs) > 0 {
		last = append([]stream.Frame{event("next", "", stream.Encode(&graphql.Response{Errors: errs}))}, last...)
	}
	_ = s.out.Put(ctx, nil, last...) // the client has gone
}

// Panic is part of [stream.Wire]: a client is told of a defect, and no more.
func (s *eventStream) Panic(ctx context.Context, v any) {
	if s.of.Logger != nil {
		s.of.Logger.Error("panic in a stream", zap.Any("panic", v), zap.Stack("stack"))
	}
	s.End(ctx, s.of.Executor.Present(ctx, internalError()))
}

// Close is part of [stream.Wire].
func (s *eventStream) Close() {
	s.out.Finish()
	s.work.Done()
}

// write sends what is queued until the last of it has been sent or ctx ends.
func (s *eventStream) write(ctx context.Context) {
	// Clients of a gateway that shuts down reconnect, but not all at the same moment.
	// This is sent at once, and the head of the answer with it.
	s.buf = append(s.buf, "retry: "+strconv.Itoa(1000+rand.IntN(2000))+"\n\n"...)
	if s.flush() != nil {
		return
	}
	beat := time.NewTicker(s.heartbeat)
	defer beat.Stop()
	for {
		select {
		case <-s.ready:
			if !s.empty(ctx) {
				return
			}
		case <-beat.C:
			s.buf = append(s.buf[:0], ":\n\n"...)
			if s.flush() != nil {
				return
			}
		case <-s.ending:
			s.out.Finish()
			s.empty(ctx)
			return
		case <-ctx.Done():
			return
		}
	}
}

// empty sends everything that is queued; events that arrived close together leave
// in one write. It returns false once the stream has ended.
func (s *eventStream) empty(ctx context.Context) bool {
	for {
		if wait := s.gather - time.Since(s.wrote); wait > 0 {
			pause := time.NewTimer(wait)
			select {
			case <-pause.C:
			case <-ctx.Done():
				pause.Stop()
				return false
			}
		}
		frames, ended := s.out.Take(s.frames[:0], maxBatch)
		if len(frames) == 0 {
			return !ended
		}
		s.buf = s.buf[:0]
		for i := range frames {
			s.buf = append(append(append(s.buf, frames[i].Head...), frames[i].Payload...), frames[i].Tail...)
		}
		clear(frames)
		if s.frames = frames; cap(s.frames) > 4 {
			s.frames = nil // an idle stream keeps no room for a burst
		}
		if s.flush() != nil {
			return false
		}
		s.wrote = time.Now()
	}
}

// flush sends the buffer in parts, each with a deadline of its own.
func (s *eventStream) flush() error {
	for data := s.buf; len(data) > 0; {
		n := min(len(data), maxWrite)
		_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout)) // not every writer supports deadlines
		if s.aborted.Load() {
			return os.ErrDeadlineExceeded
		}
		if _, err := s.w.Write(data[:n]); err != nil {
			return err
		}
		if err := s.control.Flush(); err != nil {
			return err
		}
		data = data[n:]
	}
	_ = s.control.SetWriteDeadline(time.Time{}) // not every writer can move one that has passed
	if cap(s.buf) > 4<<10 {
		s.buf = nil
	}
	return nil
}

// event is an event in the text format of the HTML standard, 9.2.6. The event
// complete has an empty data line: without one, EventSource would not report it.
func event(name, id string, payload []byte) stream.Frame {
	head := "event: " + name + "\n"
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		head += "id: " + id + "\n"
	}
	if bytes.ContainsAny(payload, "\r\n") { // they stand between tokens of JSON, where a space means the same
		payload = bytes.Map(func(r rune) rune {
			if r == '\r' || r == '\n' {
				return ' '
			}
			return r
		}, payload)
	}
	head += "data:"
	if len(payload) > 0 {
		head += " "
	}
	return stream.Frame{Head: []byte(head), Payload: payload, Tail: "\n\n"}
}
