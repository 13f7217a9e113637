package transport

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/stream"
)

// socketOperation is an operation that runs on a connection.
type socketOperation struct {
	id     string
	kind   ast.Operation
	done   func() // gives back what its request takes of the budget
	stop   func()
	socket *socket
	next   stream.Frame // of a result, but for the payload
}

var _ stream.Wire = (*socketOperation)(nil)

// handle does what a message asks for. It returns the context of what comes
// next, and how the connection ends if the message is not allowed.
func (s *socket) handle(ctx context.Context, m message) (context.Context, *closing) {
	switch m.verb {
	case verbInit:
		return s.initialise(ctx, m)
	case verbStart:
		return ctx, s.start(ctx, m)
	case verbStop:
		s.stop(m.id)
	case verbPing:
		s.say(ctx, stream.Frame{Kind: opText, Head: []byte(`{"type":"pong"`), Payload: member("payload", m.payload), Tail: "}"})
	case verbTerminate:
		return ctx, &closing{code: codeNormal}
	}
	return ctx, nil
}

// say queues a message that belongs to no operation, and waits for room: a client
// that does not read gets no answers.
func (s *socket) say(ctx context.Context, f stream.Frame) {
	_ = s.out.Put(ctx, nil, f) // the connection ends
}

func member(name string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return nil
	}
	return append([]byte(`,"`+name+`":`), value...)
}

func (s *socket) initialise(ctx context.Context, m message) (context.Context, *closing) {
	if s.ready.Load() {
		return ctx, &closing{code: codeTooManyInits, reason: "Too many initialisation requests"}
	}
	admitted, err := s.parent.cfg.Init(ctx, m.payload)
	if err != nil {
		s.parent.cfg.Logger.Debug("a socket was refused", zap.Error(err))
		return ctx, &closing{code: codeForbidden, reason: "Forbidden"}
	}
	s.ready.Store(true)
	s.parent.initialised(s)
	s.conn.SetReadLimit(s.parent.cfg.Message)
	s.alive()
	s.say(ctx, textFrame(`{"type":"connection_ack"}`))
	if s.protocol() == protocolLegacy {
		s.say(ctx, textFrame(`{"type":"ka"}`))
	}
	return admitted, nil
}

// start begins an operation. It checks the document in the goroutine that reads,
// so no connection can occupy more than one core with validation.
func (s *socket) start(ctx context.Context, m message) *closing {
	if !s.ready.Load() {
		return &closing{code: codeUnauthorized, reason: "Unauthorized"}
	}
	s.mu.Lock()
	_, duplicate := s.operations[m.id]
	// Cancelled operations that have not ended yet count too, up to as many again.
	full := len(s.operations) >= s.parent.cfg.Operations || s.running >= 2*s.parent.cfg.Operations
	stops := s.draining
	s.mu.Unlock()
	switch {
	case duplicate:
		return &closing{code: codeDuplicateID, reason: "Subscriber for " + m.id + " already exists"}
	case stops:
		return nil // the connection ends soon, and the client asks elsewhere
	case full:
		limit := s.parent.cfg.Operations
		s.refuse(ctx, m.id, &gqlerror.Error{
			Message:    fmt.Sprintf("the connection has the %d operations that may run on it (limit-operations)", limit),
			Extensions: map[string]any{"code": string(failure.CodeLimitExceeded), "limit": limit, "key": "limit-operations"},
		})
		return nil
	}
	limited, stop := context.WithTimeout(ctx, s.parent.cfg.Time)
	prepared, errs := s.parent.cfg.Executor.Prepare(limited, m.request)
	stop()
	if len(errs) > 0 {
		s.refuse(ctx, m.id, errs...)
		return nil
	}
	taken := s.taken
	s.taken = 0
	done := func() { s.parent.cfg.Memory.Requests().Give(taken) }
	if prepared.Kind() == ast.Subscription {
		var ok bool
		if done, ok = keep(s.parent.cfg.Memory, taken); !ok {
			s.refuse(ctx, m.id, overBudget(s.parent.cfg.Memory))
			return nil
		}
	}
	op := &socketOperation{id: m.id, kind: prepared.Kind(), done: done, socket: s}
	op.next = s.message(op, op.id, s.next(), nil)
	var run func()
	if op.kind == ast.Subscription {
		subscription := prepared.Subscribe(ctx, "", &s.out, op)
		op.stop, run = subscription.Stop, subscription.Run
	} else {
		ctx, cancel := context.WithCancel(ctx)
		op.stop, run = cancel, func() {
			prepared.answer(ctx, op, s.abort, func(next stream.Frame) { op.finish(ctx, next, s.message(op, op.id, "complete", nil)) })
		}
	}
	s.mu.Lock()
	s.operations[m.id] = op
	s.running++
	if op.kind != ast.Subscription {
		s.answers++
	}
	s.mu.Unlock()
	s.parent.cfg.Started(1)
	s.work.Add(1)
	go run()
	return nil
}

