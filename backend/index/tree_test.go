package index_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend/index"
)

// TestTree_ATreeIsASortedList compares a tree with a sorted list after random changes, with few values
// and with many, and published states with what they were.
func TestTree_ATreeIsASortedList(t *testing.T) {
	for _, values := range []int{1, 3, 40, 100_000} {
		t.Run(fmt.Sprint(values, " values"), func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			tree := index.NewTestTree()
			var list []index.TestItem
			type state struct {
				tree index.TestTree
				list []index.TestItem
			}
			var states []state
			for round := range 6000 {
				i := index.TestItem{Value: fmt.Sprintf("v%06d;", rnd.IntN(values)), Key: fmt.Sprintf("k%06d", rnd.IntN(3000))}
				if rnd.IntN(4) == 0 {
					i.Key = fmt.Sprintf("l%06d", round) // behind the others of its value
				}
				at, known := slices.BinarySearchFunc(list, i, compareItems)
				grows := round < 2500 || round > 4500
				switch {
				case known && (!grows || rnd.IntN(3) == 0):
					tree.Remove(i)
					list = slices.Delete(list, at, at+1)
				case !grows && len(list) > 0:
					at = rnd.IntN(len(list))
					tree.Remove(list[at])
					list = slices.Delete(list, at, at+1)
				default:
					tree.Put(i)
					if !known {
						list = slices.Insert(list, at, i)
					}
				}
				if round%500 == 0 {
					states = append(states, state{tree.Publish(), slices.Clone(list)})
				}
			}
			for _, s := range append(states, state{tree.Publish(), list}) {
				checkTree(t, s.tree, s.list, rnd)
			}
		})
	}
}

func compareItems(a, b index.TestItem) int {
	return cmp.Or(cmp.Compare(a.Value, b.Value), cmp.Compare(a.Key, b.Key))
}

func checkTree(t *testing.T, tree index.TestTree, list []index.TestItem, rnd *rand.Rand) {
	t.Helper()
	for range 50 {
		var r index.Run
		from, to := 0, len(list)
		bound := func() ([]byte, int) {
			i := index.TestItem{Value: fmt.Sprintf("v%06d;", rnd.IntN(40)), Key: fmt.Sprintf("k%06d", rnd.IntN(3000))}
			if len(list) > 0 && rnd.IntN(2) == 0 {
				i = list[rnd.IntN(len(list))]
			}
			at, _ := slices.BinarySearchFunc(list, i, compareItems)
			return []byte(i.Value + i.Key), at
		}
		if rnd.IntN(3) > 0 {
			r.Start, from = bound()
		}
		if rnd.IntN(3) > 0 {
			r.End, to = bound()
		}
		want := slices.Clone(list[from:max(from, to)])
		if got := tree.Scan(r, false); !slices.Equal(got, want) {
			t.Fatalf("%q to %q: %d items, want %d", r.Start, r.End, len(got), len(want))
		}
		if got := tree.Length(r); got != len(want) {
			t.Fatalf("%q to %q: length %d, want %d", r.Start, r.End, got, len(want))
		}
		slices.Reverse(want)
		if got := tree.Scan(r, true); !slices.Equal(got, want) {
			t.Fatalf("%q to %q in reverse: %d items, want %d", r.Start, r.End, len(got), len(want))
		}
	}
}
