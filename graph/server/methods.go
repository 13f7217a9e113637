package server

import (
	"cmp"
	"context"
	"errors"
	"net"
	"net/http"
	"slices"
	"sync"
	"time"

	"connectrpc.com/connect"
	"connectrpc.com/grpchealth"
	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/rpc"
	"github.com/sluicegw/sluice/graph/transport"
	"github.com/sluicegw/sluice/internal/span"
)

// Methods describes the standard methods of a catalogue; see [Server.ServeMethods].
type Methods struct {
	// Service executes the methods.
	Service *service.Service
	// Messages are the protobuf messages of the service's kinds.
	Messages *proto.Schema
	// Version is the name of the version of the API that the methods belong to; empty for the newest API.
	Version string
}

// The types of calls in metrics and in the access log.
const (
	typeCall   = "call"
	typeStream = "stream"
)

// addMethods adds the handler of the standard methods, if there are any.
func (s *Server) addMethods(g *Generation) error {
	of := g.catalogue.Methods
	if of.Messages == nil {
		return nil
	}
	version := of.Version
	if version == "" && len(g.catalogue.Versions) > 0 {
		version = unreleased
	}
	var err error
	setting := ""
	if s.cfg.Limits.Body < maxCall {
		setting = "limit-body"
	}
	g.methods, err = rpc.New(rpc.Config{
		Messages:       of.Messages,
		Service:        of.Service,
		Edge:           &methodsEdge{Server: s, generation: g, version: version},
		MaxRequest:     int(min(s.cfg.Limits.Body, maxCall)),
		RequestSetting: setting,
		Withdrawn:      g.withdrawnAfter(of.Version),
		Tracer:         s.cfg.Tracer,
		HideReflection: s.cfg.HideIntrospection,
	})
	return err
}

// withdrawnAfter returns a text about the newest withdrawn version, if that version is newer than the version called
// name; otherwise "". Clients of the standard methods do not choose a version, so they may have been made for the
// withdrawn one.
func (g *Generation) withdrawnAfter(name string) string {
	for _, v := range slices.Backward(g.versions) {
		switch {
		case v.Number.String() == name:
			return ""
		case !v.Served():
			return withdrawnText(v.Number.String(), v.Why)
		}
	}
	return ""
}

// maxCall is the maximum size of a request in bytes. A request has at most one resource.
const maxCall = 4 << 20

// ServeMethods serves the standard methods over gRPC, gRPC-Web and Connect, until ctx ends. Otherwise it is like
// [Server.Serve].
func (s *Server) ServeMethods(ctx context.Context, l net.Listener) error {
	protocols := new(http.Protocols)
	protocols.SetHTTP1(true)
	protocols.SetHTTP2(true)
	protocols.SetUnencryptedHTTP2(s.cfg.TLS == nil)
	return s.serve(ctx, l, edgeServer{
		handler:   s.methodsHandler(),
		protocols: protocols,
		drain:     func(context.Context) { s.endMethodStreams() },
	})
}

// methodsHandler returns a handler of the standard methods, reflection and health.
func (s *Server) methodsHandler() http.Handler {
	path, health := grpchealth.NewHandler(healthChecker{s}, connect.WithReadMaxBytes(maxHealth))
	calls := s.identified(http.HandlerFunc(s.serveCall), s.refuseCall)
	return s.edge(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		w = &callWriter{ResponseWriter: w, control: control}
		if len(r.URL.Path) > len(path) && r.URL.Path[:len(path)] == path {
			r.Pattern = path
			defer s.beginArrival(control).end()
			health.ServeHTTP(w, r)
			return
		}
		if methods := s.generation.Load().methods; methods != nil {
			if has, _ := methods.Has(r.URL.Path); has {
				r.Pattern = r.URL.Path
			}
		}
		calls.ServeHTTP(w, r)
	}), "Grpc-Status", "Grpc-Message", "Grpc-Status-Details-Bin")
}

// maxHealth is the maximum size in bytes of a health check, which needs no credential.
const maxHealth = 4 << 10

