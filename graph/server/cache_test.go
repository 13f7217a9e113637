package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestLongDocumentsAreNotRemembered(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	comment := " #" + strings.Repeat("x", 1<<20)
	heap := func() uint64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.HeapAlloc
	}
	before := heap()
	for i := range 64 {
		if got := e.post(t, fmt.Sprint("{ __typename }", comment, i), nil); got != `{"data":{"__typename":"Query"}}` {
			t.Fatal(got)
		}
	}
	if grown := int64(heap()) - int64(before); grown > 16<<20 {
		t.Errorf("64 documents of 1 MiB hold %d MiB", grown>>20)
	}
}