func (s *socket) refuse(ctx context.Context, id string, errs ...*gqlerror.Error) {
	presented := s.parent.cfg.Executor.Present(ctx, errs)
	s.say(ctx, s.message(nil, id, "error", encodeErrors(s.protocol(), presented)))
}

// stop ends an operation at the client's request. Its id is free at once, and no
// further message about it is sent.
func (s *socket) stop(id string) {
	s.mu.Lock()
	op := s.operations[id]
	delete(s.operations, id)
	s.mu.Unlock()
	if op != nil {
		op.stop() // it says no more
		s.out.Forget(op)
	}
}

// Frame is part of [stream.Wire].
func (op *socketOperation) Frame(payload []byte, _ string) stream.Frame {
	f := op.next
	f.Payload = payload
	return f
}

// End is part of [stream.Wire].
func (op *socketOperation) End(ctx context.Context, errs gqlerror.List) {
	if len(errs) > 0 {
		op.finish(ctx, op.socket.message(op, op.id, "error", encodeErrors(op.socket.protocol(), errs)))
		return
	}
	op.finish(ctx, op.socket.message(op, op.id, "complete", nil))
}

// Panic is part of [stream.Wire].
func (op *socketOperation) Panic(ctx context.Context, v any) {
	cfg := &op.socket.parent.cfg
	cfg.Logger.Error("panic in an operation", zap.Any("panic", v), zap.Stack("stack"))
	op.End(ctx, cfg.Executor.Present(ctx, internalError()))
}

// finish queues the last messages of an operation. Its id is free before the client
// can read them.
func (op *socketOperation) finish(ctx context.Context, last ...stream.Frame) {
	_ = op.socket.out.Put(ctx, op.free, last...) // it was cancelled, or the connection ends
}

func (op *socketOperation) free() {
	s := op.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operations[op.id] == op {
		delete(s.operations, op.id)
	}
}

// Close is part of [stream.Wire].
func (op *socketOperation) Close() {
	s := op.socket
	op.stop()
	op.free()
	op.done()
	s.mu.Lock()
	s.running--
	if op.kind != ast.Subscription {
		s.answers--
	}
	stop := s.draining && s.answers == 0
	s.mu.Unlock()
	s.parent.cfg.Started(-1)
	if stop {
		s.drain()
	}
	s.work.Done()
}

// next is the type of the message that carries a result.
func (s *socket) next() string {
	if s.protocol() == protocolLegacy {
		return "data"
	}
	return "next"
}

// message is one that belongs to an operation. Its payload is not copied.
func (s *socket) message(op *socketOperation, id, kind string, payload []byte) stream.Frame {
	name, err := json.Marshal(id)
	if err != nil {
		name = []byte(`""`)
	}
	f := stream.Frame{Kind: opText, Tail: "}"}
	if op != nil {
		f.From = op
	}
	f.Head = append(append([]byte(`{"id":`), name...), `,"type":"`+kind+`"`...)
	if kind != "complete" {
		f.Head, f.Payload = append(f.Head, `,"payload":`...), payload
	}
	return f
}
