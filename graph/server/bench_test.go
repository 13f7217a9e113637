package server_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/bolt"
	"github.com/sluicegw/sluice/graph/server"
)

const (
	fields12 = `id kind apiVersion metadata { namespace name uid revision generation createdAt } spec { managementPolicy resource { mtu tags } }`
	oneOf12  = `query($name: String!) { network(name: $name) { ` + fields12 + ` } }`
	page100  = `{ networks(first: 100) { nodes { ` + fields12 + ` } pageInfo { hasNextPage endCursor } } }`
)

func filled(b *testing.B, n int) edge {
	b.Helper()
	e := newEdge(b, plain, server.Config{})
	for i := range n {
		if got := e.post(b, create, map[string]any{"name": fmt.Sprintf("n%04d", i), "mtu": 1500}); bytes.Contains([]byte(got), []byte("errors")) {
			b.Fatal(got)
		}
	}
	return e
}

// serve sends the same request b.N times through the handler.
func serve(b *testing.B, h http.Handler, body []byte) {
	b.Helper()
	b.ReportAllocs()
	var last *httptest.ResponseRecorder
	for b.Loop() {
		r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(body))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
		r.Header.Set("Content-Type", "application/json")
		last = httptest.NewRecorder()
		h.ServeHTTP(last, r)
	}
	if last.Code != http.StatusOK || bytes.Contains(last.Body.Bytes(), []byte(`"errors"`)) {
		b.Fatal(last.Body)
	}
	b.SetBytes(int64(last.Body.Len()))
}

func request(query string, variables map[string]any) []byte {
	body, _ := json.Marshal(map[string]any{"query": query, "variables": variables})
	return body
}

// BenchmarkHTTP measures one request through the whole handler. The plain
// rows answer the same bytes from a plain net/http handler that reads the
// request as JSON and writes a value by encoding/json.
func BenchmarkHTTP(b *testing.B) {
	for _, c := range []struct {
		name string
		body []byte
	}{
		{"network12fields", request(oneOf12, map[string]any{"name": "n0050"})},
		{"page100", request(page100, nil)},
	} {
		b.Run(c.name, func(b *testing.B) { serve(b, filled(b, 200), c.body) })
		b.Run(c.name+"-plain-net-http", func(b *testing.B) {
			r := httptest.NewRequest(http.MethodPost, "/graphql", bytes.NewReader(c.body))
			r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
			r.Header.Set("Content-Type", "application/json")
			w := httptest.NewRecorder()
			filled(b, 200).ServeHTTP(w, r)
			var value any
			if err := json.Unmarshal(w.Body.Bytes(), &value); err != nil {
				b.Fatal(err)
			}
			mux := http.NewServeMux()
			mux.HandleFunc("POST /graphql", func(w http.ResponseWriter, r *http.Request) {
				var in struct {
					Query     string
					Variables map[string]any
				}
				if err := json.NewDecoder(r.Body).Decode(&in); err != nil || in.Query == "" {
					http.Error(w, "bad request", http.StatusBadRequest)
					return
				}
				w.Header().Set("Content-Type", "application/json")
				_ = json.NewEncoder(w).Encode(value)
			})
			serve(b, mux, c.body)
		})
	}
}

// BenchmarkGraph measures reads over references, a write with its revision,
// and filter, sort and first page of larger sets.
func BenchmarkGraph(b *testing.B) {
	b.Run("100-subnets-each-with-network", func(b *testing.B) {
		e := newEdge(b, plain, server.Config{})
		topology(b, e, 20, 5, 0)
		serve(b, e, request(`{ subnets(first: 100) { nodes { metadata { name } spec { resource { cidr } } network { metadata { name } spec { resource { mtu } } } } } }`, nil))
	})
	b.Run("three-levels", func(b *testing.B) {
		e := newEdge(b, plain, server.Config{})
		topology(b, e, 5, 5, 8)
		serve(b, e, request(`{ networks { nodes { `+fields12+` subnets { nodes { id metadata { name uid revision createdAt } spec { resource { cidr ipVersion networkRef } } ports { nodes { id kind apiVersion metadata { name namespace uid revision generation createdAt updatedAt } spec { managementPolicy resource { networkRef addresses { subnetRef ip } } } } } } } } } }`, nil))
	})
	b.Run("update-64-clients", benchUpdate)
	b.Run("patch-from-the-index", benchPatch)
	for _, n := range []int{1_000, 10_000, 100_000} {
		b.Run(fmt.Sprintf("filter-sort-first-50-of-%d", n), func(b *testing.B) {
			e := newEdge(b, plain, server.Config{})
			for i := range n {
				if got := e.post(b, create, map[string]any{"name": fmt.Sprintf("n%06d", i), "mtu": 68 + i%9000}); bytes.Contains([]byte(got), []byte("errors")) {
					b.Fatal(got)
				}
			}
			b.ResetTimer()
			serve(b, e, request(`{ networks(first: 50, filter: {spec: {resource: {mtu: {gte: 500}}}}, orderBy: [{field: SPEC_RESOURCE_MTU, direction: DESC}]) { nodes { metadata { name } spec { resource { mtu } } } } }`, nil))
		})
	}
}

