package index

import (
	"slices"
	"sort"
	"strings"
	"sync/atomic"
)

// slot represents a resource in all trees except the tree of names, as long as the resource exists. A change of the
// resource replaces newest, and updates only rows that differ.
type slot struct {
	// created is the encoded creation time, as in [CreatedIndex], followed by the place.
	created string
	// newest is the resource after its last change; nil if it was deleted. A reader uses it unless it is newer than the
	// reader's view.
	newest atomic.Pointer[Entry]
}

func (s *slot) place() string { return s.created[timeBytes:] }

// item is an element of a tree. Items are ordered by value, and items with equal values by the key function of the
// tree.
type item[P any] struct {
	value string
	of    P
}

// rowTree is a B+ tree that is shared with readers: a change copies the nodes on its path, except those that were made
// after the tree was last published.
//
// Most trees, for example the trees of labels and conditions, have few distinct values. So a leaf in which all items
// have the same value stores the value once, and each item takes only the eight bytes of a pointer. To preserve that, a
// full leaf is split where its value changes. A leaf stays full if items are added only at its end, as in all leaves
// while a kind is filled.
//
//	                [ |net-a... |net-q... ]        keys that separate the branches, and how many items each has
//	               /     |          \
//	"tier=gold": s1 s2 s3 ...   "tier=gold": s9,  "tier=silver": s2
type rowTree[P any] struct {
	root *node[P]
	// edit marks the nodes that were made after the tree was last published.
	edit *edit
	// key returns the text by which items with equal values are ordered.
	key func(P) string
}

// edit is compared by address. It is not empty, because pointers to empty structs may be equal.
type edit struct{ _ byte }

// node is a node of a tree. It is a leaf if it has no branches.
type node[P any] struct {
	edit *edit
	of   []P
	// values has the value of each item; nil if all items have the same value, which is then value.
	values   []string
	value    string
	branches []branch[P]
}

type branch[P any] struct {
	// from is a key that separates the branch from the previous one; "" for the first branch.
	from string
	node *node[P]
	n    int // items
}

// fanout is the maximum number of items or branches of a node.
const fanout = 32

func newTree[P any](key func(P) string) rowTree[P] {
	return rowTree[P]{root: &node[P]{}, key: key}
}

// publish returns the root for readers. The nodes that are reachable from it no longer change.
func (t *rowTree[P]) publish(next *edit) *node[P] {
	t.edit = next
	return t.root
}

func (n *node[P]) at(k int) item[P] {
	if n.values == nil {
		return item[P]{n.value, n.of[k]}
	}
	return item[P]{n.values[k], n.of[k]}
}

func (n *node[P]) len() int {
	count := len(n.of)
	for i := range n.branches {
		count += n.branches[i].n
	}
	return count
}

// search returns the index of the first item of a leaf that is not before (value, key), and whether it is equal.
func (t *rowTree[P]) search(n *node[P], value, key string) (k int, equal bool) {
	return sort.Find(len(n.of), func(k int) int {
		i := n.at(k)
		return compare(value, key, i.value, t.key(i.of))
	})
}

// child returns the index of the branch that may contain an item.
func (n *node[P]) child(value, key string) int {
	return sort.Search(len(n.branches)-1, func(k int) bool { return compare(value, key, n.branches[k+1].from, "") < 0 })
}

func (t *rowTree[P]) get(value string) (of P, ok bool) {
	n := t.root
	for n.branches != nil {
		n = n.branches[n.child(value, "")].node
	}
	if k, equal := t.search(n, value, ""); equal {
		return n.of[k], true
	}
	return of, false
}

// own returns the node at a pointer for modification. A node that was published is first replaced by a copy.
func (t *rowTree[P]) own(at **node[P]) *node[P] {
	if n := *at; n.edit != t.edit {
		c := &node[P]{edit: t.edit, value: n.value}
		c.of = roomy(slices.Clip(n.of))
		c.values = roomy(slices.Clip(n.values))
		c.branches = roomy(slices.Clip(n.branches))
		*at = c
	}
	return *at
}

// roomy returns s with capacity for another element. It adds only little capacity, because the index has many nodes.
func roomy[T any](s []T) []T {
	if s == nil || len(s) < cap(s) {
		return s
	}
	return append(make([]T, 0, len(s)+4), s...)
}

// put adds an item, or replaces the item that is equal in order.
func (t *rowTree[P]) put(i item[P]) {
	if right, _ := t.insert(&t.root, i, t.key(i.of)); right != nil {
		left := t.root
		t.root = &node[P]{edit: t.edit, branches: []branch[P]{{node: left, n: left.len()}, t.branch(right)}}
	}
}

// branch returns a branch for n, which must have a left neighbour.
func (t *rowTree[P]) branch(n *node[P]) branch[P] {
	if n.branches != nil {
		return branch[P]{n.branches[0].from, n, n.len()}
	}
	first := n.at(0)
	return branch[P]{first.value + t.key(first.of), n, n.len()}
}

