package transport

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/stream"
)

// socketOperation is an operation on a connection.
type socketOperation struct {
	id     string
	answer bool   // of a query or a mutation
	done   func() // gives back the memory of the request
	leave  func() // gives back the caller's [Use]
	stop   func()
	socket *socket
	next   stream.Frame // the message with a result, without its payload
}

var _ stream.Wire = (*socketOperation)(nil)

// handle handles a message. It returns the context for the next message, or, if the message is not allowed, how to
// close the connection.
func (s *socket) handle(ctx context.Context, m message) (context.Context, *closing) {
	switch m.verb {
	case verbInit:
		return s.initialise(ctx, m)
	case verbStart:
		return ctx, s.start(ctx, m)
	case verbStop:
		s.stop(m.id)
	case verbPing:
		pong := stream.Frame{Kind: websocket.TextMessage, Head: []byte(`{"type":"pong"`), Payload: m.payload, Tail: "}"}
		if len(m.payload) > 0 {
			pong.Head = append(pong.Head, `,"payload":`...)
		}
		s.say(ctx, pong)
	case verbTerminate:
		return ctx, &closing{code: websocket.CloseNormalClosure}
	}
	return ctx, nil
}

// say puts a message that belongs to no operation into the queue. It waits for room, so that no more is read from a
// client that does not read its answers.
func (s *socket) say(ctx context.Context, f stream.Frame) {
	_ = s.out.Put(ctx, nil, f) // fails only when the connection ends
}

func (s *socket) initialise(ctx context.Context, m message) (context.Context, *closing) {
	if s.ready.Load() {
		return ctx, &closing{code: codeTooManyInits, reason: "Too many initialisation requests"}
	}
	admitted, err := s.sockets.cfg.Init(ctx, m.payload)
	if err != nil {
		s.sockets.cfg.Logger.Debug("a socket was refused", zap.Error(err))
		return ctx, closingFor(err)
	}
	if err := access.CallerFrom(admitted).Identity.Err(); err != nil {
		return ctx, closingFor(err)
	}
	done, refused := s.sockets.cfg.admit(admitted, UseSocket)
	if refused != nil {
		return ctx, closingFor(refused)
	}
	context.AfterFunc(ctx, done)
	s.watchCredential(admitted)
	s.ready.Store(true)
	s.sockets.initialised(s)
	s.conn.SetReadLimit(s.sockets.cfg.Message)
	s.alive()
	s.say(ctx, textFrame(ackMessage(s.sockets.cfg.Ack(admitted))))
	if s.protocol() == protocolLegacy {
		s.say(ctx, textFrame(`{"type":"ka"}`))
	}
	return admitted, nil
}

// ackMessage returns the message connection_ack. payload may be nil.
func ackMessage(payload json.RawMessage) string {
	if payload == nil {
		return `{"type":"connection_ack"}`
	}
	return `{"type":"connection_ack","payload":` + string(payload) + `}`
}

// start prepares and launches an operation. The document is validated in the goroutine that reads, so that a connection
// can use at most one processor for that.
func (s *socket) start(ctx context.Context, m message) *closing {
	if !s.ready.Load() {
		return &closing{code: codeUnauthorized, reason: "Unauthorized"}
	}
	cfg := &s.sockets.cfg
	s.mu.Lock()
	_, duplicate := s.operations[m.id]
	// Stopped operations that have not ended yet count too: there may be as many as running ones.
	full := len(s.operations) >= cfg.Operations || s.running >= 2*cfg.Operations
	draining := s.draining
	s.mu.Unlock()
	switch {
	case duplicate:
		return &closing{code: codeDuplicateID, reason: "Subscriber for " + m.id + " already exists"}
	case draining:
		return nil // the connection ends soon, and the client asks elsewhere
	case full:
		s.refuse(ctx, m.id, exceeded("limit-operations", int64(cfg.Operations), fmt.Sprintf("the connection has the %d operations that may run on it (limit-operations)", cfg.Operations)))
		return nil
	}
	admitted, refused := cfg.admit(ctx, UseRequest)
	if refused != nil {
		s.refuse(ctx, m.id, refused)
		return nil
	}
	launched := false
	defer func() {
		if !launched { // refused, or it panics
			admitted()
		}
	}()
	limited, cancel := context.WithTimeout(ctx, cfg.Time)
	prepared, errs := cfg.Executor(ctx).Prepare(limited, m.request)
	cancel()
	if len(errs) == 0 && prepared.isSubscription() {
		admitted()
		admitted, refused = cfg.admit(ctx, UseSubscription)
		if refused != nil {
			errs = gqlerror.List{refused}
		}
	}
	if len(errs) > 0 {
		s.refuse(ctx, m.id, errs...)
		return nil
	}
	taken := s.taken
	s.taken = 0
	done := func() { cfg.Memory.Requests().Give(taken) }
	if prepared.isSubscription() {
		kept, ok := keep(cfg.Memory, taken)
		if !ok {
			s.refuse(ctx, m.id, overBudget(cfg.Memory))
			return nil
		}
		done = kept
	}
	launched = true
	s.launch(
		ctx, prepared,
		&socketOperation{id: m.id, answer: !prepared.isSubscription(), done: done, leave: admitted, socket: s},
	)
	return nil
}

