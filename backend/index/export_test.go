package index

import (
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
	for r := range packed(pack(rows, nil)).all() {
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
	s.apply(change{key: r.Key, revision: r.Revision, entry: s.entry(r)}, 1)
}

// Kind is how readers see it.
func (s KindIndex) Kind() *Kind { return s.copy(nil, 1) }

// Remove takes a deletion.
func (s KindIndex) Remove(key backend.Key, at backend.Revision) {
	s.apply(change{key: key, revision: at}, 1)
}

// TestItem is an item of a tree.
type TestItem struct{ Value, Key string }

// TestTree is a tree of items whose keys are strings.
type TestTree struct{ *tree[*string] }

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
	return TestTree{&tree[*string]{root: t.publish(new(edit)), key: t.key}}
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
