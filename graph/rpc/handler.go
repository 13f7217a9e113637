package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/internal/span"
)

// Call describes a call of a method. If the method does not exist, only Streams is set.
type Call struct {
	// Service is the full name of the service, Method is the name of the method, and Kind is the name of the kind.
	Service, Method, Kind string
	// Verb is the verb of the method.
	Verb descriptor.Verb
	// System is the protocol: [SystemGRPC] or [SystemConnect].
	System string
	// Streams reports whether the method streams its answers.
	Streams bool
}

// Edge limits, measures and logs calls. Its errors may be shown to callers.
type Edge interface {
	// Refuse answers a refused request.
	Refuse(w http.ResponseWriter, r *http.Request, call Call, refused *Refusal)
	// Refused records a call that failed before it was executed. It returns the error for the caller.
	Refused(ctx context.Context, call Call, err error) *failure.Error
	// Receive sets the number of bytes that the request of a call needs in memory. It replaces the number that was set
	// before. It returns an error if there is not enough memory.
	Receive(ctx context.Context, bytes int) error
	// Call executes a call with a single answer.
	Call(ctx context.Context, call Call, run func(context.Context) error) *failure.Error
	// Stream executes a call that streams its answers. The context of run ends when the stream must end. Its cause is
	// then the error for the caller.
	Stream(ctx context.Context, call Call, run func(context.Context) error) *failure.Error
	// Event returns the context for reading and sending the next event of a stream. The caller must call done
	// afterwards.
	Event(ctx context.Context) (event context.Context, done func())
	// Expect waits for memory for an event of about this many bytes, before it is encoded. It returns an error if there
	// is none.
	Expect(ctx context.Context, bytes int) error
	// Answer records the size of an answer, of a part of it, or of an event. It returns an error if the answer is too
	// large.
	Answer(ctx context.Context, bytes int) error
}

// Config configures a [Handler]. Messages, Service, Edge and MaxRequest are required.
type Config struct {
	// Messages are the messages of the kinds of Service.
	Messages *proto.Schema
	Service  *service.Service
	Edge     Edge
	// MaxRequest is the maximum size of a request in bytes, before and after decompression.
	MaxRequest int
	// RequestSetting is the name of the setting with MaxRequest; empty if there is none.
	RequestSetting string
	// Tracer makes spans for events whose writes were traced; nil for none.
	Tracer *span.Tracer
	// Withdrawn describes a version of the API that was withdrawn. Clients may still use its methods and fields, so the
	// text is added to errors about methods and fields that do not exist. Default: no such version.
	Withdrawn string
	// HideReflection turns reflection off.
	HideReflection bool
}

// Validate returns an error that joins all problems with the configuration.
func (c Config) Validate() error {
	var errs []error
	if c.Messages == nil || c.Service == nil || c.Edge == nil {
		errs = append(errs, errors.New("config: Messages, Service and Edge are required"))
	}
	if c.MaxRequest <= 0 {
		errs = append(errs, errors.New("config: MaxRequest must be positive"))
	}
	return errors.Join(errs...)
}

// Handler serves the methods of a catalogue, and reflection.
type Handler struct {
	cfg      Config
	receiver receiver
	// names are the names of the services.
	names []string
	// methods and reflection map paths to the methods of the kinds, and to the handlers of reflection.
	methods    map[string]*method
	reflection map[string]http.Handler
}

// method is a method with its handler.
type method struct {
	descriptor protoreflect.MethodDescriptor
	call       Call
	handler    http.Handler
	// most is the maximum size of a request in bytes.
	most int
}

// callOf returns the description of a call of the method.
func (m *method) callOf(in *incoming) Call {
	out := m.call
	out.System = in.form.system
	return out
}

// kind is a kind, with the shapes of its messages.
type kind struct {
	*proto.Kind
	fields       resourceFields
	spec, status *shape
	// withdrawn is [Config.Withdrawn].
	withdrawn string
}

// New returns a handler for all kinds of cfg.Messages. It returns an error if the configuration is invalid.
func New(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	h := &Handler{
		cfg:        cfg,
		receiver:   receiver{edge: cfg.Edge, most: cfg.MaxRequest, setting: cfg.RequestSetting, withdrawn: cfg.Withdrawn},
		methods:    map[string]*method{},
		reflection: map[string]http.Handler{},
	}
	c := compiler{messages: cfg.Messages, done: map[shapeKey]*shape{}}
	for i := range cfg.Messages.Kinds {
		k, err := h.compile(&c, &cfg.Messages.Kinds[i])
		if err != nil {
			return nil, err
		}
		h.names = append(h.names, string(k.Service.FullName()))
		h.serve(k)
	}
	if cfg.HideReflection {
		return h, nil
	}
	if err := h.reflect(); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	return h, nil
}

// compile compiles the shapes of a kind.
func (h *Handler) compile(c *compiler, of *proto.Kind) (*kind, error) {
	out := &kind{Kind: of, fields: resourceFieldsOf(of.Resource), withdrawn: h.cfg.Withdrawn}
	stored := h.cfg.Service.Body(of.Name)
	if stored == nil {
		return nil, fmt.Errorf("rpc: the service has no kind %s", of.Name)
	}
	var err error
	out.spec, err = c.shape(out.fields.spec.Message(), of.Spec, stored.Fields[body.SlotSpec].Shape)
	if err == nil && of.Status != nil {
		out.status, err = c.shape(out.fields.status.Message(), of.Status, stored.Fields[body.SlotStatus].Shape)
	}
	return out, err
}

