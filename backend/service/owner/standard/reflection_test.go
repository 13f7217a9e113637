package standard_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

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
	read, err := standard.Reflect(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	d, err := standard.ReadDescriptors(read)
	if err != nil || len(d.Candidates()) != 1 {
		t.Errorf("%+v %v", d, err)
	}
}
