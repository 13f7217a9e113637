package standardtest

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
)

// The field numbers of grpc.reflection.v1.
const (
	fileByName   = 3
	fileOfSymbol = 4
	listServices = 7
	filesAnswer  = 4
	listAnswer   = 6
	errorAnswer  = 7
)

// AddReflection serves the descriptors of services by gRPC reflection. It sends each file only when
// the file is requested.
func AddReflection(t testing.TB, mux *http.ServeMux, raw []byte, services ...string) {
	t.Helper()
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(raw, &set); err != nil {
		t.Fatal(err)
	}
	files, err := protodesc.NewFiles(&set)
	if err != nil {
		t.Fatal(err)
	}
	const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	mux.Handle(path, connect.NewBidiStreamHandler(path, func(
		_ context.Context, stream *connect.BidiStream[emptypb.Empty, emptypb.Empty],
	) error {
		for {
			in, err := stream.Receive()
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			out := &emptypb.Empty{}
			out.ProtoReflect().SetUnknown(reflected(files, in.ProtoReflect().GetUnknown(), services))
			if err := stream.Send(out); err != nil {
				return err
			}
		}
	}))
}

// reflected returns the encoded answer to an encoded request.
func reflected(files *protoregistry.Files, request []byte, services []string) []byte {
	number, _, n := protowire.ConsumeTag(request)
	text, _ := protowire.ConsumeString(request[n:])
	field := func(number protowire.Number, value []byte) []byte {
		return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), value)
	}
	var file protoreflect.FileDescriptor
	switch number {
	case listServices:
		var list []byte
		for _, name := range services {
			list = append(list, field(1, field(1, []byte(name)))...)
		}
		return field(listAnswer, list)
	case fileOfSymbol:
		if found, err := files.FindDescriptorByName(protoreflect.FullName(text)); err == nil {
			file = found.ParentFile()
		}
	case fileByName:
		if found, err := files.FindFileByPath(text); err == nil {
			file = found
		}
	}
	if file == nil {
		return field(errorAnswer, field(2, []byte("there is no "+text)))
	}
	raw, err := proto.Marshal(protodesc.ToFileDescriptorProto(file))
	if err != nil {
		return field(errorAnswer, field(2, []byte(err.Error())))
	}
	return field(filesAnswer, field(1, raw))
}