// insert adds an item below a node. right is the new right half if the node was split. more reports whether the number
// of items has grown.
func (t *rowTree[P]) insert(at **node[P], i item[P], key string) (right *node[P], more bool) {
	n := t.own(at)
	if n.branches == nil {
		k, equal := t.search(n, i.value, key)
		if equal {
			n.of[k] = i.of
			return nil, false
		}
		if len(n.of) == fanout {
			cut := n.cut(k)
			right = t.split(n, cut)
			// An item at the cut goes to the right half if that begins with the same value, or if the leaf grows at its
			// end.
			if k > cut || k == cut && cut > 0 && (cut == fanout || right.at(0).value == i.value) {
				n, k = right, k-cut
			}
		}
		n.insert(k, i)
		return right, true
	}
	c := n.child(i.value, key)
	b := &n.branches[c]
	half, more := t.insert(&b.node, i, key)
	b.n = b.node.len()
	if half != nil {
		n.branches = slices.Insert(roomy(n.branches), c+1, t.branch(half))
		if len(n.branches) > fanout {
			cut := len(n.branches) / 2
			if c+2 == len(n.branches) {
				cut = c + 1
			}
			right = t.split(n, cut)
		}
	}
	return right, more
}

// insert adds an item to a leaf at index k.
func (n *node[P]) insert(k int, i item[P]) {
	switch {
	case len(n.of) == 0:
		n.value, n.values = i.value, nil
	case n.values == nil && n.value != i.value:
		n.values = slices.Repeat([]string{n.value}, len(n.of))
	}
	if n.values != nil {
		n.values = slices.Insert(roomy(n.values), k, i.value)
	}
	n.of = slices.Insert(roomy(n.of), k, i.of)
}

// cut returns the index at which to split a full leaf into which an item is inserted at k.
func (n *node[P]) cut(k int) int {
	middle := fanout / 2
	switch {
	case k == 0 || k == fanout:
		return k
	case n.values == nil:
		return middle
	}
	for d := range middle {
		for _, at := range [...]int{middle - d, middle + d} {
			if n.values[at-1] != n.values[at] {
				return at
			}
		}
	}
	return middle
}

// split cuts off the right part of a node and returns it.
func (t *rowTree[P]) split(n *node[P], at int) *node[P] {
	right := &node[P]{edit: t.edit, value: n.value}
	if n.branches != nil {
		n.branches, right.branches = halves(n.branches, at)
		return right
	}
	n.of, right.of = halves(n.of, at)
	if n.values != nil {
		n.values, right.values = halves(n.values, at)
		n.unify()
		right.unify()
	}
	return right
}

func halves[T any](s []T, at int) (left, right []T) {
	if at == len(s) {
		return s, []T{}
	}
	return slices.Clone(s[:at]), slices.Clone(s[at:])
}

// unify makes a leaf store its value only once, if all items have the same one.
func (n *node[P]) unify() {
	if len(n.values) > 0 && !slices.ContainsFunc(n.values, func(v string) bool { return v != n.values[0] }) {
		n.value, n.values = n.values[0], nil
	}
}

func (t *rowTree[P]) remove(i item[P]) {
	t.delete(&t.root, i.value, t.key(i.of))
	for len(t.root.branches) == 1 {
		t.root = t.root.branches[0].node
	}
}

func (t *rowTree[P]) delete(at **node[P], value, key string) {
	n := t.own(at)
	if n.branches == nil {
		if k, equal := t.search(n, value, key); equal {
			n.of = slices.Delete(n.of, k, k+1)
			if n.values != nil {
				n.values = slices.Delete(n.values, k, k+1)
			}
		}
		return
	}
	c := n.child(value, key)
	b := &n.branches[c]
	t.delete(&b.node, value, key)
	b.n = b.node.len()
	for _, left := range [...]int{c, c - 1} {
		if left < 0 || left+1 == len(n.branches) {
			continue
		}
		a, b := n.branches[left].node.size(), n.branches[left+1].node.size()
		if a+b <= fanout/2 || a == 0 || b == 0 {
			t.join(n, left)
		}
	}
}

// size returns the number of items or branches of a node.
func (n *node[P]) size() int { return len(n.of) + len(n.branches) }

// join moves the contents of the branch after left into the branch left.
func (t *rowTree[P]) join(n *node[P], left int) {
	into, from := t.own(&n.branches[left].node), n.branches[left+1]
	for k := range from.node.of {
		into.insert(len(into.of), from.node.at(k))
	}
	if from.node.branches != nil {
		into.branches = append(into.branches, from.node.branches...)
		into.branches[len(into.branches)-len(from.node.branches)].from = from.from
	}
	n.branches[left].n = into.len()
	n.branches = slices.Delete(n.branches, left+1, left+2)
}

