package transport

import (
	"bytes"
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/99designs/gqlgen/graphql"
)

// events is one stream. The goroutine of the request writes.
type events struct {
	w                          http.ResponseWriter
	control                    *http.ResponseController
	ending                     <-chan struct{} // closed: the gateway stops
	heartbeat, timeout, gather time.Duration
	out                        outbox
	ready                      chan struct{} // holds a token when there is something to write
	wrote                      time.Time
	frames                     []frame
	buf                        []byte
	aborted                    atomic.Bool
}

// abort ends the connection.
func (s *events) abort() {
	s.aborted.Store(true)
	_ = s.control.SetWriteDeadline(time.Now()) // else it ends with the next part
}

func (s *events) wake(bool) {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// pumping is the subscription of a stream of events.
type pumping struct {
	*events
	of     *Events
	ctx    context.Context
	stream *Stream
	// begun is the stream, for who wakes it.
	begun atomic.Pointer[Stream]
	work  *sync.WaitGroup // ends with the subscription, also if that rests
	seen  string          // the cursor of the last event that its goroutine has sent
}

var _ listener = (*pumping)(nil)

// begin begins the subscription.
func (p *pumping) begin(op *Operation, after string) {
	p.run(func() {
		p.stream = op.Stream(p.ctx, after, p)
		p.begun.Store(p.stream)
	})
}

// run queues the events of a subscription until it ends, or rests.
func (p *pumping) run(first func()) {
	rests := false
	defer func() {
		if v := recover(); v != nil {
			p.of.panicked(v)
			_ = p.out.put(p.ctx, nil, event("next", "", p.of.Executor.Refuse(p.ctx, internalError()...)), event("complete", "", nil))
		}
		if !rests {
			if p.stream != nil {
				p.stream.Close()
			}
			p.out.finish()
			p.work.Done()
		}
	}()
	first()
	rests = p.pump()
}

func (p *pumping) pump() (rests bool) {
	for {
		e, what := p.stream.Next()
		if what == Rests {
			return true
		}
		if what == Over {
			break
		}
		next := event("next", e.Cursor, e.Payload)
		next.event = true
		err := p.out.put(p.ctx, nil, next)
		if errors.Is(err, errMemory) {
			p.stream.Refuse(p.seen)
			break
		}
		if err != nil {
			return false
		}
		p.seen = e.Cursor
	}
	last := []frame{event("complete", "", nil)}
	if errs := p.stream.Errors(); len(errs) > 0 {
		last = append([]frame{event("next", "", encode(&graphql.Response{Errors: errs}))}, last...)
	}
	if p.ctx.Err() == nil {
		_ = p.out.put(p.ctx, nil, last...)
	}
	return false
}

// deliver is that of a [listener].
func (p *pumping) deliver(events []*shared) int {
	n := p.out.deliver(events, (*shared).asEvent)
	if n > 0 {
		p.seen = events[n-1].cursor
	}
	return n
}

// resume is that of a [listener].
func (p *pumping) resume() { go p.run(func() {}) }

// asEvent is a shared event in the text format, made once.
func (e *shared) asEvent() frame {
	if f := e.sent.Load(); f != nil {
		return *f
	}
	f := event("next", e.cursor, e.payload)
	f.event = true
	e.sent.Store(&f)
	return f
}

// write sends what is queued until the last of it has been sent or ctx ends.
func (s *events) write(ctx context.Context) {
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
			s.out.finish()
			s.empty(ctx)
			return
		case <-ctx.Done():
			return
		}
	}
}

// empty sends everything that is queued; events that arrived close together leave
// in one write. It returns false once the stream has ended.
func (s *events) empty(ctx context.Context) bool {
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
		frames, ended := s.out.take(s.frames[:0], maxBatch)
		if len(frames) == 0 {
			return !ended
		}
		s.buf = s.buf[:0]
		for i := range frames {
			s.buf = append(append(append(s.buf, frames[i].head...), frames[i].payload...), frames[i].tail...)
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
func (s *events) flush() error {
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
func event(name, id string, payload []byte) frame {
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
	return frame{head: []byte(head), payload: payload, tail: "\n\n"}
}
