package rpc_test

import (
	"testing"

	"github.com/vektah/gqlparser/v2/ast"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protodesc"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/known/emptypb"
	"google.golang.org/protobuf/types/known/timestamppb"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds"
)

// gadget is a kind without constraints, so that any spec of its types is accepted.
func gadget() descriptor.Kind {
	k := every()
	k.Name, k.Singular, k.Plural = "Gadget", "gadget", "gadgets"
	k.Expires = false
	return k
}

// TestHandler_KeepsThePromisesOfAService tests the methods of a gateway as those of a resource service: a gateway behind
// a gateway.
func TestHandler_KeepsThePromisesOfAService(t *testing.T) {
	w := open(t, gadget(), servicetest.Site())
	files := &descriptorpb.FileDescriptorSet{File: []*descriptorpb.FileDescriptorProto{
		protodesc.ToFileDescriptorProto(emptypb.File_google_protobuf_empty_proto),
		protodesc.ToFileDescriptorProto(timestamppb.File_google_protobuf_timestamp_proto),
		protodesc.ToFileDescriptorProto(w.schema.File),
	}}
	raw, err := protobuf.Marshal(files)
	if err != nil {
		t.Fatal(err)
	}
	d, err := standard.ReadDescriptors(raw)
	if err != nil {
		t.Fatal(err)
	}
	c, err := d.Catalogue("inner", []string{"Gadget"}, nil, standard.Limits{Length: 100, Items: 10})
	if err != nil || len(c.Refused) > 0 {
		t.Fatal(err, c)
	}
	client, err := standard.New(standard.Config{
		Remote:      remote.Config{Name: "inner", Address: w.url, Protocol: remote.GRPC},
		Descriptors: d,
		Mapping:     c.Mapping,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	schema, err := kinds.Load(&ast.Source{Name: "pulled.graphqls", Input: c.SDL})
	if err != nil {
		t.Fatal(err, c.SDL)
	}
	found, err := kit.Run(t.Context(), kit.Config{Service: client, Descriptors: schema.Descriptors(), Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, r := range found {
		t.Logf("%-8s %-18s %s", r.Status, r.Promise, r.Detail)
		switch r.Status {
		case kit.Failed:
			t.Errorf("%s: %s", r.Promise, r.Detail)
		case kit.Passed:
			passed++
		}
	}
	if passed < 20 {
		t.Errorf("%d promises were kept:\n%s", passed, c.SDL)
	}
}
