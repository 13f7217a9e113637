package transport

import (
	"cmp"
	"context"
	"net/http"
	"time"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/stream"
)

// Events serves operations as server-sent events, in the distinct connections
// mode of GraphQL over SSE: results are events named next, the end is one named
// complete. The id of an event is its cursor, so a browser's EventSource continues
// by itself after a lost connection. A page must close it at complete, or it
// reconnects.
//
// Zero means the default everywhere.
type Events struct {
	// Executor runs the operations. Required.
	Executor API
	// Logger receives what no client is told. Default: none.
	Logger *zap.Logger
	// Heartbeat is how often a comment is sent when there is nothing else. Default 12 s.
	Heartbeat time.Duration
	// WriteTimeout is how long a client may take to accept 128 KiB. Default [DefaultWriteTimeout].
	WriteTimeout time.Duration
	// Streams is the most that are open at once; more are refused with 503. Default [DefaultStreams].
	Streams int
	// Queue is the most events that wait for one client. Default [DefaultQueue].
	Queue int
	// QueueBytes is the most bytes of them; one event may always wait. Default [DefaultQueueBytes].
	QueueBytes int
	// Gather is how soon after a write the next event may be written: what comes
	// in between leaves together. Default 1 ms; less than zero means at once.
	Gather time.Duration
	// Memory is what all that is in flight holds. Default: unbounded.
	Memory *budget.Memory
	// Work is the allowance of all events of subscriptions. Default: unbounded.
	Work *budget.Allowance
	// Opened is told when the number of streams changes. Default: nobody is.
	Opened func(delta int)

	open admission
}

// lastEventID is the URL parameter by which clients resume that cannot set the header.
const lastEventID = "lastEventId"

// Serve answers with the results of an operation. It returns when that has
// ended and nothing of it runs any more.
func (e *Events) Serve(w http.ResponseWriter, r *http.Request, op *Operation) {
	s := e.begin(w, r)
	if s == nil {
		return
	}
	defer e.end(s)
	if op.Kind() != ast.Subscription {
		s.ending = nil // it ends by itself, in time
	}
	ctx, stop := context.WithCancel(connected(r.Context(), e.Work))
	s.work.Add(1)
	if op.Kind() == ast.Subscription {
		subscription := op.Subscribe(ctx, resumeFrom(r), &s.out, s)
		defer stop()
		stop = subscription.Stop
		go subscription.Run()
	} else {
		go op.answer(ctx, s, s.abort, func(next stream.Frame) { _ = s.out.Put(ctx, nil, next, event("complete", "", nil)) })
	}
	s.write(ctx)
	stop()
	s.out.Discard()
	s.work.Wait()
}

// internalError is all that a client is told of a defect.
func internalError() gqlerror.List {
	return gqlerror.List{{Message: "internal error", Extensions: map[string]any{"code": string(failure.CodeInternal)}}}
}

// Refuse answers a client that accepts nothing but server-sent events, and that
// would not read the body of another status.
func (e *Events) Refuse(w http.ResponseWriter, r *http.Request, errs ...*gqlerror.Error) {
	s := e.begin(w, r)
	if s == nil {
		return
	}
	defer e.end(s)
	_ = s.out.Put(r.Context(), nil, event("next", "", e.Executor.Refuse(r.Context(), errs...)), event("complete", "", nil))
	s.out.Finish()
	s.write(r.Context())
}

// resumeFrom is the cursor that the client has seen last.
func resumeFrom(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get(lastEventID)
}

// Drain accepts no more streams and ends all that are open, so that their clients
// resume elsewhere. It returns when all have ended or ctx ends.
func (e *Events) Drain(ctx context.Context) {
	select {
	case <-e.open.drain():
	case <-ctx.Done():
	}
}

// begin sends the head of the answer. It returns nil if the stream is refused.
func (e *Events) begin(w http.ResponseWriter, r *http.Request) *eventStream {
	most := cmp.Or(e.Streams, DefaultStreams)
	ending, ok := e.open.admit(most, e.Opened)
	if !ok {
		w.Header().Set("Retry-After", "1")
		writeRefusal(w, http.StatusServiceUnavailable, e.Executor.Refuse(r.Context(), notAdmitted("event streams", most)))
		return nil
	}
	s := &eventStream{
		of: e, w: w, control: http.NewResponseController(w), ending: ending, ready: make(chan struct{}, 1),
		heartbeat: cmp.Or(e.Heartbeat, 12*time.Second), timeout: cmp.Or(e.WriteTimeout, DefaultWriteTimeout), gather: cmp.Or(e.Gather, defaultGather),
	}
	s.out = stream.Queue{Messages: cmp.Or(e.Queue, DefaultQueue), Bytes: cmp.Or(e.QueueBytes, DefaultQueueBytes), Memory: e.Memory.Events(), Wake: s.wake}
	h := w.Header()
	h.Set("Content-Type", typeEvents+"; charset=utf-8")
	h.Set("Cache-Control", "no-store, no-transform")
	h.Set("X-Accel-Buffering", "no") // nginx
	w.WriteHeader(http.StatusOK)
	_ = s.control.SetReadDeadline(time.Time{}) // the server's own is for requests that end
	return s
}

// end sets a deadline for what the server writes after the handler returns.
func (e *Events) end(s *eventStream) {
	_ = s.control.SetWriteDeadline(time.Now().Add(s.timeout))
	e.open.release(e.Opened)
}
