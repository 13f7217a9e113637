package remote

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	pb "github.com/sluicegw/sluice/schema/service/v1/resourcev1"
)

// maxRequest is the maximum size of a request in bytes, after decompression.
const maxRequest = 16 << 20

// Handler returns a handler that serves a service by the protocols of Connect, with JSON or protobuf, and by gRPC.
//
// The context of a call has the caller from the headers. It has no caller if the gateway calls on its own behalf. All
// clients that can reach the handler can set these headers. So the server must accept only gateways, by their client
// certificates. gRPC requires HTTP/2; for HTTP/2 without TLS, see [http.Protocols.SetUnencryptedHTTP2].
func Handler(service owner.Service) http.Handler {
	s := server{service}
	mux := http.NewServeMux()
	serve(mux, "Describe", s.describe)
	serve(mux, "List", s.list)
	serve(mux, "Get", s.get)
	serve(mux, "Changes", s.changes)
	serve(mux, "Write", s.write)
	serve(mux, "Delete", s.delete)
	return mux
}

// serve adds a call to a mux. answer executes the call.
func serve[Req, Res any](mux *http.ServeMux, method string, answer func(context.Context, *Req) (*Res, error)) {
	path := servicePath + method
	mux.Handle(path, connect.NewUnaryHandler(path, func(
		ctx context.Context, req *connect.Request[Req],
	) (*connect.Response[Res], error) {
		out, err := answer(withCaller(ctx, req.Header()), req.Msg)
		if err != nil {
			return nil, withCode(err)
		}
		return connect.NewResponse(out), nil
	}, connect.WithReadMaxBytes(maxRequest)))
}

// withCode returns the error of a service with the code of Connect that matches the error.
func withCode(err error) error {
	var coded *connect.Error
	switch {
	case errors.As(err, &coded):
		return connect.NewError(coded.Code(), err)
	case errors.Is(err, owner.ErrUnimplemented):
		return connect.NewError(connect.CodeUnimplemented, err)
	case errors.Is(err, owner.ErrNotSent):
		return connect.NewError(connect.CodeUnavailable, err)
	case errors.Is(err, context.DeadlineExceeded):
		return connect.NewError(connect.CodeDeadlineExceeded, err)
	case errors.Is(err, context.Canceled):
		return connect.NewError(connect.CodeCanceled, err)
	}
	return connect.NewError(connect.CodeUnknown, err)
}

// server implements the calls of a service with the messages of the contract.
type server struct{ service owner.Service }

func (s server) describe(ctx context.Context, _ *pb.DescribeRequest) (*pb.DescribeResponse, error) {
	d, err := s.service.Describe(ctx)
	if err != nil {
		return nil, err
	}
	out := &pb.DescribeResponse{Service: d.Service, Sdl: d.SDL}
	for _, k := range d.Kinds {
		out.Kinds = append(out.Kinds, &pb.Kind{
			Kind: k.Name, Changes: k.Changes, Writes: k.Writes, Conditional: k.Conditional, DryRun: k.DryRun,
		})
	}
	return out, nil
}

func (s server) list(ctx context.Context, in *pb.ListRequest) (*pb.ListResponse, error) {
	page, err := s.service.List(ctx, in.Kind, in.PageToken, int(in.PageSize))
	if err != nil {
		return nil, err
	}
	out := &pb.ListResponse{NextPageToken: page.Next}
	for i := range page.Resources {
		r := &page.Resources[i]
		resource, err := resourceOf(r)
		if err != nil {
			out.Unreadable = append(out.Unreadable, &pb.Unreadable{Key: keyOf(r.Key), Message: err.Error()})
			continue
		}
		out.Resources = append(out.Resources, resource)
	}
	for _, u := range page.Unreadable {
		out.Unreadable = append(out.Unreadable, &pb.Unreadable{Key: keyOf(u.Key), Message: u.Message})
	}
	return out, nil
}

func (s server) get(ctx context.Context, in *pb.GetRequest) (*pb.GetResponse, error) {
	if n := len(in.Keys); n > owner.MaxKeys {
		err := fmt.Errorf("there are %d keys; at most %d are accepted", n, owner.MaxKeys)
		return nil, connect.NewError(connect.CodeInvalidArgument, err)
	}
	keys := make([]backend.Key, len(in.Keys))
	for i, k := range in.Keys {
		keys[i] = requestedKey(k)
	}
	got, err := s.service.Get(ctx, keys)
	if err != nil {
		return nil, err
	}
	out := &pb.GetResponse{}
	for _, g := range got {
		resource, err := resourceOf(g.Resource)
		if err != nil {
			g.Unreadable = err.Error()
		}
		out.Got = append(out.Got, &pb.Got{Resource: resource, Unreadable: g.Unreadable})
	}
	return out, nil
}

func (s server) changes(ctx context.Context, in *pb.ChangesRequest) (*pb.ChangesResponse, error) {
	c, err := s.service.Changes(ctx, in.Position, time.Duration(in.WaitMs)*time.Millisecond)
	if err != nil {
		return nil, err
	}
	return &pb.ChangesResponse{Keys: keysOf(c.Keys), Position: c.Position, Expired: c.Expired}, nil
}

func (s server) write(ctx context.Context, in *pb.WriteRequest) (*pb.WriteResponse, error) {
	r := in.GetResource()
	spec, err := printObject(r.GetSpec())
	if err != nil {
		return nil, connect.NewError(connect.CodeInvalidArgument, fmt.Errorf("resource.spec: %w", err))
	}
	if spec == nil {
		spec = []byte("{}")
	}
	answer, err := s.service.Write(ctx, owner.Write{
		Resource: owner.Resource{
			Key:         requestedKey(r.GetKey()),
			WriteID:     in.WriteId,
			Labels:      r.GetLabels(),
			Annotations: r.GetAnnotations(),
			Description: r.GetDescription(),
			Spec:        spec,
		},
		IfAbsent: in.IfAbsent,
		IfTag:    in.IfTag,
		IfUID:    in.IfUid,
		DryRun:   in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return answerOf(answer)
}

func (s server) delete(ctx context.Context, in *pb.DeleteRequest) (*pb.WriteResponse, error) {
	answer, err := s.service.Delete(ctx, owner.Delete{
		Key: requestedKey(in.GetKey()), IfTag: in.IfTag, IfUID: in.IfUid, DryRun: in.DryRun,
	})
	if err != nil {
		return nil, err
	}
	return answerOf(answer)
}

func requestedKey(k *pb.Key) backend.Key {
	return backend.Key{Kind: k.GetKind(), Namespace: k.GetNamespace(), Name: k.GetName()}
}
