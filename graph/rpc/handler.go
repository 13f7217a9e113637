package rpc

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/proto"
)

// Call describes a call of a method.
type Call struct {
	// Method is the name of the method, and Kind the name of its kind.
	Method, Kind string
	// Verb that the method corresponds to.
	Verb descriptor.Verb
}

// Edge limits, measures and logs calls. Its errors are meant for callers.
type Edge interface {
	// Call runs a call with a single answer.
	Call(ctx context.Context, call Call, run func(context.Context) error) *failure.Error
	// Stream runs a call with a stream of answers. The context of run ends when the stream must
	// end; its cause is then the error for the caller.
	Stream(ctx context.Context, call Call, run func(context.Context) error) *failure.Error
	// Event returns the context in which the next event of a stream is read and sent. The caller
	// calls done afterwards.
	Event(ctx context.Context) (event context.Context, done func())
	// Answer reports the size of an answer, or of an event. It returns an error if that is too large.
	Answer(ctx context.Context, bytes int) error
}

// Config of a handler. All fields are required but HideReflection.
type Config struct {
	// Messages of the kinds of Service.
	Messages *proto.Schema
	Service  *service.Service
	Edge     Edge
	// MaxRequest is the maximum size of a request in bytes, before and after
	// decompression.
	MaxRequest int
	// HideReflection serves no reflection.
	HideReflection bool
}

// Validate returns every problem of the configuration, joined.
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
	cfg Config
	mux *http.ServeMux
	// names are the names of the services. paths are the paths of the methods, with whether they
	// stream.
	names []string
	paths map[string]bool
}

// kind is a kind with the shapes of its messages.
type kind struct {
	*proto.Kind
	fields       resourceFields
	spec, status *shape
}

// New makes a handler. It starts nothing.
func New(cfg Config) (*Handler, error) {
	if err := cfg.Validate(); err != nil {
		return nil, fmt.Errorf("rpc: %w", err)
	}
	h := &Handler{cfg: cfg, mux: http.NewServeMux(), paths: map[string]bool{}}
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

// compile makes the shapes of a kind.
func (h *Handler) compile(c *compiler, of *proto.Kind) (*kind, error) {
	out := &kind{Kind: of, fields: resourceFieldsOf(of.Resource)}
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

// HasService reports whether there is a service of this name.
func (h *Handler) HasService(name string) bool { return slices.Contains(h.names, name) }

// ServeHTTP implements [http.Handler].
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) { h.mux.ServeHTTP(w, r) }

// Has reports whether a path belongs to a method, and whether the method streams its answers.
func (h *Handler) Has(path string) (has, streams bool) {
	streams, has = h.paths[path]
	return has, streams
}

// procedureOf returns the path of a method.
func procedureOf(m protoreflect.MethodDescriptor) string {
	return "/" + string(m.Parent().FullName()) + "/" + string(m.Name())
}

// serve adds the methods of a kind.
func (h *Handler) serve(k *kind) {
	for verb, answer := range map[descriptor.Verb]unaryMethod{
		descriptor.VerbCreate: h.create,
		descriptor.VerbUpdate: h.update,
		descriptor.VerbUpsert: h.upsert,
		descriptor.VerbGet:    h.get,
		descriptor.VerbList:   h.list,
		descriptor.VerbDelete: h.delete,
	} {
		if m := k.Method(verb); m != nil {
			h.mux.Handle(procedureOf(m), h.unary(k, verb, answer))
			h.paths[procedureOf(m)] = false
		}
	}
	if m := k.Method(descriptor.VerbWatch); m != nil {
		h.mux.Handle(procedureOf(m), h.stream(k, m))
		h.paths[procedureOf(m)] = true
	}
}

// options returns the options of a method's handler.
func (h *Handler) options(m protoreflect.MethodDescriptor) connect.HandlerOption {
	return connect.WithHandlerOptions(
		codecs(),
		connect.WithSchema(m),
		connect.WithReadMaxBytes(h.cfg.MaxRequest),
		connect.WithRequestInitializer(func(_ connect.Spec, message any) error {
			if dynamic, ok := message.(*dynamicpb.Message); ok {
				*dynamic = *dynamicpb.NewMessage(m.Input())
			}
			return nil
		}),
	)
}

// request is a call of a unary method.
type request struct {
	kind    *kind
	method  protoreflect.MethodDescriptor
	message protoreflect.Message
	// header of the answer.
	header http.Header
	// path translates the paths of errors; nil leaves them unchanged.
	path func(string) string
}

// unaryMethod answers a call.
type unaryMethod func(ctx context.Context, r *request) (*dynamicpb.Message, error)

// unary returns the handler of a unary method.
func (h *Handler) unary(k *kind, verb descriptor.Verb, answer unaryMethod) http.Handler {
	m := k.Method(verb)
	call := Call{Method: string(m.Name()), Kind: k.Name, Verb: verb}
	return connect.NewUnaryHandler(procedureOf(m), func(
		ctx context.Context, req *connect.Request[dynamicpb.Message],
	) (*connect.Response[dynamicpb.Message], error) {
		r := &request{kind: k, method: m, message: req.Msg.ProtoReflect(), header: http.Header{}}
		var out *dynamicpb.Message
		failed := h.cfg.Edge.Call(ctx, call, func(ctx context.Context) (err error) {
			if err := r.refuseUnknown(); err != nil {
				return err
			}
			out, err = answer(ctx, r)
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
	}, h.options(m))
}

// reflect adds the reflection service, with which tools find the methods.
func (h *Handler) reflect() error {
	files := new(protoregistry.Files)
	if err := files.RegisterFile(h.cfg.Messages.File); err != nil {
		return err
	}
	reflector := grpcreflect.NewReflector(
		grpcreflect.NamerFunc(func() []string { return h.names }),
		grpcreflect.WithDescriptorResolver(resolver{files}),
		grpcreflect.WithExtensionResolver(new(protoregistry.Types)),
	)
	limit := connect.WithReadMaxBytes(maxReflection)
	for _, add := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha,
	} {
		path, handler := add(reflector, limit)
		h.mux.Handle(path, handler)
	}
	return nil
}

// maxReflection is the maximum size of a reflection request in bytes.
const maxReflection = 64 << 10

// resolver finds the descriptors of a catalogue and protobuf's own.
type resolver struct{ files *protoregistry.Files }

var _ protodesc.Resolver = resolver{}

// FindFileByPath implements [protodesc.Resolver].
func (r resolver) FindFileByPath(path string) (protoreflect.FileDescriptor, error) {
	out, err := r.files.FindFileByPath(path)
	if err != nil {
		return protoregistry.GlobalFiles.FindFileByPath(path)
	}
	return out, nil
}

// FindDescriptorByName implements [protodesc.Resolver].
func (r resolver) FindDescriptorByName(name protoreflect.FullName) (protoreflect.Descriptor, error) {
	out, err := r.files.FindDescriptorByName(name)
	if err != nil {
		return protoregistry.GlobalFiles.FindDescriptorByName(name)
	}
	return out, nil
}
