package standardtest

import (
	"context"
	"embed"
	"io"
	"path"
	"testing"

	"github.com/bufbuild/protocompile"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
)

//go:embed testdata/proto
var protos embed.FS

// Files of this package for [Compile].
const (
	// FooFile has a service by the conventions of RFD 153.
	FooFile = "teleport/foo/v1/foo_service.proto"
	// LibraryFile has a service by Google's API improvement proposals.
	LibraryFile = "example/library/v1/library.proto"
)

// Compile compiles files and returns their descriptors with all imports, like protoc
// --include_imports. open returns the text of a file by its path; nil opens the files of this
// package.
func Compile(t testing.TB, open func(path string) (io.ReadCloser, error), files ...string) []byte {
	t.Helper()
	if open == nil {
		open = Open
	}
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{Accessor: open}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), files...)
	if err != nil {
		t.Fatal(err)
	}
	var set descriptorpb.FileDescriptorSet
	seen := map[string]bool{}
	for _, file := range compiled {
		addWithImports(&set, file, seen)
	}
	raw, err := proto.Marshal(&set)
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

// Open opens a .proto file of this package. It can be passed to [Compile].
func Open(name string) (io.ReadCloser, error) { return protos.Open(path.Join("testdata/proto", name)) }

func addWithImports(to *descriptorpb.FileDescriptorSet, file protoreflect.FileDescriptor, seen map[string]bool) {
	if seen[file.Path()] {
		return
	}
	seen[file.Path()] = true
	for i := range file.Imports().Len() {
		addWithImports(to, file.Imports().Get(i).FileDescriptor, seen)
	}
	to.File = append(to.File, protodesc.ToFileDescriptorProto(file))
}