// refuseCall answers a call that is refused before it is executed.
func (s *Server) refuseCall(w http.ResponseWriter, r *http.Request, err error) {
	known := s.callError(r.Context(), typeCall, none, err)
	s.logRefused(r, known.Code)
	traceRefusedCall(r.Context(), known)
	writeRefusal(w, r, &rpc.Refusal{
		Error:  known,
		Code:   rpc.CodeOf(r.Context(), known),
		Status: transport.Status(w, known),
	})
}

// writeRefusal answers a call that is not executed: in its protocol, or as JSON if the request belongs to none of the
// protocols.
func writeRefusal(w http.ResponseWriter, r *http.Request, refused *rpc.Refusal) {
	errorWriter := connect.NewErrorWriter()
	if refused.Foreign || !errorWriter.IsSupported(r) {
		refuse(w, r, refused.Status, refused.Error.Code, refused.Error.Message)
		return
	}
	_ = errorWriter.Write(w, r, refused.Connect(r.Context())) // the client may have gone
}

// call is the state of a call that is being answered. It is part of the call's context.
type call struct {
	// admitted ends the call's share in the caller's number of requests.
	admitted func()
	// arrived is called when the request has arrived.
	arrived func()
	// streams is called when a stream begins. It removes the deadline for reading the request, and ends the duration
	// and the span of the request.
	streams func()
	share   *budget.Share
	// events measures how long events take from their arrival until they are encoded; nil unless the call is a stream.
	events prometheus.Observer
	// room is the memory that all requests share, and parts how often the call has taken bodyPart bytes from it.
	room  *budget.Room
	parts int
	// answer is the size of the answer in bytes. abort closes the connection.
	answer int
	abort  func()
}

// bodyPart is how many bytes of a request are taken at once. The first part is free: connections are bounded, and small
// requests need no more.
const bodyPart = 16 << 10

// receive takes or gives back memory, so that the call has enough for this many bytes of its request.
func (c *call) receive(bytes int) error {
	parts := max(bytes-1, 0) / bodyPart
	for ; c.parts < parts; c.parts++ {
		if !c.room.Take(bodyPart) {
			return budget.ErrBusy
		}
	}
	for ; c.parts > parts; c.parts-- {
		c.room.Give(bodyPart)
	}
	return nil
}

type callKey struct{}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// serveCall answers a call, within the limits of its caller.
func (s *Server) serveCall(w http.ResponseWriter, r *http.Request) {
	methods := s.generation.Load().methods
	if methods == nil {
		writeRefusal(w, r, &rpc.Refusal{
			Error:  &failure.Error{Code: failure.CodeNotFound, Message: "no standard methods are served"},
			Code:   connect.CodeUnimplemented,
			Status: http.StatusNotFound,
		})
		return
	}
	done, err := s.admit(r.Context(), transport.UseRequest)
	if err != nil {
		s.refuseCall(w, r, err)
		return
	}
	control := http.NewResponseController(w)
	arrival := s.beginArrival(control)
	defer arrival.end()
	c := &call{admitted: func() {}, arrived: arrival.end, streams: func() {}, room: s.memory.Requests()}
	if done != nil {
		c.admitted = sync.OnceFunc(done)
	}
	defer c.admitted()
	c.abort = func() { _ = control.SetWriteDeadline(time.Now()) }
	defer func() { _ = c.receive(0) }()
	ctx := context.WithValue(r.Context(), callKey{}, c)
	if _, streams := methods.Has(r.URL.Path); streams {
		// The deadlines of the server are meant for requests, not for streams.
		c.streams = func() {
			_ = control.SetReadDeadline(time.Time{})
			streamBegins(w)
		}
		_ = control.SetWriteDeadline(time.Time{})
		if paced, ok := w.(*callWriter); ok {
			paced.timeout = streamWriteTime
		}
		c.share = s.memory.BeginEvents()
		ctx = budget.WithShared(ctx, budget.Shared{Memory: c.share, Events: s.work.Connection()})
	} else {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, s.cfg.Limits.Time)
		defer cancel()
		if c.share, err = s.memory.Begin(ctx); err != nil {
			s.refuseCall(w, r, err)
			return
		}
		ctx = budget.WithShared(ctx, budget.Shared{Memory: c.share, CPUSlots: s.cpuSlots})
	}
	defer c.share.Close()
	methods.ServeHTTP(w, r.WithContext(ctx))
}

