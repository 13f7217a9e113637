package rpc

import (
	"context"
	"errors"
	"net/http"

	"connectrpc.com/connect"
	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// maxReflection is the maximum size of a reflection request in bytes.
const maxReflection = 64 << 10

// reflectionMethod is the name of the method of the reflection services.
const reflectionMethod = "ServerReflectionInfo"

// reflect adds the reflection services, by which tools find the methods.
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
	for _, add := range []func(*grpcreflect.Reflector, ...connect.HandlerOption) (string, http.Handler){
		grpcreflect.NewHandlerV1, grpcreflect.NewHandlerV1Alpha,
	} {
		path, handler := add(
			reflector,
			connect.WithReadMaxBytes(maxReflection),
			connect.WithInterceptors(reflectionErrors{h.cfg.Edge}),
		)
		h.reflection[path+reflectionMethod] = handler
	}
	return nil
}

// refuseReflection returns the refusal of a request for reflection that package connect would refuse without details;
// nil if there is none.
func refuseReflection(w http.ResponseWriter, r *http.Request) *Refusal {
	if r.ProtoMajor < 2 {
		w.Header().Set("Connection", "close") // the client may wait for the first answer before it ends its request
		refused := refusal(http.StatusHTTPVersionNotSupported, connect.CodeUnimplemented, "reflection needs HTTP/2")
		refused.Foreign = true
		return refused
	}
	_, refused := open(w, r.Clone(r.Context()), true) // open removes headers that package connect needs here
	return refused
}

// reflectionErrors records the errors of reflection, and adds details to them.
type reflectionErrors struct{ edge Edge }

var _ connect.Interceptor = reflectionErrors{}

// WrapUnary implements [connect.Interceptor].
func (reflectionErrors) WrapUnary(next connect.UnaryFunc) connect.UnaryFunc { return next }

// WrapStreamingClient implements [connect.Interceptor].
func (reflectionErrors) WrapStreamingClient(next connect.StreamingClientFunc) connect.StreamingClientFunc {
	return next
}

// WrapStreamingHandler implements [connect.Interceptor].
func (i reflectionErrors) WrapStreamingHandler(next connect.StreamingHandlerFunc) connect.StreamingHandlerFunc {
	return func(ctx context.Context, conn connect.StreamingHandlerConn) error {
		err := next(ctx, conn)
		known, ok := errors.AsType[*connect.Error](err)
		if !ok {
			return err
		}
		switch known.Code() {
		case connect.CodeInvalidArgument:
			err = failure.BadInput("", "%s", known.Message())
		case connect.CodeResourceExhausted:
			err = &failure.Error{Code: failure.CodeLimitExceeded, Message: known.Message(), Limit: maxReflection}
		case connect.CodeDeadlineExceeded:
			err = context.DeadlineExceeded
		default: // the client has gone, as many do instead of ending the stream
			return err
		}
		return Error(ctx, i.edge.Refused(ctx, Call{Streams: true}, err))
	}
}

// resolver finds the descriptors of a catalogue, and those of protobuf itself.
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
