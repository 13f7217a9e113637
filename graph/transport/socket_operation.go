package transport

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/vektah/gqlparser/v2/ast"
	"github.com/vektah/gqlparser/v2/gqlerror"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// operation is one that runs on a connection.
type operation struct {
	source
	id     string
	kind   ast.Operation
	done   func() // gives back what its request takes of the budget
	cancel context.CancelFunc
	socket *socket
	// stream is that of a subscription; the socket's lock guards it.
	stream *Stream
	// event is the frame of its events, but for the payload.
	event frame
	// seen is the cursor of the last event that its goroutine has sent.
	seen string
}

var _ listener = (*operation)(nil)

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
		s.say(ctx, frame{kind: opText, head: []byte(`{"type":"pong"`), payload: member("payload", m.payload), tail: "}"})
	case verbTerminate:
		return ctx, &closing{code: codeNormal}
	}
	return ctx, nil
}

// say queues a message that belongs to no operation, and waits for room: a client
// that does not read gets no answers.
func (s *socket) say(ctx context.Context, f frame) {
	_ = s.out.put(ctx, nil, f) // the connection ends
}

func member(name string, value json.RawMessage) []byte {
	if len(value) == 0 {
		return nil
	}
	return append([]byte(`,"`+name+`":`), value...)
}

func (s *socket) initialise(ctx context.Context, m message) (context.Context, *closing) {
	if s.isReady() {
		return ctx, &closing{code: codeTooManyInits, reason: "Too many initialisation requests"}
	}
	admitted, err := s.parent.cfg.Init(ctx, m.payload)
	if err != nil {
		s.parent.cfg.Logger.Debug("a socket was refused", zap.Error(err))
		return ctx, &closing{code: codeForbidden, reason: "Forbidden"}
	}
	s.mu.Lock()
	s.ready = true
	s.mu.Unlock()
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
	if !s.isReady() {
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
	ctx, cancel := context.WithCancel(ctx)
	op := &operation{id: m.id, kind: prepared.Kind(), done: done, cancel: cancel, socket: s}
	s.mu.Lock()
	s.operations[m.id] = op
	s.running++
	if op.kind != ast.Subscription {
		s.answers++
	}
	s.mu.Unlock()
	s.parent.cfg.Started(1)
	s.work.Add(1)
	go s.run(ctx, op, prepared)
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
		s.out.forget(&op.source) // before it can say that it has ended
		op.cancel()
		s.wakeUp(op)
	}
}

// wakeUp lets an operation that rests see that it has been cancelled.
func (s *socket) wakeUp(ops ...*operation) {
	for _, op := range ops {
		s.mu.Lock()
		stream := op.stream
		s.mu.Unlock()
		if stream != nil {
			stream.Wake()
		}
	}
}

// run executes an operation to its end.
func (s *socket) run(ctx context.Context, op *operation, prepared *Operation) {
	rests := false
	defer func() {
		if p := recover(); p != nil {
			s.panicked(ctx, op, p)
		}
		s.rested(op, rests)
	}()
	if op.kind == ast.Subscription {
		op.event = s.message(op, op.id, s.next(), nil)
		op.event.soon, op.event.event = true, true
		stream := prepared.Stream(ctx, "", op)
		s.mu.Lock()
		op.stream = stream
		s.mu.Unlock()
		rests = s.listen(op)
		return
	}
	payload, release := prepared.answer(ctx, s.abort)
	next := s.message(op, op.id, s.next(), payload)
	next.release = release
	s.finish(ctx, op, next, s.message(op, op.id, "complete", nil))
}

func (s *socket) panicked(ctx context.Context, op *operation, p any) {
	s.parent.cfg.Logger.Error("panic in an operation", zap.Any("panic", p), zap.Stack("stack"))
	s.finish(ctx, op, s.message(op, op.id, "error", encodeErrors(s.protocol(), s.parent.cfg.Executor.Present(ctx, internalError()))))
}

// rested notes that the goroutine of an operation has ended, and the operation too if it
// does not rest.
func (s *socket) rested(op *operation, rests bool) {
	if rests {
		return // the connection waits for it all the same
	}
	if op.stream != nil {
		op.stream.Close()
	}
	s.ended(op)
	s.work.Done()
}

// listen sends the events of a subscription until it ends, or rests.
func (s *socket) listen(op *operation) (rests bool) {
	ctx := op.stream.ctx
	for {
		e, what := op.stream.Next()
		if what == Rests {
			return true
		}
		if what == Over {
			break
		}
		event := op.event
		event.payload = e.Payload
		err := s.out.put(ctx, nil, event)
		if errors.Is(err, errMemory) {
			op.stream.Refuse(op.seen)
			break
		}
		if err != nil {
			return false
		}
		op.seen = e.Cursor
	}
	if errs := op.stream.Errors(); len(errs) > 0 {
		s.finish(ctx, op, s.message(op, op.id, "error", encodeErrors(s.protocol(), errs)))
		return false
	}
	s.finish(ctx, op, s.message(op, op.id, "complete", nil))
	return false
}

// deliver is that of a [listener].
func (op *operation) deliver(events []*shared) int {
	n := op.socket.out.deliver(events, func(e *shared) frame {
		event := op.event
		event.payload = e.payload
		return event
	})
	if n > 0 {
		op.seen = events[n-1].cursor
	}
	return n
}

// resume is that of a [listener].
func (op *operation) resume() {
	go func() {
		rests := false
		defer func() {
			if p := recover(); p != nil {
				op.socket.panicked(op.stream.ctx, op, p)
			}
			op.socket.rested(op, rests)
		}()
		rests = op.socket.listen(op)
	}()
}

// finish queues the last messages of an operation. Its id is free before the client
// can read them.
func (s *socket) finish(ctx context.Context, op *operation, last ...frame) {
	_ = s.out.put(ctx, func() { s.free(op) }, last...) // it was cancelled, or the connection ends
}

func (s *socket) free(op *operation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.operations[op.id] == op {
		delete(s.operations, op.id)
	}
}

// ended notes that an operation has ended completely.
func (s *socket) ended(op *operation) {
	op.cancel()
	s.free(op)
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
}

// next is the type of the message that carries a result.
func (s *socket) next() string {
	if s.protocol() == protocolLegacy {
		return "data"
	}
	return "next"
}

// message is one that belongs to an operation. Its payload is not copied.
func (s *socket) message(op *operation, id, kind string, payload []byte) frame {
	name, err := json.Marshal(id)
	if err != nil {
		name = []byte(`""`)
	}
	f := frame{kind: opText, tail: "}"}
	if op != nil {
		f.from = &op.source
	}
	f.head = append(append([]byte(`{"id":`), name...), `,"type":"`+kind+`"`...)
	if kind != "complete" {
		f.head, f.payload = append(f.head, `,"payload":`...), payload
	}
	return f
}
