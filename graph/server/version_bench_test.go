package server_test

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/graph/server"
)

// BenchmarkVersion measures the same requests to the newest API and to a released version of it. The version may take 3 %
// more for a read and 6 % more for a write.
func BenchmarkVersion(b *testing.B) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(b), Store: store})
	if err != nil {
		b.Fatal(err)
	}
	api := kindstest.API(b)
	versions, err := release.Read(map[string]string{
		"v1.0/" + release.APIFile: kinds.PrintBare(api), "v1.0/any.graphqls": "# not read",
	}, "kinds")
	if err != nil {
		b.Fatal(err)
	}
	view, _ := versions[0].View(api)
	cfg := server.Config{Catalogue: server.Single(svc, api), Limits: server.Limits{Time: time.Hour}}
	cfg.Caller.Steps = math.MaxInt32
	cfg.Catalogue.Versions = []server.Version{{
		Number: versions[0].Number, API: server.API{Service: svc.View(versions[0].Names(view)), Schema: view},
	}}
	s, err := server.New(cfg)
	if err != nil {
		b.Fatal(err)
	}
	const upsert = `mutation($name: String!, $mtu: Int) { upsertNetwork(input: {name: $name, spec: {` +
		`cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: $mtu}}}) { network { id } } }`
	for name, body := range map[string][]byte{
		"write": request(upsert, map[string]any{"name": "a", "mtu": 1500}),
		"read":  request(oneOf12, map[string]any{"name": "a"}),
	} {
		for _, path := range []string{"/graphql", "/v1.0/graphql"} {
			b.Run(name+path, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					r := httptest.NewRequest(http.MethodPost, path, bytes.NewReader(body))
					r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
					r.Header.Set("Content-Type", "application/json")
					w := httptest.NewRecorder()
					s.Handler().ServeHTTP(w, r)
					if w.Code != http.StatusOK || bytes.Contains(w.Body.Bytes(), []byte(`"errors"`)) {
						b.Fatal(w.Body)
					}
				}
			})
		}
	}
}