// launch starts a prepared operation.
func (s *socket) launch(ctx context.Context, prepared *Operation, op *socketOperation) {
	next := "next"
	if s.protocol() == protocolLegacy {
		next = "data"
	}
	op.next = s.message(op, op.id, next, nil)
	var run func()
	if op.answer {
		ctx, cancel := context.WithCancel(ctx)
		op.stop, run = cancel, func() {
			prepared.answer(
				ctx, op, s.abort,
				func(next stream.Frame) { op.finish(ctx, next, s.message(op, op.id, "complete", nil)) },
			)
		}
	} else {
		subscription := prepared.subscribe(ctx, "", &s.out, op)
		op.stop, run = subscription.Stop, subscription.Run
	}
	s.mu.Lock()
	s.operations[op.id] = op
	s.running++
	if op.answer {
		s.answers++
	}
	s.mu.Unlock()
	s.sockets.cfg.Started(1)
	s.work.Add(1)
	go run()
}

func (s *socket) refuse(ctx context.Context, id string, errs ...*gqlerror.Error) {
	presented := s.sockets.cfg.Executor(ctx).Present(ctx, errs)
	s.say(ctx, s.message(nil, id, "error", encodeErrors(s.protocol(), presented)))
}

// stop stops an operation at the request of the client. No more messages about it are sent, and its id can be used
// again at once.
func (s *socket) stop(id string) {
	s.mu.Lock()
	op := s.operations[id]
	delete(s.operations, id)
	s.mu.Unlock()
	if op != nil {
		op.stop()
		s.out.Forget(op)
	}
}

// Frame implements [stream.Wire].
func (op *socketOperation) Frame(payload []byte, _ string) stream.Frame {
	f := op.next
	f.Payload = payload
	return f
}

// End implements [stream.Wire].
func (op *socketOperation) End(ctx context.Context, errs gqlerror.List) {
	if len(errs) > 0 {
		op.finish(ctx, op.socket.message(op, op.id, "error", encodeErrors(op.socket.protocol(), errs)))
		return
	}
	op.finish(ctx, op.socket.message(op, op.id, "complete", nil))
}

// finish puts the last messages of an operation into the queue. Before the client can read them, the id is free and the
// use of the caller has ended, so that the client can begin another operation when it has read them.
func (op *socketOperation) finish(ctx context.Context, last ...stream.Frame) {
	_ = op.socket.out.Put(ctx, op.free, last...) // fails if the operation was cancelled or the connection ends
}

func (op *socketOperation) free() {
	op.leave()
	s := op.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operations[op.id] == op {
		delete(s.operations, op.id)
	}
}

// Close implements [stream.Wire].
func (op *socketOperation) Close() {
	s := op.socket
	op.stop()
	op.free()
	op.done()
	s.mu.Lock()
	s.running--
	if op.answer {
		s.answers--
	}
	stop := s.draining && s.answers == 0
	s.mu.Unlock()
	s.sockets.cfg.Started(-1)
	if stop {
		s.drain()
	}
	s.work.Done()
}

// message returns a message about an operation. The payload is not copied.
func (s *socket) message(op *socketOperation, id, kind string, payload []byte) stream.Frame {
	name, _ := json.Marshal(id) // a string
	f := stream.Frame{Kind: websocket.TextMessage, Tail: "}", From: op}
	f.Head = append(append([]byte(`{"id":`), name...), `,"type":"`+kind+`"`...)
	if kind != "complete" {
		f.Head, f.Payload = append(f.Head, `,"payload":`...), payload
	}
	return f
}

// encodeErrors returns the payload of the message that ends an operation with errors.
func encodeErrors(protocol string, errs gqlerror.List) []byte {
	var v any = errs
	if protocol == protocolLegacy {
		// In the older protocol the payload is a single error. Its clients find all errors in the additional member
		// errors.
		v = map[string]any{"message": errs[0].Message, "errors": errs}
	}
	data, err := json.Marshal(v)
	if err != nil { // an extension that is no JSON
		return []byte(`[{"message":"internal error"}]`)
	}
	return data
}
