package server_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	messages "github.com/sluicegw/sluice/graph/proto"
	"github.com/sluicegw/sluice/graph/server"
)

// BenchmarkMethods measures a call of a standard method through the whole handler, over gRPC.
func BenchmarkMethods(b *testing.B) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(b), Store: store})
	if err != nil {
		b.Fatal(err)
	}
	numbers, err := messages.NewNumbers(messages.DefaultPackage)
	if err != nil {
		b.Fatal(err)
	}
	numbers.Add(svc.Kinds())
	schema, err := messages.New(svc.Kinds(), numbers)
	if err != nil {
		b.Fatal(err)
	}
	cfg := server.Config{Catalogue: server.Single(svc, kindstest.API(b)), Caller: server.CallerLimits{Steps: math.MaxInt32}}
	cfg.Catalogue.Methods = server.Methods{Service: svc, Messages: schema}
	s, err := server.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	handler := s.MethodsHandler()
	networks := schema.File.Services().ByName("NetworkService")
	call := func(b *testing.B, method, text string) (*http.Request, *bytes.Reader) {
		b.Helper()
		m := networks.Methods().ByName(protoreflect.Name(method))
		in := dynamicpb.NewMessage(m.Input())
		if err := protojson.Unmarshal([]byte(text), in); err != nil {
			b.Fatal(err)
		}
		raw, err := proto.Marshal(in)
		if err != nil {
			b.Fatal(err)
		}
		body := bytes.NewReader(append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(raw))), raw...))
		path := fmt.Sprintf("/%s/%s", networks.FullName(), method)
		r := httptest.NewRequest(http.MethodPost, path, body)
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
		r.Header.Set("Content-Type", "application/grpc")
		return r, body
	}
	answer := func(b *testing.B, method, text string) {
		b.Helper()
		r, body := call(b, method, text)
		b.ReportAllocs()
		var last *httptest.ResponseRecorder
		for b.Loop() {
			_, _ = body.Seek(0, 0)
			last = httptest.NewRecorder()
			handler.ServeHTTP(last, r.Clone(b.Context()))
		}
		if code := last.Result().Trailer.Get("Grpc-Status"); code != "0" {
			b.Fatal(code, last.Result())
		}
	}
	const network = `{"network": {"metadata": {"name": "n%d"}, "spec": {"managementPolicy": "MANAGEMENT_POLICY_MANAGED", ` +
		`"cloudCredentialsRef": {"secretName": "s", "cloudName": "c"}, "resource": {"mtu": 1500, "tags": ["a", "b"]}}}}`
	for i := range 100 {
		r, _ := call(b, "UpsertNetwork", fmt.Sprintf(network, i))
		handler.ServeHTTP(httptest.NewRecorder(), r)
	}
	b.Run("Get", func(b *testing.B) { answer(b, "GetNetwork", `{"name": "n50"}`) })
	b.Run("List", func(b *testing.B) { answer(b, "ListNetworks", `{"pageSize": 100}`) })
	b.Run("Upsert", func(b *testing.B) { answer(b, "UpsertNetwork", fmt.Sprintf(network, 50)) })
}
