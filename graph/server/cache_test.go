package server_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
	"github.com/sluicegw/sluice/internal/heaptest"
)

func TestLongDocumentsAreNotRemembered(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	comment := " #" + strings.Repeat("x", 1<<20)
	before := heaptest.InUse()
	for i := range 64 {
		if got := e.post(t, fmt.Sprint("{ __typename }", comment, i), nil); got != `{"data":{"__typename":"Query"}}` {
			t.Fatal(got)
		}
	}
	if grown := heaptest.InUse() - before; grown > 16<<20 {
		t.Errorf("64 documents of 1 MiB hold %d MiB", grown>>20)
	}
}

// documents are texts of which each has few tokens and many bytes, or many tokens, by name.
func documents() map[string]string {
	return map[string]string{
		"comments": "{ __typename }" + strings.Repeat("#\n", 4900),
		"fields":   "{ " + strings.Repeat("... on Query { kinds { a: name b: plural c: scope d: __typename } __typename } ", 19) + "}",
	}
}

// TestWhatIsRememberedIsBoundedByTokens checks that the cache is filled up to the setting, and not beyond.
func TestWhatIsRememberedIsBoundedByTokens(t *testing.T) {
	for name, document := range documents() {
		for _, most := range []int{6000, 15_000} {
			t.Run(fmt.Sprintf("%s, %d tokens", name, most), func(t *testing.T) {
				cfg := server.Config{Limits: server.Limits{CachedTokens: most}}
				s := newServer(t, plain, &cfg)
				e := edge{Handler: s.Handler()}
				heaviest, full := 0, false
				for i := range 60 {
					was, before := s.CachedDocuments()
					if got := e.post(t, fmt.Sprint(document, "# ", i), nil); !strings.Contains(got, `"__typename":"Query"`) {
						t.Fatalf("%.300s", got)
					}
					now, tokens := s.CachedDocuments()
					if tokens > most {
						t.Fatalf("%d documents of %d tokens are cached, within %d tokens", now, tokens, most)
					}
					if now > was {
						heaviest = max(heaviest, tokens-before)
						continue
					}
					full = true
					if tokens < most-2*heaviest {
						t.Fatalf("a document was dropped, although only %d of %d tokens were used", tokens, most)
					}
				}
				if !full {
					t.Errorf("60 documents are cached within %d tokens", most)
				}
			})
		}
	}
}

// TestWhatIsRememberedTakesLittleMemory as tokens are what parsed documents consist of: three hundred documents of 10 KB
// could hold 300 MiB.
func TestWhatIsRememberedTakesLittleMemory(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	for name, document := range documents() {
		t.Run(name, func(t *testing.T) {
			for tokens, most := range map[int]int64{0: 64 << 20, 10_000: 16 << 20} {
				e := newEdge(t, plain, server.Config{Limits: server.Limits{CachedTokens: tokens}})
				before := heaptest.InUse()
				for i := range 300 {
					if got := e.post(t, fmt.Sprint(document, "# ", i), nil); !strings.Contains(got, `"__typename":"Query"`) {
						t.Fatalf("%.300s", got)
					}
				}
				if grown := heaptest.InUse() - before; grown > most {
					t.Errorf("300 documents hold %d MiB within %d tokens", grown>>20, tokens)
				}
				runtime.KeepAlive(e)
			}
		})
	}
}