// streamWriteTime is how long a client may take to accept one write of a stream.
const streamWriteTime = 10 * time.Second

// callWriter is a response writer with a Flush method, which package connect needs. It limits how long each write of a
// stream may take.
type callWriter struct {
	http.ResponseWriter
	control *http.ResponseController
	timeout time.Duration // zero for the deadline of the server
}

var _ http.Flusher = (*callWriter)(nil)

// Write implements [http.ResponseWriter].
func (w *callWriter) Write(b []byte) (int, error) {
	w.setDeadline(w.timeout)
	return w.ResponseWriter.Write(b)
}

// Flush implements [http.Flusher].
func (w *callWriter) Flush() {
	w.setDeadline(w.timeout)
	_ = w.control.Flush()
	if w.timeout > 0 {
		_ = w.control.SetWriteDeadline(time.Time{})
	}
}

func (w *callWriter) setDeadline(timeout time.Duration) {
	if timeout > 0 {
		_ = w.control.SetWriteDeadline(time.Now().Add(timeout))
	}
}

// Unwrap lets [http.ResponseController] use the methods of the wrapped writer.
func (w *callWriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// methodsEdge limits, measures and logs the calls of a generation.
type methodsEdge struct {
	*Server
	generation *Generation
	// version is the name of the version in logs; empty if no version was released.
	version string
}

var _ rpc.Edge = (*methodsEdge)(nil)

// Refuse implements [rpc.Edge].
func (e *methodsEdge) Refuse(w http.ResponseWriter, r *http.Request, of rpc.Call, refused *rpc.Refusal) {
	e.Refused(r.Context(), of, refused.Error)
	writeRefusal(w, r, refused)
}

// Refused implements [rpc.Edge].
func (e *methodsEdge) Refused(ctx context.Context, of rpc.Call, err error) *failure.Error {
	if errors.Is(err, context.DeadlineExceeded) && e.methodStreams.Err() != nil {
		err = &failure.Error{
			Code:      failure.CodeUnavailable,
			Retryable: true,
			Message:   "the gateway is shutting down; try again",
		}
	}
	known := e.callError(ctx, typeOf(of), cmp.Or(of.Kind, none), err)
	e.log(ctx, of, typeOf(of), known)
	traceRefusedCall(ctx, known)
	return known
}

// Receive implements [rpc.Edge].
func (e *methodsEdge) Receive(ctx context.Context, bytes int) error {
	c := callOf(ctx)
	if c == nil {
		return nil
	}
	return c.receive(bytes)
}

// Call implements [rpc.Edge].
func (e *methodsEdge) Call(ctx context.Context, of rpc.Call, run func(context.Context) error) *failure.Error {
	begin := time.Now()
	if c := callOf(ctx); c != nil {
		c.arrived()
	}
	spent := budget.NewShared(e.cfg.Limits.budget(), budget.SharedFrom(ctx))
	defer spent.End()
	ctx, traced := e.traceCall(ctx, of, begin)
	err := e.recovering(budget.With(ctx, spent), run)
	took := time.Since(begin)
	span.Observe(ctx, e.metrics.operation.WithLabelValues(typeCall, of.Kind, string(of.Verb)), took.Seconds())
	e.spend(ctx, spent.Spent(budget.Steps))
	for t := range budget.Things {
		if n := spent.Spent(t); n > 0 {
			e.metrics.spent[t].Observe(float64(n))
		}
	}
	if e.cfg.SlowLog > 0 && took >= e.cfg.SlowLog {
		e.cfg.Logger.Warn("slow operation", append(
			e.describe(ctx, of, typeCall),
			zap.Float64("durationSeconds", took.Seconds()),
			zap.Any("spent", cost(spent)),
		)...)
	}
	failed := e.failed(ctx, of, typeCall, err)
	e.answered(ctx, of, typeCall, failed, zap.Float64("durationSeconds", took.Seconds()))
	span.Observe(ctx, e.metrics.calls.WithLabelValues(of.Method, codeText(ctx, failed)), took.Seconds())
	endCall(ctx, traced, of, failed, spent)
	if c := callOf(ctx); c != nil {
		c.share.Keep(int64(c.answer), c.abort)
	}
	return failed
}

// failed returns the error of a call in the form for its caller; nil if there is none.
func (e *methodsEdge) failed(ctx context.Context, of rpc.Call, typ string, err error) *failure.Error {
	if err == nil {
		return nil
	}
	return e.callError(ctx, typ, of.Kind, err)
}

// recovering runs a call, and converts a panic into an error.
func (e *methodsEdge) recovering(ctx context.Context, run func(context.Context) error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			err = e.recovered(ctx, p)
		}
	}()
	return run(ctx)
}

