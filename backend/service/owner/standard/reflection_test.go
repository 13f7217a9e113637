package standard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/backend/service/owner/standard/standardtest"
)

// reflecting returns a client of a service that is served by a handler.
func reflecting(t *testing.T, handler http.Handler) *remote.Client {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.Config.Protocols = httpProtocols()
	server.Start()
	t.Cleanup(server.Close)
	client, err := remote.New(remote.Config{Name: "foos", Address: server.URL, Protocol: remote.GRPC})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}

// checkReflected reads the descriptors of the service, which must have one kind.
func checkReflected(t *testing.T, client *remote.Client) {
	t.Helper()
	read, err := standard.Reflect(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	d, err := standard.ReadDescriptors(read)
	if err != nil || len(d.Candidates()) != 1 {
		t.Errorf("%+v %v", d, err)
	}
}

func TestReflect_AServiceThatDoesNotAnswerIsLeft(t *testing.T) {
	client := reflecting(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }))
	_, err := standard.ReflectWithin(t.Context(), client, 20*time.Millisecond)
	if err == nil || !strings.Contains(err.Error(), "not answered completely within 20ms") {
		t.Errorf("%v", err)
	}
}

func TestReflect_AStreamThatStaysOpenAfterItsAnswerIsLeft(t *testing.T) {
	raw := standardtest.Compile(t, nil, standardtest.FooFile)
	mux := http.NewServeMux()
	standardtest.AddReflection(t, mux, raw, "teleport.foo.v1.FooService", "grpc.reflection.v1.ServerReflection")
	client := reflecting(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mux.ServeHTTP(w, r)
		<-r.Context().Done()
	}))
	checkReflected(t, client)
}

// TestReflect_AServiceThatHasOnlyAPartOfV1IsReadByV1Alpha as a whole, as one behind a proxy whose servers differ.
func TestReflect_AServiceThatHasOnlyAPartOfV1IsReadByV1Alpha(t *testing.T) {
	const path = "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"
	const before = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
	mux := http.NewServeMux()
	raw := standardtest.Compile(t, nil, standardtest.FooFile)
	standardtest.AddReflection(t, mux, raw, "teleport.foo.v1.FooService")
	var first atomic.Bool
	client := reflecting(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == before:
			r.URL.Path = path
		case !first.CompareAndSwap(false, true):
			_ = connect.NewErrorWriter().Write(w, r, connect.NewError(connect.CodeUnimplemented, nil))
			return
		}
		mux.ServeHTTP(w, r)
	}))
	checkReflected(t, client)
}