// BenchmarkAnswers measures a page of 60 networks from memory: kept, executed, and where nothing can be kept, since each
// query is new or each tenth follows an update. The rows "off" are of a gateway that keeps no answers.
func BenchmarkAnswers(b *testing.B) {
	const query = `query($name: String!) { networks(first: 60) { nodes { ` + fields12 + ` } } network(name: $name) { id } }`
	const update = `mutation { patchNetwork(input: {name: "net-0", spec: {resource: {mtu: %d}}}) { outcome } }`
	unlimited := server.CallerLimits{Steps: math.MaxInt32, Rate: math.MaxInt32}
	ask := func(b *testing.B, memory int64, variables func(i int) map[string]any, before func(e edge, i int)) {
		b.Helper()
		e := inMemory(b, server.Config{AnswersMemory: memory, Limits: server.Limits{Time: time.Hour}, Caller: unlimited})
		b.ReportAllocs()
		i := 0
		for b.Loop() {
			before(e, i)
			if got := e.post(b, query, variables(i)); strings.Contains(got, `"errors"`) {
				b.Fatal(got)
			}
			i++
		}
	}
	nothing := func(edge, int) {}
	same := func(int) map[string]any { return map[string]any{"name": "net-1"} }
	each := func(i int) map[string]any { return map[string]any{"name": fmt.Sprint("net-", i)} }
	updates := func(e edge, i int) {
		if i%10 == 0 {
			e.post(b, fmt.Sprintf(update, 1000+i%1000), nil)
		}
	}
	for name, memory := range map[string]int64{"on": 0, "off": -1} {
		b.Run("same/"+name, func(b *testing.B) { ask(b, memory, same, nothing) })
		b.Run("each-new/"+name, func(b *testing.B) { ask(b, memory, each, nothing) })
		b.Run("each-new-beside-updates/"+name, func(b *testing.B) { ask(b, memory, each, updates) })
		b.Run("same-beside-updates/"+name, func(b *testing.B) { ask(b, memory, same, updates) })
	}
	b.Run("not-modified", func(b *testing.B) {
		e := inMemory(b, server.Config{Caller: unlimited})
		request := got("query=" + url.QueryEscape(list))
		request.header["If-None-Match"] = e.do(request).Header().Get("ETag")
		b.ReportAllocs()
		for b.Loop() {
			if w := e.do(request); w.Code != http.StatusNotModified {
				b.Fatal(w.Code)
			}
		}
	})
}

// onBolt is a wrap that puts an embedded store in the place of the one in memory.
func onBolt(b *testing.B) func(backend.Store) backend.Store {
	b.Helper()
	store, err := bolt.Open(bolt.Config{Path: filepath.Join(b.TempDir(), "sluice.db")})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = store.Close() })
	return func(backend.Store) backend.Store { return store }
}

// newIndexedEdge is newEdge of a service that runs and serves all kinds from memory.
func newIndexedEdge(b testing.TB) edge {
	b.Helper()
	var cfg server.Config
	e := edge{Handler: newServer(b, plain, &cfg).Handler()}
	svc := cfg.Catalogue.API.Service
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(ctx) }()
	b.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			b.Error(err)
		}
	})
	if err := svc.Index().Filled(ctx); err != nil {
		b.Fatal(err)
	}
	return e
}

