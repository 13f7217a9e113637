package index

import (
	"errors"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// CompareItems is how items are ordered, of two values with the places behind them.
func CompareItems(value, place, other, otherPlace string) int {
	return compare(value, place, other, otherPlace)
}

// Content lists what a tree of a kind has, for comparison.
func (k *Kind) Content(index string) []string {
	var out []string
	k.Scan(Run{Index: index}, false, func(value string, e *Entry) bool {
		out = append(out, strings.Join([]string{value, e.Resource.Namespace, e.Resource.Name, e.Resource.Revision.String(), string(e.Resource.Body)}, "|"))
		return true
	})
	return out
}

// Packed are rows, each an index and a value, after they were packed.
func Packed(indexes []int, values []string) (gotIndexes []int, gotValues []string) {
	var rows []row
	for i, index := range indexes {
		rows = append(rows, row{index, values[i]})
	}
	for r := range packed(pack(rows)).all() {
		gotIndexes, gotValues = append(gotIndexes, r.index), append(gotValues, r.value)
	}
	return gotIndexes, gotValues
}

// KindIndex is a kind as the index changes it, without a store.
type KindIndex struct{ *kindIndex }

// NewKindIndex makes an empty kind that takes changes.
func NewKindIndex(d *Definition) KindIndex { return KindIndex{newKindIndex(d, 0)} }

// Put takes a resource.
func (s KindIndex) Put(r *backend.Resource) {
	s.apply(keyChange{key: r.Key, revision: r.Revision, entry: s.newEntry(r)}, 1)
}

// Kind is how readers see it.
func (s KindIndex) Kind() *Kind { return s.copy(nil, 1) }

// Remove takes a deletion.
func (s KindIndex) Remove(key backend.Key, at backend.Revision) {
	s.apply(keyChange{key: key, revision: at}, 1)
}

// TestItem is an item of a tree.
type TestItem struct{ Value, Key string }

// TestTree is a tree of items whose keys are strings.
type TestTree struct{ *rowTree[*string] }

// NewTestTree makes an empty tree.
func NewTestTree() TestTree {
	t := newTree(func(s *string) string { return *s })
	return TestTree{&t}
}

// Put adds an item.
func (t TestTree) Put(i TestItem) { t.put(item[*string]{i.Value, &i.Key}) }

// Remove removes an item.
func (t TestTree) Remove(i TestItem) { t.remove(item[*string]{i.Value, &i.Key}) }

// Publish returns the tree as it is now.
func (t TestTree) Publish() TestTree {
	return TestTree{&rowTree[*string]{root: t.publish(new(edit)), key: t.key}}
}

// Each calls yield with the items of a run until it returns false.
func (t TestTree) Each(r Run, reverse bool, yield func(TestItem) bool) {
	t.scan(r, reverse, func(i item[*string]) bool { return yield(TestItem{i.value, *i.of}) })
}

// Check returns what is wrong with the shape of the tree, nil if nothing is.
func (t TestTree) Check() error { return t.check(t.root, true, nil, nil) }

func (t TestTree) check(n *node[*string], isRoot bool, from, to *string) error {
	joined := func(k int) string { i := n.at(k); return i.value + *i.of }
	switch {
	case n.size() > fanout:
		return fmt.Errorf("a node has %d items or branches", n.size())
	case n.branches == nil && n.values != nil && len(n.values) != len(n.of):
		return fmt.Errorf("a leaf of %d items has %d values", len(n.of), len(n.values))
	case n.branches != nil && (n.of != nil || n.values != nil):
		return errors.New("a node has items and branches")
	case isRoot && len(n.branches) == 1:
		return errors.New("the root has a single branch")
	}
	for k := range n.of {
		if k > 0 && joined(k-1) >= joined(k) || from != nil && joined(k) < *from || to != nil && joined(k) >= *to {
			return fmt.Errorf("%q is at the wrong place", joined(k))
		}
	}
	depth := -1
	for k, b := range n.branches {
		low, high := from, to
		if k > 0 {
			low = &b.from
		}
		if k+1 < len(n.branches) {
			high = &n.branches[k+1].from
		}
		if b.n != b.node.len() {
			return fmt.Errorf("a branch of %d items says %d", b.node.len(), b.n)
		}
		if d := b.node.depth(); depth >= 0 && d != depth {
			return errors.New("leaves are at different depths")
		} else {
			depth = d
		}
		if err := t.check(b.node, false, low, high); err != nil {
			return err
		}
	}
	return nil
}

func (n *node[P]) depth() (depth int) {
	for ; n.branches != nil; n = n.branches[0].node {
		depth++
	}
	return depth
}

// Nodes is how many nodes the tree has.
func (t TestTree) Nodes() int { return t.root.nodes() }

func (n *node[P]) nodes() int {
	count := 1
	for _, b := range n.branches {
		count += b.node.nodes()
	}
	return count
}

// Length is how many items a run has.
func (t TestTree) Length(r Run) int { return t.length(r) }

// Scan lists the items of a run.
func (t TestTree) Scan(r Run, reverse bool) (out []TestItem) {
	t.scan(r, reverse, func(i item[*string]) bool {
		out = append(out, TestItem{i.value, *i.of})
		return true
	})
	return out
}
