package transport

import (
	"bytes"
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/stream"
)

// lastEventID is a URL parameter in place of the header Last-Event-ID, for clients that cannot set headers.
const lastEventID = "lastEventId"

// stream answers a request with server-sent events, in the distinct connections mode of GraphQL over SSE. Each result
// is an event next, and the end is an event complete. The id of an event is its cursor, so that an EventSource of a
// browser resumes by itself after a lost connection. The page must close the EventSource when it gets complete;
// otherwise it reconnects. stream returns when the operation has ended.
func (t *Transport) stream(w http.ResponseWriter, r *http.Request, op *Operation) {
	s := t.openStream(w, r)
	if s == nil {
		return
	}
	defer s.close()
	ctx, stop := context.WithCancel(connected(r.Context(), t.cfg.Work))
	defer stop()
	s.work.Add(1)
	if op.isSubscription() {
		after := r.Header.Get("Last-Event-ID")
		if after == "" {
			after = r.URL.Query().Get(lastEventID)
		}
		subscription := op.subscribe(ctx, after, &s.out, s)
		stop = subscription.Stop
		go subscription.Run()
	} else {
		s.ending = nil // a query or mutation ends at its deadline
		go op.answer(ctx, s, s.to.abort, func(next stream.Frame) { _ = s.out.Put(ctx, nil, next, complete()) })
	}
	s.write(ctx)
	stop()
	s.out.Discard()
	s.work.Wait()
}

// refuseStream sends errors as events. It is for clients that accept only server-sent events and ignore the bodies of
// other answers.
func (t *Transport) refuseStream(w http.ResponseWriter, r *http.Request, errs ...*gqlerror.Error) {
	s := t.openStream(w, r)
	if s == nil {
		return
	}
	defer s.close()
	_ = s.out.Put(
		r.Context(), nil, event("next", "", t.cfg.Executor(r.Context()).Refuse(r.Context(), errs...)), complete(),
	)
	s.out.Finish()
	s.write(r.Context())
	s.out.Discard()
}

// eventStream is the answer to one request. It is written only by the goroutine of the request.
type eventStream struct {
	transport *Transport
	to        *pacedWriter
	ending    <-chan struct{} // closed when the gateway drains
	out       stream.Queue
	ready     chan struct{} // holds a token when there is something to write
	wrote     time.Time
	frames    []stream.Frame
	buf       []byte
	work      sync.WaitGroup // ends with the operation
}

var _ stream.Wire = (*eventStream)(nil)

// openStream sends the head of the answer. If the stream is not admitted, it answers with an error and returns nil.
func (t *Transport) openStream(w http.ResponseWriter, r *http.Request) *eventStream {
	if !t.streams.admit() {
		t.streams.refuse(w, r, t.cfg.Executor(r.Context()), "event streams")
		return nil
	}
	s := &eventStream{transport: t, to: t.paced(w), ending: t.draining.Done(), ready: make(chan struct{}, 1)}
	s.out = stream.Queue{Messages: t.cfg.Queue, Bytes: t.cfg.QueueBytes, Memory: t.cfg.Memory.Events(), Wake: s.wake}
	h := w.Header()
	h.Set("Content-Type", typeEvents+"; charset=utf-8")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx
	w.WriteHeader(http.StatusOK)
	_ = s.to.control.SetReadDeadline(time.Time{}) // the server's own is for requests that end
	return s
}

// close releases the admission of the stream, and sets the deadline for what net/http writes after the handler has
// returned.
func (s *eventStream) close() {
	_ = s.to.control.SetWriteDeadline(time.Now().Add(s.to.timeout))
	s.transport.streams.release()
}

func (s *eventStream) wake(bool) {
	select {
	case s.ready <- struct{}{}:
	default:
	}
}

// Frame implements [stream.Wire].
func (s *eventStream) Frame(payload []byte, cursor string) stream.Frame {
	return event("next", cursor, payload)
}

// End implements [stream.Wire].
func (s *eventStream) End(ctx context.Context, errs gqlerror.List) {
	last := []stream.Frame{complete()}
	if len(errs) > 0 {
		last = append([]stream.Frame{event("next", "", stream.Encode(&graphql.Response{Errors: errs}))}, last...)
	}
	_ = s.out.Put(ctx, nil, last...) // the client may have gone
}

// Close implements [stream.Wire].
func (s *eventStream) Close() {
	s.out.Finish()
	s.work.Done()
}

// write sends queued frames until the last one was sent or ctx ends.
func (s *eventStream) write(ctx context.Context) {
	// A random delay keeps the clients of a gateway that shuts down from reconnecting all at the same time. The flush
	// also sends the head of the answer.
	s.buf = append(s.buf, "retry: "+strconv.Itoa(1000+rand.IntN(2000))+"\n\n"...)
	if s.flush() != nil {
		return
	}
	lifetime, end := access.CallerFrom(ctx).Identity.Lifetime(ctx)
	defer end()
	// The end of the lifetime is handled here and not in the loop, because a loop that always finds frames to send
	// would not notice it.
	defer context.AfterFunc(lifetime, func() {
		if ctx.Err() == nil {
			refused := s.transport.cfg.Executor(ctx).Refuse(ctx, asGraphQL(context.Cause(lifetime)))
			s.out.Finish(event("next", "", refused), complete())
		}
	})()
	beat := time.NewTicker(heartbeat)
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
		case <-ctx.Done():
			return
		case <-s.ending:
			s.out.Finish()
			s.empty(ctx)
			return
		}
	}
}

// empty sends all queued frames. Events that arrive in quick succession are written together. It returns false when the
// stream has ended.
func (s *eventStream) empty(ctx context.Context) bool {
	for {
		if pause := s.transport.cfg.Gather - time.Since(s.wrote); pause > 0 {
			select {
			case <-time.After(pause):
			case <-ctx.Done():
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
		s.frames = frames
		if cap(s.frames) > 4 {
			s.frames = nil // an idle stream keeps no memory for a burst
		}
		if s.flush() != nil {
			return false
		}
		s.wrote = time.Now()
	}
}

// flush sends the buffer.
func (s *eventStream) flush() error {
	if _, err := s.to.Write(s.buf); err != nil {
		return err
	}
	if err := s.to.control.Flush(); err != nil {
		return err
	}
	_ = s.to.control.SetWriteDeadline(time.Time{}) // some writers cannot extend a deadline that has passed
	if cap(s.buf) > 4<<10 {
		s.buf = nil
	}
	return nil
}

func complete() stream.Frame { return event("complete", "", nil) }

// event formats an event as in section 9.2.6 of the HTML standard. The event complete has an empty data line, because
// an EventSource ignores events without data.
func event(name, id string, payload []byte) stream.Frame {
	head := "event: " + name + "\n"
	if id != "" && !strings.ContainsAny(id, "\r\n\x00") {
		head += "id: " + id + "\n"
	}
	if bytes.ContainsAny(payload, "\r\n") { // they stand between tokens of JSON, where a space means the same
		payload = bytes.ReplaceAll(bytes.ReplaceAll(payload, []byte("\r"), []byte(" ")), []byte("\n"), []byte(" "))
	}
	head += "data:"
	if len(payload) > 0 {
		head += " "
	}
	return stream.Frame{Head: []byte(head), Payload: payload, Tail: "\n\n"}
}