// describe returns the fields that identify a call in the log.
func (e *methodsEdge) describe(ctx context.Context, of rpc.Call, typ string) []zap.Field {
	fields := ids(ctx)
	if e.version != "" {
		fields = append(fields, zap.String("version", e.version))
	}
	if of.Method == "" {
		return fields
	}
	return append(
		fields,
		zap.String("operationName", of.Method),
		zap.String("operationType", typ),
		zap.String("kind", of.Kind),
	)
}

// typeOf returns the type of a call in metrics and in the access log.
func typeOf(of rpc.Call) string {
	if of.Streams {
		return typeStream
	}
	return typeCall
}

// answered counts a call, and writes a line of the access log.
func (e *methodsEdge) answered(ctx context.Context, of rpc.Call, typ string, failed *failure.Error, more ...zap.Field) {
	if e.version != "" {
		e.metrics.versions.WithLabelValues(e.version).Inc()
	}
	e.log(ctx, of, typ, failed, more...)
}

// log writes a line of the access log.
func (e *methodsEdge) log(ctx context.Context, of rpc.Call, typ string, failed *failure.Error, more ...zap.Field) {
	if !e.cfg.AccessLog {
		return
	}
	code := "OK"
	if failed != nil {
		code = string(failed.Code)
	}
	fields := append(e.describe(ctx, of, typ), outcome(ctx, code)...)
	e.cfg.Logger.Info("access", append(fields, more...)...)
}

// Stream implements [rpc.Edge].
func (e *methodsEdge) Stream(ctx context.Context, of rpc.Call, run func(context.Context) error) *failure.Error {
	ctx, traced := e.traceCall(ctx, of, time.Now())
	done, err := e.admit(ctx, transport.UseSubscription)
	if err != nil {
		failed := e.failed(ctx, of, typeStream, err)
		e.answered(ctx, of, typeStream, failed)
		endCall(ctx, traced, of, failed, nil)
		return failed
	}
	if done != nil {
		defer done()
	}
	if c := callOf(ctx); c != nil {
		c.admitted()
		c.arrived()
		c.streams()
		c.events = e.metrics.operation.WithLabelValues(typeStream, of.Kind, string(of.Verb))
	}
	endCall(ctx, traced, of, nil, nil)
	ctx, cancel := context.WithCancelCause(span.Detach(ctx))
	defer cancel(nil)
	defer context.AfterFunc(e.methodStreams, func() {
		cancel(&failure.Error{
			Code:      failure.CodeUnavailable,
			Retryable: true,
			Message:   "the gateway is shutting down; resume after the cursor",
		})
	})()
	defer e.generation.streams.Join(func() {
		cancel(&failure.Error{
			Code:      failure.CodeCatalogueChanged,
			Retryable: true,
			Message:   "the kinds of the gateway were replaced since the stream began; resume after the cursor",
		})
	}, false)()
	lifetime, end := access.CallerFrom(ctx).Identity.Lifetime(ctx)
	defer end()
	e.answered(ctx, of, typeStream, nil)
	failed := e.failed(ctx, of, typeStream, e.recovering(lifetime, run))
	if failed != nil && (failed.Code == failure.CodeUnauthenticated || failed.Code == failure.CodeForbidden) {
		e.log(ctx, of, typeStream, failed) // the first line says only that it began
	}
	return failed
}

