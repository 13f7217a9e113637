package rpc

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"connectrpc.com/connect"
	"go.opentelemetry.io/otel/trace"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/internal/span"
)

// stream returns the handler of a method that streams changes.
func (h *Handler) stream(k *kind, m *method) http.Handler {
	path := renamed(map[string]string{"after": "cursor"})
	return connect.NewServerStreamHandler(procedureOf(m.descriptor), func(
		ctx context.Context, _ *connect.Request[noMessage], to *connect.ServerStream[answer],
	) error {
		in := incomingOf(ctx)
		call := m.callOf(in)
		ctx, cancel := in.within(ctx)
		defer cancel()
		r := &request{kind: k, method: m.descriptor}
		err := h.receiver.receive(ctx, in, m.most)
		if err == nil {
			err = h.decode(ctx, r, in)
		}
		if err != nil {
			return Error(ctx, h.cfg.Edge.Refused(ctx, call, err))
		}
		w := watch{handler: h, kind: k, call: call, message: m.descriptor.Output(), json: r.json, to: to}
		failed := h.cfg.Edge.Stream(ctx, call, func(ctx context.Context) error { return w.run(ctx, r) })
		if failed == nil {
			return nil
		}
		return errorOf(ctx, failed, path)
	}, m.options())
}

// watch is a stream of the changes of a kind.
type watch struct {
	handler *Handler
	kind    *kind
	call    Call
	message protoreflect.MessageDescriptor
	// json reports whether events are JSON.
	json bool
	to   *connect.ServerStream[answer]
	// pending are the changes that were read but not sent yet.
	pending []change.Change
	// cursor is the cursor after the last event that was sent. Before the first event, it is the cursor of the request;
	// empty if there is none.
	cursor string
}

// run sends changes until ctx ends or the stream fails.
func (w *watch) run(ctx context.Context, r *request) error {
	req := change.Request{
		Kinds:      []string{w.kind.Name},
		FieldNames: failure.APINames,
		Snapshot:   r.message.Get(fieldOf(r.message, "snapshot")).Bool(),
	}
	if cursor := r.text("cursor"); cursor != "" {
		req.After = &cursor
		w.cursor = cursor
	}
	if namespace := r.text("namespace"); namespace != "" {
		req.Namespace = &namespace
	}
	changes, err := w.handler.cfg.Service.Feed.Changes(ctx, req)
	if known, ok := errors.AsType[*failure.Error](err); ok && known.Code == failure.CodeCursorInvalid {
		return &failure.Error{
			Code: failure.CodeCursorInvalid, Path: "after",
			Message: "cursor: not a cursor of a change; take it from the cursor of an event",
		}
	}
	if err != nil {
		return w.ended(ctx, err)
	}
	defer changes.Close()
	// Send the header of the answer, so that the client knows that the stream has begun.
	if err := w.to.Send(nil); err != nil {
		return err
	}
	for {
		if err := w.next(ctx, changes); err != nil {
			return w.ended(ctx, err)
		}
	}
}

// next waits for the next change and sends it.
func (w *watch) next(ctx context.Context, changes *change.Stream) error {
	ctx, done := w.handler.cfg.Edge.Event(ctx)
	defer done()
	// The rights of the caller may have changed while the client received the previous change.
	pending, err := changes.CheckRights(ctx, w.pending)
	if err == nil && len(pending) == 0 {
		pending, err = changes.Next(ctx)
	}
	w.pending = pending
	if err == nil {
		err = ctx.Err() // pending changes come again after the cursor
	}
	if err != nil {
		return err
	}
	c := &w.pending[0]
	w.pending = w.pending[1:]
	budget.From(ctx).Arrive()
	out, err := w.deliver(ctx, c)
	if err != nil {
		return err
	}
	budget.From(ctx).BeginWait() // for the client, until the event is done
	if err := w.to.Send(out); err != nil {
		return err
	}
	w.cursor = c.Cursor
	return nil
}

// deliver returns the message of a change, after charging for it.
func (w *watch) deliver(ctx context.Context, c *change.Change) (*answer, error) {
	ctx, traced := w.trace(ctx, c)
	defer traced.End()
	if c.Stored != nil {
		if err := w.handler.cfg.Edge.Expect(ctx, len(c.Stored.Body)); err != nil {
			return nil, err
		}
	}
	out, err := w.event(ctx, c)
	if err != nil {
		return nil, err
	}
	return w.handler.answer(ctx, w.message, out, w.json)
}

// trace begins the span of an event if the write that has caused it was traced. The span begins a new trace with a link
// to the write, which may have been made by another gateway.
func (w *watch) trace(ctx context.Context, c *change.Change) (context.Context, span.Span) {
	tracer := w.handler.cfg.Tracer
	if tracer == nil {
		return ctx, span.Span{}
	}
	written := c.Trace()
	if written == "" {
		return ctx, span.Span{}
	}
	ctx, traced := tracer.Linked(ctx, span.Deliver, trace.SpanKindConsumer, written)
	if !traced.Recording() {
		return ctx, traced
	}
	traced.Set(
		span.RPCSystem.String(w.call.System),
		span.RPCService.String(w.call.Service),
		span.RPCMethod.String(w.call.Method),
		span.Kind.String(c.Key.Kind),
		span.Change.String(string(c.Type)),
		span.WriteTrace.String(span.TraceID(written)),
	)
	if c.Stored != nil {
		traced.Set(span.UID.String(c.Stored.UID))
	}
	return ctx, traced
}

// event returns the encoded message of a change.
func (w *watch) event(ctx context.Context, c *change.Change) ([]byte, error) {
	var e encoder
	fields := w.message.Fields()
	e.varint(fields.ByName("type"), uint64(proto.EventType(string(c.Type))))
	e.text(fields.ByName("cursor"), c.Cursor)
	if c.Key.Kind == "" {
		return e.data, nil
	}
	if err := budget.From(ctx).Spend(budget.Objects, 1); err != nil {
		return nil, err
	}
	resource := e.begin(fields.ByName(w.kind.ResourceField))
	if c.Stored == nil {
		w.kind.named(&e, c.Key, c.Revision)
	} else {
		// A resource without a body cannot be read. The client gets only its name and revision.
		b, err := c.Body()
		var known *failure.Error
		if err != nil && (!errors.As(err, &known) || known.Code != failure.CodeUnreadable) {
			return nil, err
		}
		w.kind.resource(&e, c.Stored, b, c.Revision)
	}
	e.end(resource)
	return e.data, nil
}

// inTerms returns an error of a stream in the terms of the standard methods, which have no changeCursor.
func inTerms(err error) error {
	known, ok := errors.AsType[*failure.Error](err)
	if !ok || known.Code != failure.CodePositionExpired {
		return err
	}
	out := *known
	out.Message = strings.Replace(out.Message, ", or list again and watch after the changeCursor of the first page", "", 1)
	return &out
}

// ended returns the error with which a stream ends, with the cursor from which the client can resume. If ctx has ended,
// the error is its cause.
func (w *watch) ended(ctx context.Context, err error) error {
	var cause *failure.Error
	if ctx.Err() == nil || !errors.As(context.Cause(ctx), &cause) {
		return inTerms(err)
	}
	out := *cause
	if out.Retryable && out.Cursor == "" {
		out.Cursor = w.cursor
	}
	return &out
}
