package rpc_test

import (
	"slices"
	"testing"

	"connectrpc.com/grpcreflect"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

func TestHandler_ReflectionTellsTheMethods(t *testing.T) {
	w := open(t)
	stream := grpcreflect.NewClient(w.client, w.url, w.options...).NewStream(t.Context())
	defer func() { _, _ = stream.Close() }()
	names, err := stream.ListServices()
	if err != nil || !slices.Contains(names, "sluice.kinds.v1.WidgetService") {
		t.Fatal(names, err)
	}
	files, err := stream.FileContainingSymbol("sluice.kinds.v1.WidgetService.CreateWidget")
	if err != nil {
		t.Fatal(err)
	}
	if want := protodesc.ToFileDescriptorProto(w.schema.File); !slices.ContainsFunc(files, func(f *descriptorpb.FileDescriptorProto) bool { return proto.Equal(f, want) }) {
		t.Error("the file is another one")
	}
	if _, err := stream.FileContainingSymbol("google.protobuf.Timestamp"); err != nil {
		t.Error(err)
	}
	if _, err := stream.FileContainingSymbol(protoreflect.FullName("sluice.kinds.v1.None")); err == nil {
		t.Error("a name that is not there is found")
	}
}