// Event implements [rpc.Edge]. An event has a smaller budget than a call.
func (e *methodsEdge) Event(ctx context.Context) (event context.Context, done func()) {
	limits := ofEvent(e.cfg.Limits.budget())
	limits[budget.Events] = int64(e.cfg.Limits.Events)
	shared := budget.SharedFrom(ctx)
	shared.CPUSlots = e.cpuSlots
	spent := budget.NewShared(limits, shared)
	return budget.With(ctx, spent), func() {
		spent.End()
		shared.Memory.Reset()
	}
}

// Expect implements [rpc.Edge].
func (e *methodsEdge) Expect(ctx context.Context, bytes int) error {
	return budget.From(ctx).KeepEvent(ctx, 2*bytes)
}

// Answer implements [rpc.Edge]. An answer is charged twice, since its buffer grows, and since it may be compressed.
func (e *methodsEdge) Answer(ctx context.Context, bytes int) error {
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Bytes, bytes); err != nil {
		return err
	}
	c := callOf(ctx)
	switch {
	case c != nil && c.events != nil:
		span.Observe(ctx, c.events, spent.Since().Seconds())
		if err := spent.Spend(budget.Steps, 2*bytes/budget.AnswerBytes); err != nil {
			return err
		}
		return spent.KeepEvent(ctx, 2*bytes)
	case c != nil:
		c.answer += 2 * bytes
	}
	return spent.Grow(ctx, 2*bytes)
}

// callError returns an error in the form for the caller of a method, and counts and logs it.
func (s *Server) callError(ctx context.Context, typ, kind string, err error) *failure.Error {
	var known *failure.Error
	var over *budget.ExceededError
	switch {
	case errors.As(err, &known):
	case errors.As(err, &over):
		known = &failure.Error{
			Code: failure.CodeLimitExceeded, Message: over.Error(), Limit: over.Limit, Setting: over.Thing.Key(),
		}
	case errors.Is(err, budget.ErrBusy):
		known = &failure.Error{
			Code: failure.CodeUnavailable, Message: budget.ErrBusy.Error(), Retryable: true,
			RetryAfter: budget.RetryAfter, Limit: s.cfg.Limits.Memory, Setting: budget.MemoryKey,
		}
	case errors.Is(err, context.DeadlineExceeded):
		known = &failure.Error{Code: failure.CodeTimeout, Message: "the request took longer than it may", Retryable: true}
	case errors.Is(err, context.Canceled), ctx.Err() != nil:
		known = &failure.Error{Code: failure.CodeTimeout, Message: "the request was cancelled", Retryable: true}
	default:
		known = &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
	}
	if known.Code == failure.CodeUnauthenticated || known.Code == failure.CodeForbidden {
		s.cfg.Refused(ctx, known)
	}
	s.metrics.errors.WithLabelValues(typ, kind, string(known.Code)).Inc()
	switch {
	case known.Code == failure.CodeInternal || known.Outcome != "":
		s.cfg.Logger.Error(
			"operation failed", append(ids(ctx), zap.String("code", string(known.Code)), zap.Error(cause(err)))...,
		)
	case known.Code == failure.CodeUnavailable && known.Setting == "" && s.draining.Err() == nil:
		s.unavailable.Do(func() {
			s.cfg.Logger.Warn(
				"the store or a resource service is not available", append(ids(ctx), zap.Error(cause(err)))...,
			)
		})
	}
	return known
}

// healthChecker answers health checks, for which no credential is needed.
type healthChecker struct{ server *Server }

var _ grpchealth.Checker = healthChecker{}

// Check implements [grpchealth.Checker]. All services have the state of the gateway.
func (h healthChecker) Check(ctx context.Context, req *grpchealth.CheckRequest) (*grpchealth.CheckResponse, error) {
	s := h.server
	methods := s.generation.Load().methods
	if req.Service != "" && (methods == nil || !methods.HasService(req.Service)) {
		return nil, rpc.Error(ctx, &failure.Error{
			Code:    failure.CodeNotFound,
			Message: "there is no such service; a name like sluice.kinds.v1.TeamService, or none, is accepted",
		})
	}
	if s.ready(ctx) != nil {
		return &grpchealth.CheckResponse{Status: grpchealth.StatusNotServing}, nil
	}
	return &grpchealth.CheckResponse{Status: grpchealth.StatusServing}, nil
}
