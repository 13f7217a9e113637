package server_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"connectrpc.com/connect"
	"google.golang.org/genproto/googleapis/rpc/status"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/heaptest"
)

// zeros is a message of 4 MiB, as an enveloped one that is compressed to a thousandth.
func zeros(t *testing.T) []byte {
	t.Helper()
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write(make([]byte, 4<<20)); err != nil {
		t.Fatal(err)
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	if zipped.Len() > 16<<10 {
		t.Fatal("it has", zipped.Len(), "bytes")
	}
	out := binary.BigEndian.AppendUint32([]byte{1}, uint32(zipped.Len()))
	return append(out, zipped.Bytes()...)
}

// statusOf returns the status of an answer of gRPC that was read, by its code and how many details it has.
func statusOf(res *http.Response) (code string, details int) {
	for _, header := range []http.Header{res.Trailer, res.Header} {
		raw, err := connect.DecodeBinaryHeader(header.Get("Grpc-Status-Details-Bin"))
		var all status.Status
		if code = header.Get("Grpc-Status"); code != "" && err == nil && proto.Unmarshal(raw, &all) == nil {
			return code, len(all.Details)
		}
	}
	return "", 0
}

// TestServeMethods_WhatRequestsInflateToStaysWithinTheMemory sends many requests at once that inflate a thousand times,
// and holds the last bytes of each back.
func TestServeMethods_WhatRequestsInflateToStaysWithinTheMemory(t *testing.T) {
	const requests, memory = 64, 64 << 20
	m := newMethods(t, server.Config{Limits: server.Limits{Memory: memory}, Caller: server.CallerLimits{Requests: requests}})
	body := zeros(t)
	var before runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	release := make(chan struct{})
	var refused, malformed atomic.Int32
	var sent sync.WaitGroup
	for range requests {
		sent.Go(func() {
			from := bytes.NewReader(body[:len(body)-4])
			late := bytes.NewReader(body[len(body)-4:])
			held := readerFunc(func(p []byte) (int, error) {
				if from.Len() > 0 {
					return from.Read(p)
				}
				<-release
				return late.Read(p)
			})
			url := "http://" + m.address + "/sluice.kinds.v1.ShelfService/GetShelf"
			req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url, held)
			if err != nil {
				t.Error(err)
				return
			}
			req.Header.Set("Content-Type", "application/grpc")
			req.Header.Set("Grpc-Encoding", "gzip")
			req.Header.Set("Authorization", "Bearer "+m.token)
			res, err := m.client.Do(req)
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = res.Body.Close() }()
			_, _ = io.Copy(io.Discard, res.Body)
			code, details := statusOf(res)
			switch {
			case code == "14" && details == 2: // UNAVAILABLE, with an ErrorInfo and a RetryInfo
				refused.Add(1)
			case code == "3" && details == 1: // what was accepted is no message
				malformed.Add(1)
			default:
				t.Error("code", code, "details", details, res.Header, res.Trailer)
			}
		})
	}
	// A quarter of the memory is for requests: fewer than four have room for what they inflate to.
	for end := time.Now().Add(time.Minute); refused.Load() < requests-3; time.Sleep(time.Millisecond) {
		if used := m.server.State().MemoryBytes; used > memory {
			t.Fatal("in use:", used)
		}
		if time.Now().After(end) {
			t.Fatal("refused:", refused.Load())
		}
	}
	var now runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&now)
	if grown := int64(now.HeapAlloc) - int64(before.HeapAlloc); grown > memory {
		t.Error("the heap has grown by", grown)
	}
	close(release)
	sent.Wait()
	if all := refused.Load() + malformed.Load(); all != requests {
		t.Error("answered:", all)
	}
	for end := time.Now().Add(time.Minute); m.server.State().MemoryBytes != 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("not given back:", m.server.State().MemoryBytes)
		}
	}
}

// stuckStore is a store whose changes wait until they are released, if they have to.
type stuckStore struct {
	backend.Store
	release atomic.Pointer[chan struct{}]
	waiting atomic.Int32
}

func (s *stuckStore) Apply(ctx context.Context, b backend.Batch) (backend.Result, error) {
	if release := s.release.Load(); release != nil {
		s.waiting.Add(1)
		<-*release
	}
	return s.Store.Apply(ctx, b)
}

// TestServeMethods_WhatChangesHoldStaysWithinTheMemory sends resources of many small objects, which need a hundred times
// their size in memory, and keeps the store from taking them.
func TestServeMethods_WhatChangesHoldStaysWithinTheMemory(t *testing.T) {
	const changes, objects = 8, 1500
	store := &stuckStore{}
	m := newMethodsOver(t, func(s backend.Store) backend.Store {
		store.Store = s
		return store
	}, server.Config{Limits: server.Limits{Memory: 512 << 20}})
	m.serve(`type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) { spec: ShelfSpec! }
type ShelfSpec { boards: [Board!] @list(type: ATOMIC) @constraint(maxItems: 100000) }
type Board { plank: Plank }
type Plank { width: Int }
`)
	shelf := func(name string, objects int) string {
		boards := strings.TrimSuffix(strings.Repeat(`{"plank":{"width":1}},`, objects), ",")
		return `{"shelf":{"metadata":{"name":"` + name + `"},"spec":{"boards":[` + boards + `]}}}`
	}
	client, method := m.newClient("CreateShelf")
	var requests []*connect.Request[dynamicpb.Message]
	for i := range changes {
		requests = append(requests, m.request(method, shelf(fmt.Sprint("s", i), objects)))
	}
	release := make(chan struct{})
	store.release.Store(&release)
	before := heaptest.InUse()
	var sent sync.WaitGroup
	for _, req := range requests {
		sent.Go(func() {
			if _, err := client.CallUnary(t.Context(), req); err != nil {
				t.Error(err)
			}
		})
	}
	for end := time.Now().Add(time.Minute); store.waiting.Load() < changes; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("waiting:", store.waiting.Load())
		}
	}
	used := m.server.State().MemoryBytes
	if held := heaptest.InUse() - before; held > used {
		t.Errorf("%d changes hold %d bytes, and only %d are charged", changes, held, used)
	}
	close(release)
	sent.Wait()
	_, err := m.call("CreateShelf", shelf("large", 60_000))
	if connect.CodeOf(err) != connect.CodeResourceExhausted || infoOf(err).GetMetadata()["setting"] != "limit-held" {
		t.Error(err)
	}
}

// TestServeMethods_APageIsChargedWhileItIsMade refuses a page once it has grown over limit-answer, not when it is whole.
func TestServeMethods_APageIsChargedWhileItIsMade(t *testing.T) {
	m := newMethods(t, server.Config{Limits: server.Limits{Answer: 64 << 10}})
	text := string(bytes.Repeat([]byte("x"), 10<<10))
	for _, name := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		shelf := `{"shelf": {"metadata": {"name": "` + name + `", "annotations": {"a": "` + text + `"}}, "spec": {"width": 3}}}`
		if _, err := m.call("UpsertShelf", shelf); err != nil {
			t.Fatal(err)
		}
	}
	_, err := m.call("ListShelves", `{}`)
	if connect.CodeOf(err) != connect.CodeResourceExhausted || infoOf(err).GetMetadata()["setting"] != "limit-answer" {
		t.Error(err)
	}
	if _, err := m.call("ListShelves", `{"pageSize": 5}`); err != nil {
		t.Error(err)
	}
}
