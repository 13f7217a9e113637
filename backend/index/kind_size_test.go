package index_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
)

// TestKind_KnowsTheSizeOfItsBodies: after any changes, the size is the sum over the bodies in the store, bodies that do
// not decode included.
func TestKind_KnowsTheSizeOfItsBodies(t *testing.T) {
	onEachStore(t, func(t *testing.T, open func(*testing.T) store) {
		f := start(t, open(t), index.Config{})
		rnd := rand.New(rand.NewPCG(4, 7))
		for range 100 {
			k := key(fmt.Sprint("n", rnd.IntN(8)))
			switch rnd.IntN(4) {
			case 0:
				_, _ = f.apply(backend.Action{Key: k, Op: backend.OpDelete})
			case 1:
				f.put(k, "bad")
			default:
				f.put(k, strings.Repeat("x", rnd.IntN(50)))
			}
		}
		page, err := f.store.Range(t.Context(), backend.Range{Kind: "Thing", Limit: backend.MaxLimit})
		if err != nil {
			t.Fatal(err)
		}
		var want int64
		for _, r := range page.Resources {
			want += int64(len(r.Body))
		}
		if _, k := f.view("Thing"); k.BodyBytes() != want || want == 0 {
			t.Errorf("%d bytes, want %d", k.BodyBytes(), want)
		}
		if _, k := f.view("Other"); k.BodyBytes() != 0 {
			t.Errorf("a kind without resources has %d bytes", k.BodyBytes())
		}
	})
}
