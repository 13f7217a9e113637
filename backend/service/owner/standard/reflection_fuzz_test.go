package standard_test

import (
	"testing"

	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/descriptorpb"

	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// FuzzReflect reads damaged answers of server reflection: the list of the services, and files for all other requests. A
// set of descriptors that is read has each file once, and all imports.
func FuzzReflect(f *testing.F) {
	services := encoded(6, encoded(1, encoded(1, "teleport.foo.v1.FooService"), encoded(1, "grpc.reflection.v1.ServerReflection")))
	var set descriptorpb.FileDescriptorSet
	if err := proto.Unmarshal(standardtest.Compile(f, nil, standardtest.FooFile), &set); err != nil {
		f.Fatal(err)
	}
	var files []string
	for _, file := range set.GetFile() {
		raw, err := proto.Marshal(file)
		if err != nil {
			f.Fatal(err)
		}
		files = append(files, string(raw))
	}
	f.Add([]byte(services), []byte(encoded(4, encoded(1, files...))))
	f.Add([]byte(services), []byte(encoded(4, encoded(1, files[len(files)-1]))))
	f.Add([]byte(services), []byte(encoded(7, "\x08\x05"+encoded(2, "Symbol not found"))))
	f.Add([]byte(encoded(7, "\x08\x0c")), []byte{})
	f.Fuzz(func(t *testing.T, services, files []byte) {
		read, err := standard.ReadReflection(t.Context(), func(text string) []byte {
			if text == "" {
				return services
			}
			return files
		})
		if err != nil {
			return
		}
		var set descriptorpb.FileDescriptorSet
		if err := proto.Unmarshal(read, &set); err != nil {
			t.Fatal(err)
		}
		has := map[string]bool{}
		for _, file := range set.GetFile() {
			if has[file.GetName()] {
				t.Errorf("the file %q is there twice", file.GetName())
			}
			has[file.GetName()] = true
		}
		for _, file := range set.GetFile() {
			for _, path := range file.GetDependency() {
				if !has[path] {
					t.Errorf("the import %q is missing", path)
				}
			}
		}
		if len(has) > standard.MaxFiles {
			t.Errorf("%d files", len(has))
		}
		_, _ = standard.ReadDescriptors(read)
	})
}