// HasService reports whether there is a service with this name.
func (h *Handler) HasService(name string) bool { return slices.Contains(h.names, name) }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m := h.methods[r.URL.Path]
	if m == nil {
		h.serveOther(w, r)
		return
	}
	in, refused := open(w, r, m.call.Streams)
	if refused != nil {
		h.cfg.Edge.Refuse(w, r, m.call, refused)
		return
	}
	r = r.WithContext(context.WithValue(r.Context(), incomingKey{}, in))
	r.Body = in
	m.handler.ServeHTTP(w, r)
}

// serveOther serves reflection. It refuses other requests, because their method does not exist.
func (h *Handler) serveOther(w http.ResponseWriter, r *http.Request) {
	path := r.URL.Path
	if handler := h.reflection[path]; handler != nil {
		if refused := refuseReflection(w, r); refused != nil {
			h.cfg.Edge.Refuse(w, r, Call{Streams: true}, refused)
			return
		}
		handler.ServeHTTP(w, r)
		return
	}
	h.cfg.Edge.Refuse(w, r, Call{}, &Refusal{
		Error: &failure.Error{
			Code: failure.CodeNotFound,
			Message: fmt.Sprintf(
				"there is no method %s; sluice proto print shows those of a catalogue, as does reflection", quoted(path),
			) + after(h.cfg.Withdrawn),
		},
		Code:   connect.CodeUnimplemented,
		Status: http.StatusNotFound,
	})
}

// after returns a text as the continuation of a message: "; " and the text. It returns "" if the text is empty.
func after(text string) string {
	if text == "" {
		return ""
	}
	return "; " + text
}

// Has reports whether a path is the path of a method, and whether the method streams its answers.
func (h *Handler) Has(path string) (has, streams bool) {
	m := h.methods[path]
	return m != nil, m != nil && m.call.Streams
}

// procedureOf returns the URL path of a method, such as /sluice.kinds.v1.TeamService/GetTeam.
func procedureOf(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// serve adds the methods of a kind.
func (h *Handler) serve(k *kind) {
	for verb, run := range map[descriptor.Verb]unaryMethod{
		descriptor.VerbCreate: h.create,
		descriptor.VerbUpdate: h.update,
		descriptor.VerbUpsert: h.upsert,
		descriptor.VerbGet:    h.get,
		descriptor.VerbList:   h.list,
		descriptor.VerbDelete: h.delete,
	} {
		if m := h.add(k, verb, h.cfg.MaxRequest); m != nil {
			m.handler = h.unary(k, m, run)
		}
	}
	if m := h.add(k, descriptor.VerbWatch, min(h.cfg.MaxRequest, maxWatch)); m != nil {
		m.call.Streams = true
		m.handler = h.stream(k, m)
	}
}

// maxWatch is the maximum size of the request of a stream in bytes. Such a request has only a cursor and a namespace.
const maxWatch = 64 << 10

// add adds the method of a verb without a handler. It returns nil if the kind does not have the verb.
func (h *Handler) add(k *kind, verb descriptor.Verb, most int) *method {
	of := k.Method(verb)
	if of == nil {
		return nil
	}
	m := &method{
		descriptor: of,
		call: Call{
			Service: string(of.Parent().FullName()), Method: string(of.Name()), Kind: k.Name, Verb: verb,
		},
		most: most,
	}
	h.methods[procedureOf(of)] = m
	return m
}

func (m *method) options() connect.HandlerOption {
	return connect.WithHandlerOptions(codecs(), connect.WithSchema(m.descriptor))
}

// request is a call of a method.
type request struct {
	kind   *kind
	method protoreflect.MethodDescriptor
	*decoded
	// json reports whether the message and the answer are JSON.
	json bool
	// dryRun reports whether a change is only checked.
	dryRun bool
	// header is the header of the answer.
	header http.Header
	// path translates the paths in errors; nil leaves them unchanged.
	path func(string) string
}

// decode decodes the message of a request. It returns an error for unknown fields.
func (h *Handler) decode(ctx context.Context, r *request, in *incoming) error {
	var err error
	r.json = in.form.json
	if r.decoded, err = h.receiver.decode(ctx, in, r.method.Input()); err != nil {
		return err
	}
	return r.refuseUnknown()
}

// unaryMethod executes a call and returns its answer.
type unaryMethod func(ctx context.Context, r *request) (*answer, error)

// unary returns the handler of a unary method.
func (h *Handler) unary(k *kind, m *method, run unaryMethod) http.Handler {
	return connect.NewUnaryHandler(procedureOf(m.descriptor), func(
		ctx context.Context, _ *connect.Request[noMessage],
	) (*connect.Response[answer], error) {
		in := incomingOf(ctx)
		call := m.callOf(in)
		ctx, cancel := in.within(ctx)
		defer cancel()
		if err := h.receiver.receive(ctx, in, m.most); err != nil {
			return nil, Error(ctx, h.cfg.Edge.Refused(ctx, call, err))
		}
		r := &request{kind: k, method: m.descriptor, header: http.Header{}}
		var out *answer
		failed := h.cfg.Edge.Call(ctx, call, func(ctx context.Context) (err error) {
			if err := h.decode(ctx, r, in); err != nil {
				return err
			}
			out, err = run(ctx, r)
			return err
		})
		if failed != nil {
			return nil, errorOf(ctx, failed, r.path)
		}
		res := connect.NewResponse(out)
		for name, values := range r.header {
			res.Header()[name] = values
		}
		return res, nil
	}, m.options())
}
