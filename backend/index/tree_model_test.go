package index_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/sluicegw/sluice/backend/index"
)

// treeModel is a tree beside the sorted list of what it has.
type treeModel struct {
	tree index.TestTree
	list []index.TestItem
	rnd  *rand.Rand
	// item makes a random item.
	item func() index.TestItem
}

// step makes one random change: in a growing phase mostly puts, else mostly removals, now and
// then of a whole run, which empties leaves.
func (m *treeModel) step(grows bool) {
	if !grows && len(m.list) > 0 && m.rnd.IntN(4) > 0 {
		from := m.rnd.IntN(len(m.list))
		n := 1
		if m.rnd.IntN(50) == 0 {
			n = m.rnd.IntN(100)
		}
		for range min(n, len(m.list)-from) {
			m.tree.Remove(m.list[from])
			m.list = slices.Delete(m.list, from, from+1)
		}
		return
	}
	i := m.item()
	at, known := slices.BinarySearchFunc(m.list, i, compareItems)
	if known && m.rnd.IntN(2) == 0 || m.rnd.IntN(10) == 0 { // also what is not there
		m.tree.Remove(i)
		if known {
			m.list = slices.Delete(m.list, at, at+1)
		}
		return
	}
	m.tree.Put(i)
	if !known {
		m.list = slices.Insert(m.list, at, i)
	}
}

// check compares the whole tree and one random run with the list.
func (m *treeModel) check(t *testing.T, tree index.TestTree, list []index.TestItem) {
	t.Helper()
	if err := tree.Check(); err != nil {
		t.Fatal(err)
	}
	if got := tree.Scan(index.Run{}, false); !slices.Equal(got, list) {
		t.Fatalf("%d items, want %d", len(got), len(list))
	}
	checkTree(t, tree, list, m.rnd)
}

var treeItems = map[string]func(*rand.Rand) func() index.TestItem{
	"one value": func(rnd *rand.Rand) func() index.TestItem {
		return func() index.TestItem { return index.TestItem{Value: "v;", Key: fmt.Sprintf("k%05d", rnd.IntN(4000))} }
	},
	"few values": func(rnd *rand.Rand) func() index.TestItem {
		return func() index.TestItem {
			return index.TestItem{Value: fmt.Sprintf("v%02d;", rnd.IntN(12)), Key: fmt.Sprintf("k%05d", rnd.IntN(900))}
		}
	},
	"values of any length": func(rnd *rand.Rand) func() index.TestItem {
		return func() index.TestItem {
			return index.TestItem{Value: fmt.Sprintf("v%d;", rnd.IntN(1500)), Key: fmt.Sprintf("k%d", rnd.IntN(4))}
		}
	},
	"rising": func(rnd *rand.Rand) func() index.TestItem {
		n := 0
		return func() index.TestItem {
			n++
			return index.TestItem{Value: fmt.Sprintf("v%09d;", n/3), Key: fmt.Sprint("k", rnd.IntN(9))}
		}
	},
	"falling": func(rnd *rand.Rand) func() index.TestItem {
		n := 0
		return func() index.TestItem {
			n++
			return index.TestItem{Value: fmt.Sprintf("v%09d;", 999_999_999-n/3), Key: fmt.Sprint("k", rnd.IntN(9))}
		}
	},
	"no keys": func(rnd *rand.Rand) func() index.TestItem {
		return func() index.TestItem { return index.TestItem{Value: fmt.Sprintf("v%d;", rnd.IntN(4000))} }
	},
}

// TestTree_ATreeIsASortedListAfterAnyChanges grows and empties trees again and again; each published
// state stays what it was, however the tree goes on, and every state is a tree of the right shape.
func TestTree_ATreeIsASortedListAfterAnyChanges(t *testing.T) {
	rounds := 20
	if testing.Short() {
		rounds = 6
	}
	for name, items := range treeItems {
		t.Run(name, func(t *testing.T) {
			seed := rand.Uint64()
			t.Log("seed", seed)
			rnd := rand.New(rand.NewPCG(seed, 1))
			m := treeModel{tree: index.NewTestTree(), rnd: rnd, item: items(rnd)}
			type state struct {
				tree index.TestTree
				list []index.TestItem
			}
			var states []state
			for round := range rounds {
				for range rnd.IntN(2500) {
					m.step(round%2 == 0)
					if rnd.IntN(300) == 0 {
						states = append(states, state{m.tree.Publish(), slices.Clone(m.list)})
						m.check(t, states[len(states)-1].tree, m.list)
					}
				}
				for round%4 == 3 && len(m.list) > 0 {
					m.step(false)
				}
				if len(m.list) == 0 && m.tree.Publish().Nodes() > 1 {
					t.Errorf("an empty tree has %d nodes", m.tree.Publish().Nodes())
				}
			}
			for _, s := range states {
				m.check(t, s.tree, s.list)
			}
		})
	}
}

// TestTree_APublishedTreeIsReadWhileItGoesOn scans published states in both directions from any bound,
// in goroutines and between the items that a scan shows, while the tree is changed.
func TestTree_APublishedTreeIsReadWhileItGoesOn(t *testing.T) {
	seed := rand.Uint64()
	t.Log("seed", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for name, items := range treeItems {
		m := treeModel{tree: index.NewTestTree(), rnd: rnd, item: items(rnd)}
		var readers sync.WaitGroup
		for round := range 60 {
			for range 200 {
				m.step(round%20 < 12)
			}
			published, list, seed := m.tree.Publish(), slices.Clone(m.list), rnd.Uint64()
			readers.Go(func() {
				r := treeModel{rnd: rand.New(rand.NewPCG(seed, 2))}
				r.check(t, published, list)
			})
			if len(list) == 0 {
				continue
			}
			from := rnd.IntN(len(list))
			bound, reverse := []byte(list[from].Value+list[from].Key), rnd.IntN(2) == 0
			r, want := index.Run{Start: bound}, list[from:]
			if reverse {
				r, want = index.Run{End: bound}, slices.Clone(list[:from])
				slices.Reverse(want)
			}
			var got []index.TestItem
			published.Each(r, reverse, func(i index.TestItem) bool {
				m.step(rnd.IntN(2) == 0)
				got = append(got, i)
				return true
			})
			if !slices.Equal(got, want) {
				t.Fatalf("%s: %d items from %q, want %d", name, len(got), bound, len(want))
			}
		}
		readers.Wait()
	}
}