// scan calls yield with the items of a run, in order or in reverse, until yield returns false. It returns false if
// yield did.
func (t *rowTree[P]) scan(r Run, reverse bool, yield func(item[P]) bool) (all bool) {
	all = true
	beyond := t.beyond(r, reverse)
	t.from(r, reverse, func(i item[P]) bool {
		if beyond != nil && beyond(i) {
			return false
		}
		all = yield(i)
		return all
	})
	return all
}

// from calls next with the items from the start of a run on, in order, until next returns false. If reverse is set, it
// begins at the end of the run and goes backwards. It does not stop at the other end of the run.
func (t *rowTree[P]) from(r Run, reverse bool, next func(item[P]) bool) {
	if reverse {
		t.descend(t.root, r.End, next)
	} else {
		t.ascend(t.root, r.Start, next)
	}
}

// ascend calls next with the items below n in order, beginning at from; nil begins with the first.
func (t *rowTree[P]) ascend(n *node[P], from []byte, next func(item[P]) bool) bool {
	k := 0
	if n.branches != nil {
		if from != nil {
			k = n.child(text(from), "")
		}
		for ; k < len(n.branches); k++ {
			if !t.ascend(n.branches[k].node, from, next) {
				return false
			}
			from = nil
		}
		return true
	}
	if from != nil {
		k, _ = t.search(n, text(from), "")
	}
	for ; k < len(n.of); k++ {
		if !next(n.at(k)) {
			return false
		}
	}
	return true
}

// descend calls next with the items below n in reverse, beginning before to; nil begins with the last.
func (t *rowTree[P]) descend(n *node[P], to []byte, next func(item[P]) bool) bool {
	k := n.size()
	if n.branches != nil {
		if to != nil {
			k = n.child(text(to), "") + 1
		}
		for k--; k >= 0; k-- {
			if !t.descend(n.branches[k].node, to, next) {
				return false
			}
			to = nil
		}
		return true
	}
	if to != nil {
		k, _ = t.search(n, text(to), "")
	}
	for k--; k >= 0; k-- {
		if !next(n.at(k)) {
			return false
		}
	}
	return true
}

// beyond returns a function that reports whether an item is past the end of a run, in the direction of the scan; nil if
// the run has no end.
func (t *rowTree[P]) beyond(r Run, reverse bool) func(item[P]) bool {
	bound := r.End
	if reverse {
		bound = r.Start
	}
	if bound == nil {
		return nil
	}
	return func(i item[P]) bool { return compare(i.value, t.key(i.of), text(bound), "") < 0 == reverse }
}

// length returns the number of items in a run.
func (t *rowTree[P]) length(r Run) int {
	end := t.root.len()
	if r.End != nil {
		end = t.rank(r.End)
	}
	if r.Start == nil {
		return end
	}
	return max(end-t.rank(r.Start), 0)
}

// rank returns the number of items before a bound.
func (t *rowTree[P]) rank(bound []byte) (rank int) {
	n := t.root
	for n.branches != nil {
		c := n.child(text(bound), "")
		for i := range n.branches[:c] {
			rank += n.branches[i].n
		}
		n = n.branches[c].node
	}
	k, _ := t.search(n, text(bound), "")
	return rank + k
}

// compare compares value+place with other+otherPlace without concatenating them.
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

// compareRest compares s with rest+place without concatenating them.
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

// rows is the tree of an index.
type rows struct {
	rowTree[*slot]
	// common has the first maxCommon values of the tree. Rows with such a value share its memory.
	common map[string]string
}

// maxCommon is the maximum number of values in rows.common.
const maxCommon = 1024

func newRows(created bool) rows { return rows{rowTree: newTree(keyOf(created))} }

// keyOf returns the key function of a tree: rows with equal values are ordered by creation and place if created is set,
// otherwise by place.
func keyOf(created bool) func(*slot) string {
	if created {
		return func(s *slot) string { return s.created }
	}
	return (*slot).place
}

// cost estimates the size of a row in bytes.
func (r *rows) cost(value string) int64 {
	if _, ok := r.common[value]; ok {
		return commonRowBytes
	}
	return rowBytes
}

// shared returns value in memory that lives as long as the row: memory of the slot, of a common value, or a copy.
func (r *rows) shared(value string, s *slot) string {
	if known, ok := r.common[value]; ok {
		return known
	}
	switch {
	case strings.HasPrefix(s.created, value): // a value of CreatedIndex
		return s.created[:len(value)]
	case strings.HasSuffix(s.created, value): // a value of NameIndex
		return s.created[len(s.created)-len(value):]
	}
	value = strings.Clone(value)
	if len(r.common) < maxCommon {
		if r.common == nil {
			r.common = map[string]string{}
		}
		r.common[value] = value
	}
	return value
}
