package server_test

import (
	"bytes"
	"math"
	"net/http"
	"net/http/httptest"
	"runtime"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/kinds"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/release"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/heaptest"
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

// BenchmarkVersion_Start measures what a start takes for 20 released versions of the embedded catalogue, without the
// comparison with them: at most 15 ms and 0.7 MB for each.
func BenchmarkVersion_Start(b *testing.B) {
	const count = 20
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
	files := map[string]string{}
	for minor := range count {
		folder := release.Number{Major: 1, Minor: minor}.String() + "/"
		files[folder+release.APIFile] = kinds.PrintBare(api)
		for name, text := range kindstest.Texts(b) {
			files[folder+name] = text
		}
	}
	s, err := server.New(server.Config{Catalogue: server.Single(svc, api)})
	if err != nil {
		b.Fatal(err)
	}
	start := func() (*server.Generation, []*release.Version) {
		versions, err := release.Read(files, "kinds")
		if err != nil {
			b.Fatal(err)
		}
		catalogue := server.Single(svc, api)
		for _, v := range versions {
			view, _ := v.View(api)
			catalogue.Versions = append(catalogue.Versions, server.Version{
				Number: v.Number, SDL: v.API, API: server.API{Service: svc.View(v.Names(view)), Schema: view},
			})
		}
		g, err := s.Prepare(catalogue)
		if err != nil {
			b.Fatal(err)
		}
		return g, versions
	}
	before := heaptest.InUse()
	g, versions := start()
	held := heaptest.InUse() - before
	runtime.KeepAlive(g)
	runtime.KeepAlive(versions)
	for b.Loop() {
		start()
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/1000/count/float64(b.N), "ms/version")
	b.ReportMetric(float64(held)/(1<<20)/count, "MB/version")
}
