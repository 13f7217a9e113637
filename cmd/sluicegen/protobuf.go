package main

import (
	"context"
	"fmt"
	"os"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/cmd/protoc-gen-go/internal_gengo"
	"google.golang.org/protobuf/compiler/protogen"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// generateTypes writes the Go types of a protobuf file. It writes the same text as protoc with protoc-gen-go, but needs
// neither of them. file is relative to the root of the module, which must be the working directory.
func generateTypes(file string) error {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	compiled, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return err
	}
	plugin, err := protogen.Options{}.New(&pluginpb.CodeGeneratorRequest{
		FileToGenerate: []string{file},
		Parameter:      proto.String("module=github.com/sluicegw/sluice"),
		ProtoFile:      withImports(compiled[0], map[string]bool{}),
	})
	if err != nil {
		return err
	}
	internal_gengo.GenerateFile(plugin, plugin.FilesByPath[file])
	answer := plugin.Response()
	if answer.Error != nil {
		return fmt.Errorf("%s: %s", file, answer.GetError())
	}
	for _, generated := range answer.File {
		if err := os.WriteFile(generated.GetName(), []byte(generated.GetContent()), 0o644); err != nil {
			return err
		}
	}
	return nil
}

// withImports returns a file, preceded by all files that it imports. seen has the paths of the files that were returned
// before, which are left out.
func withImports(file protoreflect.FileDescriptor, seen map[string]bool) []*descriptorpb.FileDescriptorProto {
	if seen[file.Path()] {
		return nil
	}
	seen[file.Path()] = true
	var out []*descriptorpb.FileDescriptorProto
	imports := file.Imports()
	for i := range imports.Len() {
		out = append(out, withImports(imports.Get(i).FileDescriptor, seen)...)
	}
	return append(out, protoutil.ProtoFromFileDescriptor(file))
}
