package index

import (
	"strings"

	"github.com/tidwall/btree"
)

// item is a place in a tree: a value, and behind it the resource's place among the
// names, both in the tuple encoding. Items are ordered by the bytes of the two together.
type item struct{ value, place string }

// less orders items by value and place as if they were one string.
func less(a, b item) bool { return compare(a, b) < 0 }

func compare(a, b item) int {
	n := min(len(a.value), len(b.value))
	if c := strings.Compare(a.value[:n], b.value[:n]); c != 0 {
		return c
	}
	if len(a.value) == len(b.value) {
		return strings.Compare(a.place, b.place)
	}
	if len(a.value) > n {
		return -compareRest(b.place, a.value[n:], a.place)
	}
	return compareRest(a.place, b.value[n:], b.place)
}

// compareRest compares s with rest and place together.
func compareRest(s, rest, place string) int {
	n := min(len(s), len(rest))
	if c := strings.Compare(s[:n], rest[:n]); c != 0 {
		return c
	}
	if n < len(rest) { // s ends within rest
		return -1
	}
	return strings.Compare(s[n:], place)
}

// degree of the trees: a change copies a node of each level, of up to 2*degree-1 places.
const degree = 16

// rows is a tree of items. What [rows.copy] returns is never changed.
type rows struct {
	tree *btree.BTreeG[item]
	// dirty says that the tree has changed since it was copied.
	dirty bool
}

func newRows() rows {
	return rows{tree: btree.NewBTreeGOptions(less, btree.Options{Degree: degree, NoLocks: true})}
}

func (r *rows) put(i item) {
	r.tree.Set(i)
	r.dirty = true
}

func (r *rows) remove(i item) {
	r.tree.Delete(i)
	r.dirty = true
}

// rank is how many items lie before a bound.
func rank(t *btree.BTreeG[item], bound string) int {
	low, high := 0, t.Len()
	for low < high {
		middle := int(uint(low+high) >> 1)
		if at, _ := t.GetAt(middle); compare(at, item{value: bound}) < 0 {
			low = middle + 1
		} else {
			high = middle
		}
	}
	return low
}