// BenchmarkReads measures the same reads from the index and from two stores: one
// resource, the same by variables, a page, a page with what each resource refers to, and three levels of
// connections.
func BenchmarkReads(b *testing.B) {
	for _, store := range []string{"index", "memory", "bolt"} {
		wrap := plain
		if store == "bolt" {
			wrap = onBolt(b)
		}
		e := newEdge(b, wrap, server.Config{})
		if store == "index" {
			e = newIndexedEdge(b)
		}
		topology(b, e, 20, 5, 5)
		for _, c := range []struct{ name, query string }{
			{"one", `{ network(name: "net-7") { ` + fields12 + ` } }`},
			{"variables", oneOf12},
			{"page", `{ ports(first: 100) { nodes { id metadata { name revision createdAt } spec { resource { networkRef } } } pageInfo { hasNextPage endCursor } } }`},
			{"references", `{ subnets(first: 100) { nodes { id metadata { name } spec { resource { cidr } } network { metadata { name revision } } } } }`},
			{"levels", `{ networks(first: 20) { nodes { id metadata { name } subnets(first: 5) { nodes { id spec { resource { cidr } } ports(first: 5) { nodes { id metadata { name } } } } } } } }`},
		} {
			var variables map[string]any
			if c.query == oneOf12 {
				variables = map[string]any{"name": "net-7"}
			}
			b.Run(store+"/"+c.name, func(b *testing.B) { serve(b, e, request(c.query, variables)) })
		}
	}
}

// benchUpdate lets 64 clients update a resource each, at the revision they read.
func benchUpdate(b *testing.B) {
	const clients = 64
	e := newEdge(b, plain, server.Config{})
	for i := range clients {
		e.post(b, create, map[string]any{"name": fmt.Sprint("n", i), "mtu": 1500})
	}
	b.ReportAllocs()
	b.ResetTimer()
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			name, revision := fmt.Sprint("n", i), ""
			for n := i; n < b.N+clients; n += clients {
				var out struct {
					Data map[string]struct {
						Network  struct{ Metadata struct{ Revision string } }
						Metadata struct{ Revision string }
					}
				}
				if revision == "" {
					_ = json.Unmarshal([]byte(e.post(b, `query($name: String!) { network(name: $name) { metadata { revision } } }`, map[string]any{"name": name})), &out)
					revision = out.Data["network"].Metadata.Revision
					continue
				}
				answer := e.post(b, `mutation($name: String!, $revision: String!, $mtu: Int) { updateNetwork(input: {name: $name, expectedRevision: $revision, spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, resource: {mtu: $mtu}}}) { network { metadata { revision } } } }`,
					map[string]any{"name": name, "revision": revision, "mtu": 68 + n%9000})
				_ = json.Unmarshal([]byte(answer), &out)
				if revision = out.Data["updateNetwork"].Network.Metadata.Revision; revision == "" {
					b.Error(answer)
					return
				}
			}
		})
	}
	wg.Wait()
}

// benchPatch patches a field that is in no index of networks which wait for their
// credentials, served from memory.
func benchPatch(b *testing.B) {
	const many = 64
	const patch = `{"query":"mutation($i:PatchNetworkInput!){patchNetwork(input:$i){network{id metadata{revision} spec{resource{description}}}}}",` +
		`"variables":{"i":{"namespace":"default","name":"n%d","expectedRevision":"%s","spec":{"resource":{"description":"tenant network, seen %d times"}}}}}`
	e := newIndexedEdge(b)
	const createOne = `mutation($i: CreateNetworkInput!) { createNetwork(input: $i) { network { metadata { revision } } } }`
	revisions := make([]string, many)
	revision := regexp.MustCompile(`"revision":"([^"]+)"`)
	for i := range many {
		answer := e.post(b, createOne, map[string]any{"i": map[string]any{
			"name": fmt.Sprint("n", i), "labels": []map[string]any{{"key": "app", "value": "app-27"}, {"key": "team", "value": "team-5"}, {"key": "tier", "value": "bronze"}},
			"spec": map[string]any{
				"cloudCredentialsRef": map[string]any{"secretName": "openstack", "cloudName": "openstack"}, "managementPolicy": "MANAGED",
				"resource": map[string]any{"description": "tenant network", "adminStateUp": true, "mtu": 1450, "tags": []string{"zone-0", "rack-36"}},
			},
		}})
		found := revision.FindStringSubmatch(answer)
		if found == nil {
			b.Fatal(answer)
		}
		revisions[i] = found[1]
	}
	n := 0
	b.ReportAllocs()
	for b.Loop() {
		i := n % many
		n++
		r := httptest.NewRequest(http.MethodPost, "/graphql", strings.NewReader(fmt.Sprintf(patch, i, revisions[i], n)))
		r.Host, r.RemoteAddr = "localhost", "127.0.0.1:1" // callers on this machine are not limited
		r.Header.Set("Content-Type", "application/json")
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		found := revision.FindSubmatch(w.Body.Bytes())
		if found == nil {
			b.Fatal(w.Body)
		}
		revisions[i] = string(found[1])
	}
}
