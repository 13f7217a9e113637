package standardtest_test

import (
	"testing"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

func TestServer_ShowsWhatWasPut(t *testing.T) {
	server, _ := standardtest.New(t, standardtest.Config{
		Descriptors: standardtest.Compile(t, nil, standardtest.FooFile),
		Services:    []string{"teleport.foo.v1.FooService"},
		Message:     "teleport.foo.v1.Foo",
		Name:        "metadata.name",
		Tag:         "metadata.revision",
	})
	server.Put("a", func(foo protoreflect.Message) { standardtest.SetText(foo, "spec.bar", "here") })
	spec, bar := standardtest.Field(server.Show("a"), "spec.bar")
	if got := spec.Get(bar).String(); got != "here" || server.Len() != 1 {
		t.Errorf("%q of %d", got, server.Len())
	}
	server.Remove("a")
	if server.Show("a") != nil || server.Len() != 0 {
		t.Errorf("%d are left", server.Len())
	}
}
