package index

import (
	"sort"
	"strings"
	"sync/atomic"

	"github.com/tidwall/btree"
)

// item is a place in a tree: a value, and behind it the resource's place among the
// names, both in the tuple encoding. Items are ordered by the bytes of the two together.
type item struct {
	value string
	slot  *slot // nil in a bound
}

// slot stands for a resource in all trees but that of the names, as long as it is
// there: a change replaces what is in it and leaves the rows that stay as they are.
type slot struct {
	// created is when the resource was created, as the rows of [CreatedIndex] have it,
	// and behind it its place.
	created string
	// newest is the resource after the last change; nil once it is gone. A reader
	// takes it if it is not newer than its view.
	newest atomic.Pointer[Entry]
}

func (s *slot) place() string { return s.created[timeBytes:] }

func (i item) place() string {
	if i.slot == nil {
		return ""
	}
	return i.slot.place()
}

func (i item) created() string {
	if i.slot == nil {
		return ""
	}
	return i.slot.created
}

// byPlace orders items by value and place as if they were one string.
func byPlace(a, b item) bool { return compare(a.value, a.place(), b.value, b.place()) < 0 }

// byCreation orders items by value, the time of creation and place as if they were one string.
func byCreation(a, b item) bool { return compare(a.value, a.created(), b.value, b.created()) < 0 }

// compare compares two values, each with the place behind it.
func compare(value, place, other, otherPlace string) int {
	n := min(len(value), len(other))
	if c := strings.Compare(value[:n], other[:n]); c != 0 {
		return c
	}
	if len(value) == len(other) {
		return strings.Compare(place, otherPlace)
	}
	if len(value) > n {
		return -compareRest(otherPlace, value[n:], place)
	}
	return compareRest(place, other[n:], otherPlace)
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
	// common are the first values that the tree had: rows of one value share its text.
	common map[string]string
}

// maxCommon is how many values of a tree are shared.
const maxCommon = 1024

// shared is a value, in the one copy that the rows of a common one have. With alone it
// never shares the memory of the value that was given, which is part of something larger.
func (r *rows) shared(value string, alone bool) string {
	if known, ok := r.common[value]; ok {
		return known
	}
	room := len(r.common) < maxCommon
	if room || alone {
		value = strings.Clone(value)
	}
	if room {
		if r.common == nil {
			r.common = map[string]string{}
		}
		r.common[value] = value
	}
	return value
}

func newRows(created bool) rows {
	return rows{tree: btree.NewBTreeGOptions(treeOf(nil, created).less, btree.Options{Degree: degree, NoLocks: true})}
}

func (r *rows) put(i item) {
	r.tree.Set(i)
	r.dirty = true
}

func (r *rows) remove(i item) {
	r.tree.Delete(i)
	r.dirty = true
}

// sorted is a tree, its order, and what stands for a bound in it. Without a tree it is empty.
type sorted[T any] struct {
	tree  *btree.BTreeG[T]
	less  func(a, b T) bool
	bound func(string) T
}

// treeOf is a tree of rows in its order: by creation or by place.
func treeOf(tree *btree.BTreeG[item], created bool) sorted[item] {
	less := byPlace
	if created {
		less = byCreation
	}
	return sorted[item]{tree, less, func(bound string) item { return item{value: bound} }}
}

// scan calls yield with the items of a run, in order or in the reverse, until it returns
// false: then it does, too.
func (t sorted[T]) scan(r Run, reverse bool, yield func(T) bool) (all bool) {
	all = true
	beyond := t.beyond(r, reverse)
	t.from(r, reverse, func(i T) bool {
		if beyond != nil && beyond(i) {
			return false
		}
		all = yield(i)
		return all
	})
	return all
}

// from calls next with the items from the beginning of a run on, or in the reverse from its
// end, until it returns false.
func (t sorted[T]) from(r Run, reverse bool, next func(T) bool) {
	switch {
	case t.tree == nil:
	case !reverse:
		t.tree.Ascend(t.bound(text(r.Start)), next)
	case r.End == nil:
		t.tree.Reverse(next)
	default: // from the end on, which is not part of the run
		end, first := t.bound(text(r.End)), true
		t.tree.Descend(end, func(i T) bool {
			excluded := first && !t.less(i, end)
			first = false
			return excluded || next(i)
		})
	}
}

// beyond returns what reports whether an item lies behind a run, as do all that follow it;
// nil if none does.
func (t sorted[T]) beyond(r Run, reverse bool) func(T) bool {
	switch {
	case t.tree == nil:
	case reverse && r.Start != nil:
		start := t.bound(text(r.Start))
		return func(i T) bool { return t.less(i, start) }
	case !reverse && r.End != nil:
		end := t.bound(text(r.End))
		return func(i T) bool { return !t.less(i, end) }
	}
	return nil
}

// few is how many items of a run are counted one by one: fewer than a search for the
// ranks of its ends looks at.
const few = 64

// length is how many items a run has.
func (t sorted[T]) length(r Run) int {
	n := 0
	switch {
	case t.tree == nil:
		return 0
	case r.Start == nil && r.End == nil:
		return t.tree.Len()
	}
	if t.scan(r, false, func(T) bool { n++; return n < few }) {
		return n
	}
	start, end := t.rank(r.Start, 0), t.rank(r.End, t.tree.Len())
	return max(end-start, 0)
}

// rank is how many items lie before a bound; open for nil.
func (t sorted[T]) rank(bound []byte, open int) int {
	if bound == nil {
		return open
	}
	at := t.bound(text(bound))
	return sort.Search(t.tree.Len(), func(n int) bool {
		i, _ := t.tree.GetAt(n)
		return !t.less(i, at)
	})
}
