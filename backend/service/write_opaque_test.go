package service_test

import (
	"fmt"
	"math"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/kind"
	queryplan "github.com/sluicegw/sluice/backend/service/query/plan"
)

// TestWrite_OpaqueTextsAreAsLongAsTheDocsSay makes the longest id, revision and cursor of a stream, and
// the longest cursor of a page in the order of names. docs/compatibility.md has their lengths.
func TestWrite_OpaqueTextsAreAsLongAsTheDocsSay(t *testing.T) {
	raw, err := os.ReadFile("../../docs/compatibility.md")
	if err != nil {
		t.Fatal(err)
	}
	const kindName = 63 // graph/kinds refuses a longer one
	key := backend.Key{Kind: strings.Repeat("K", kindName), Namespace: strings.Repeat("n", kind.MaxNamespace), Name: strings.Repeat("a", kind.MaxName)}
	last := backend.Revision{Epoch: backend.MaxEpoch, Seq: math.MaxUint64}
	place := backend.OrderTuple(key.Namespace, key.Name)
	for _, c := range []struct {
		name, row, length string
		most              int
		text              string
	}{
		{"a global id", "| global id | 1,024", "515", 1024, kind.GlobalID(key)},
		{"a revision", "| 64 |", "37", 64, last.String()},
		{"a cursor of a stream with one shard", "`changeCursor` | 16,384", "27 with one", 16 << 10, backend.NewPosition(last).String()},
		{"a cursor of a stream with 256 shards", "`changeCursor` | 16,384", "6,148", 16 << 10, backend.NewPosition(slices.Repeat([]backend.Revision{last}, 256)...).String()},
		{"a cursor of a page", "| cursor of a page | 16,384", "434", 16 << 10, string(queryplan.AppendCursor(nil, math.MaxUint32, place))},
	} {
		t.Run(c.name, func(t *testing.T) {
			number, _, _ := strings.Cut(strings.ReplaceAll(c.length, ",", ""), " ")
			if got := fmt.Sprint(len(c.text)); got != number || len(c.text) > c.most {
				t.Errorf("it has %s characters; the docs say %s, at most %d", got, number, c.most)
			}
			documented := slices.ContainsFunc(strings.Split(string(raw), "\n"), func(line string) bool {
				return strings.Contains(line, c.row) && strings.Contains(line, c.length)
			})
			if !documented {
				t.Errorf("docs/compatibility.md has no row with %q and %q", c.row, c.length)
			}
		})
	}
}
