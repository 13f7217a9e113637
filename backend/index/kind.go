package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"
	"unique"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// Definition describes a kind to the index.
type Definition struct {
	// Name is the name of the kind, as in [backend.Key].
	Name string
	// Pinned reports whether the kind is kept in memory however large it is.
	Pinned bool
	// Indexes are the names of the indexes to keep. Rows of other indexes are dropped.
	Indexes []string
	// Sortable are the Indexes that also have a tree of the resources without a row: see [NullIndex].
	Sortable []string
	// ByCreation are the Indexes that also have a tree in which rows with the same value are ordered by creation: see
	// [CreationIndex].
	ByCreation []string
	// Rows returns the index rows of a resource. They may share memory with the body.
	Rows func(*body.Body) []Row
	// Keep copies a resource: see [body.Arena.Keep].
	Keep func(r *backend.Resource, more func(*body.Body) []byte) (kept body.Body, made string, size int, err error)
}

// Row is a row of an index. Rows of an index are ordered by Value and then by namespace and name of the resource. Value
// consists of one or more tuple elements, as [backend.AppendString] and similar functions encode them.
type Row struct {
	Index string
	Value []byte
}

// MaxRows is the maximum number of rows of a resource. MaxRowBytes is the maximum length of a row's index name and
// value together.
const (
	MaxRows     = 1024
	MaxRowBytes = 2048
)

// The names of indexes whose rows the package makes itself. Every kind has these indexes, except NameIndex.
const (
	// CreatedIndex and UpdatedIndex order all resources by a time, which is encoded by kind.AppendTime.
	CreatedIndex = "createdAt"
	UpdatedIndex = "updatedAt"
	// NameIndex orders the resources of all namespaces by name. Only kinds with this name in Definition.Indexes have
	// it.
	NameIndex = "name"
	// expiryIndex orders the resources that expire by their expiry.
	expiryIndex = "expiresAt"
)

// NullIndex returns the name of the index of all resources without a row in a sortable index. They are ordered by
// namespace and name.
func NullIndex(index string) string { return index + "\x00" }

// CreationIndex returns the name of an index that has the same rows as index. Rows with the same value are ordered by
// the creation of their resources, and then by name. Scan returns the creation time, encoded as in [CreatedIndex], in
// place of the value. A bound of a run is a value followed by a creation time.
func CreationIndex(index string) string { return index + "\x00" + CreatedIndex }

// Entry is a resource in the index. It is immutable once it is in a tree. The fields that a scan needs of each resource
// come first, within one cache line of 64 bytes, because a scan mostly waits for memory.
type Entry struct {
	// version is the version of the index when the entry was made. A view does not show entries with a later version.
	version uint64
	// slot is the slot of the resource, which stays the same until the resource is deleted.
	slot *slot
	rows packed
	// Err is the reason why the body cannot be read; nil if it can.
	Err   error
	bytes uint32
	// expires reports whether the resource has an expiry.
	expires bool
	// Body is the decoded body; not set if there is an Err.
	Body body.Body
	// Resource is the resource without its references: see [backend.Range.Bare].
	Resource backend.Resource
}

// ExpiredAt reports whether the resource is expired at a time.
func (e *Entry) ExpiredAt(now time.Time) bool { return e.expires && e.Resource.ExpiredAt(now) }

// row is a row of an entry, for the tree with the number index.
type row struct {
	index int // the number of the tree: see kindIndex.trees
	value string
}

func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.value, b.value))
}

// Place returns the position of the resource in the order of names, encoded by [backend.OrderTuple].
func (e *Entry) Place() string { return e.slot.place() }

// fillState is the state of a kind:
//
//	           fill              fill has read all              the hub has delivered
//	waiting -----------> filling -----------------> filled ------------------------> serving
//	^  ^  ^                 |                         |      what fill has read         |
//	|  |  +-----------------+                         |                                 |
//	|  |  the store does not answer                   |                                 |
//	|  +------- Begin: the store has lost changes, the kind is stale -------------------+
//	|
//	|  retry: there is room
//	|
//	givenUp <--- from any other state: there is no room, or it cannot be read
//
// A stale kind keeps its trees, and fill reads only what differs: the keys whose changes the store has lost or, if
// these are not known, all keys and revisions. But a kind that was being read for the first time is cleared, and a kind
// of which no change was lost continues to be served.
type fillState int

const (
	// waiting: the kind has to be filled.
	waiting fillState = iota
	// filling: pages of the store are put into the trees. Changes are queued while a page is read.
	filling
	// filled: everything was read, but the trees may already show changes that the hub has not delivered yet.
	filled
	serving
	// givenUp: there was no room for the kind, or a part of it could not be read.
	givenUp
)

// noKey is the key function of the tree of names, whose items are ordered by value alone.
func noKey(*Entry) string { return "" }

// kindIndex is a kind while the index fills and changes it. It is guarded by Index.mu, except fields that never change.
type kindIndex struct {
	*Definition
	// number identifies the kind. trees maps the name of an index to the number of its tree, and nulls the number of a
	// sortable tree to the number of its [NullIndex]. They never change.
	number int
	trees  map[string]int
	nulls  map[int]int
	// byCreation maps the number of a tree to the number of its tree by creation; 0 if there is none.
	byCreation []int
	// created reports for each tree whether it is ordered by creation.
	created []bool

	state fillState
	// fillings is how often the kind was cleared or became stale.
	fillings int
	names    rowTree[*Entry] // ordered by Entry.Place
	changed  bool            // since copy was called
	rows     []rows
	// unreadable has the resources that cannot be read. They have no rows in other trees.
	unreadable rows
	// waiting are the changes that are queued while a page is read.
	waiting      []keyChange
	waitingBytes int64
	// stale reports whether the trees may show changes that the store has lost. These are changes of the keys in lost,
	// or of any key if lost is nil.
	stale bool
	lost  map[backend.Key]bool
	// read is the progress of filling the kind.
	read progress
	// since is the first position at which the trees show a single state of the store.
	since backend.Position
	bytes int64
	// bodyBytes is the total size of the stored bodies.
	bodyBytes int64
	mean      int64 // the mean size of a resource when the kind was given up
	// tooLarge reports whether the kind was given up because there was no room.
	tooLarge bool
	// failed is how often the kind was given up since it was last served. backoffRounds is how many rounds of retry it
	// must wait.
	failed, backoffRounds int
}

// keyChange is the state of a key at a revision.
type keyChange struct {
	key      backend.Key
	revision backend.Revision
	entry    *Entry // nil if the resource was deleted
	// overrides reports whether the change replaces even a newer state, which the store may have lost.
	overrides bool
}

func newKindIndex(d *Definition, number int) *kindIndex {
	k := &kindIndex{Definition: d, number: number, trees: map[string]int{}, nulls: map[int]int{}}
	for _, name := range append([]string{CreatedIndex, UpdatedIndex, expiryIndex}, d.Indexes...) {
		if _, known := k.trees[name]; !known {
			k.trees[name] = len(k.trees)
		}
	}
	for _, name := range d.Sortable {
		if of, known := k.trees[name]; known {
			at := len(k.trees)
			k.trees[NullIndex(name)], k.nulls[of] = at, at
		}
	}
	k.byCreation = make([]int, len(k.trees)+len(d.ByCreation))
	k.created = make([]bool, len(k.trees)+len(d.ByCreation))
	for _, name := range d.ByCreation {
		if of, known := k.trees[name]; known {
			at := len(k.trees)
			k.trees[CreationIndex(name)] = at
			k.byCreation[of] = at
			k.created[at] = true
		}
	}
	k.clear()
	return k
}

// clear drops all resources.
func (k *kindIndex) clear() {
	k.names = newTree(noKey)
	k.rows = make([]rows, len(k.trees))
	for i := range k.rows {
		k.rows[i] = newRows(k.created[i])
	}
	k.unreadable = newRows(false)
	k.changed, k.bytes = true, 0
	k.bodyBytes = 0
	k.waiting = nil
	k.waitingBytes = 0
	k.stale = false
	k.lost = nil
	k.since = backend.Position{}
	k.fillings++
}

// markStale makes fill read the kind again because the store has lost changes: of the keys in lost if known is set,
// otherwise of any keys. If the kind was being read for the first time, it is cleared.
func (k *kindIndex) markStale(lost map[backend.Key]bool, known bool, version uint64) {
	if k.state == givenUp || known && k.state == serving && len(lost) == 0 {
		return
	}
	if (k.state == waiting || k.state == filling) && !k.stale {
		k.clear()
		k.state = waiting
		return
	}
	k.takeWaiting(version)
	switch {
	case known && k.state == serving:
		k.lost = lost
	case known && k.stale && k.lost != nil:
		maps.Copy(k.lost, lost)
	default:
		k.lost = nil
	}
	k.state, k.stale = waiting, true
	k.fillings++
}

// Estimated sizes in bytes: of an entry without its packed rows, including its item in the tree of names; of a row
// whose value the leaf stores only once; and of any other row.
const (
	entryBytes     = int(unsafe.Sizeof(Entry{})+unsafe.Sizeof(slot{})) + 40
	commonRowBytes = 10
	rowBytes       = 44
)

// newEntry returns the entry of a resource. It copies the resource, so that no other memory is kept alive.
func (k *kindIndex) newEntry(r *backend.Resource) *Entry {
	e := &Entry{
		Resource: backend.Resource{Key: r.Key, Envelope: r.Envelope, Body: r.Body},
		expires:  !r.ExpiresAt.IsZero(),
	}
	e.Resource.Kind, e.Resource.Namespace = k.Name, unique.Make(r.Namespace).Value()
	created := backend.AppendInt(make([]byte, 0, 128), r.CreatedAt.UnixNano())
	created = backend.AppendString(backend.AppendString(created, r.Namespace), r.Name) // as [backend.OrderTuple] has it
	e.slot = &slot{created: string(created)}
	var made string
	var size int
	e.Body, made, size, e.Err = k.Keep(&e.Resource, func(b *body.Body) []byte { return pack(k.rowsOf(r, k.Rows(b))) })
	e.rows = packed(made)
	e.bytes = uint32(size + len(e.slot.created) + entryBytes)
	return e
}

// damagedEntry returns the entry of a resource that does not decode.
func (k *kindIndex) damagedEntry(key backend.Key, revision backend.Revision) *Entry {
	e := &Entry{
		Resource: backend.Resource{Key: key, Envelope: backend.Envelope{Revision: revision}},
		Err:      backend.ErrUnreadable,
		bytes:    uint32(entryBytes),
	}
	e.slot = &slot{created: string(append(backend.AppendInt(nil, 0), backend.OrderTuple(key.Namespace, key.Name)...))}
	return e
}

// rowsOf returns the rows of a resource, in the order of compareRows.
func (k *kindIndex) rowsOf(r *backend.Resource, found []Row) []row {
	n := 4*timeBytes + len(r.Name) + 2
	for _, f := range found {
		n += len(f.Value)
	}
	out, piece := make([]row, 0, len(found)+4+len(k.nulls)), make([]byte, 0, n)
	add := func(index string, appendTo func([]byte) []byte) {
		if at, known := k.trees[index]; known {
			from := len(piece)
			piece = appendTo(piece)
			out = append(out, row{at, text(piece[from:])}) // the text stays valid, because piece is only appended to
		}
	}
	for _, f := range found {
		add(f.Index, func(b []byte) []byte { return append(b, f.Value...) })
	}
	add(CreatedIndex, func(b []byte) []byte { return backend.AppendInt(b, r.CreatedAt.UnixNano()) })
	add(UpdatedIndex, func(b []byte) []byte { return backend.AppendInt(b, r.UpdatedAt.UnixNano()) })
	add(NameIndex, func(b []byte) []byte { return backend.AppendString(b, r.Name) })
	if !r.ExpiresAt.IsZero() {
		add(expiryIndex, func(b []byte) []byte { return backend.AppendInt(b, r.ExpiresAt.UnixMilli()) })
	}
	slices.SortFunc(out, compareRows)
	some := len(out)
	for of, at := range k.nulls {
		if i, _ := slices.BinarySearchFunc(out[:some], row{index: of}, compareRows); i == some || out[i].index != of {
			out = append(out, row{index: at})
		}
	}
	slices.SortFunc(out, compareRows)
	return slices.Compact(out)
}

// timeBytes is the length of an encoded time.
const timeBytes = 9

// maxWaiting is the maximum size of a kind's queued changes, in bytes. If there are more, the kind is given up.
const maxWaiting = 64 << 20

// take applies a change, or queues it while the kind is being filled.
func (k *kindIndex) take(c keyChange, version uint64) {
	switch k.state {
	case serving, filled:
		k.apply(c, version)
	case waiting:
		if k.stale {
			k.apply(c, version)
		}
	case filling:
		k.waiting = append(k.waiting, c)
		k.waitingBytes += 256
		if c.entry != nil {
			k.waitingBytes += int64(c.entry.bytes)
		}
	}
}

// takeWaiting applies the queued changes.
func (k *kindIndex) takeWaiting(version uint64) {
	for _, c := range k.waiting {
		k.apply(c, version)
	}
	k.waiting, k.waitingBytes = nil, 0
}

// apply puts a change into the trees, unless they already have it or a newer one. A resource that was deleted and
// created again gets a new slot.
func (k *kindIndex) apply(c keyChange, version uint64) {
	var place string
	if c.entry != nil {
		place = c.entry.slot.place()
	} else {
		place = string(backend.OrderTuple(c.key.Namespace, c.key.Name))
	}
	was, known := k.names.get(place)
	now := c.entry
	if known && !c.overrides &&
		(was.Resource.Revision.Compare(c.revision) > 0 || now != nil && was.Resource.Revision == c.revision) ||
		!known && now == nil {
		return
	}
	k.changed = true
	switch {
	case now == nil:
		k.names.remove(item[*Entry]{value: place})
		k.replace(was, &Entry{slot: was.slot})
		was.slot.newest.Store(nil)
		return
	case known && was.slot.created == now.slot.created:
		now.slot = was.slot
	case known: // the old resource was deleted, and another one created
		k.replace(was, &Entry{slot: was.slot})
		was.slot.newest.Store(nil)
		was = &Entry{slot: now.slot}
	default:
		was = &Entry{slot: now.slot}
	}
	now.version = version
	k.names.put(item[*Entry]{now.slot.place(), now})
	k.replace(was, now)
	now.slot.newest.Store(now)
}

// replace updates the rows in which two entries of a slot differ.
func (k *kindIndex) replace(was, now *Entry) {
	k.bytes += int64(now.bytes) - int64(was.bytes)
	k.bodyBytes += int64(len(now.Resource.Body)) - int64(len(was.Resource.Body))
	for a, b := was.rows, now.rows; a != b; { // ends early where the remaining rows are equal
		x, behindX := a.first()
		y, behindY := b.first()
		order := compareRows(x, y)
		if order <= 0 {
			a = behindX
		}
		if order >= 0 {
			b = behindY
		}
		switch {
		case order < 0:
			gone := item[*slot]{x.value, was.slot}
			tree := &k.rows[x.index]
			k.bytes -= tree.cost(x.value)
			tree.remove(gone)
			if at := k.byCreation[x.index]; at != 0 {
				k.bytes -= commonRowBytes
				k.rows[at].remove(gone)
			}
		case order > 0:
			tree := &k.rows[y.index]
			put := item[*slot]{tree.shared(y.value, now.slot), now.slot}
			k.bytes += tree.cost(y.value)
			tree.put(put)
			if at := k.byCreation[y.index]; at != 0 {
				k.bytes += commonRowBytes
				k.rows[at].put(put)
			}
		}
	}
	switch {
	case was.Err == nil && now.Err != nil:
		k.unreadable.put(item[*slot]{of: now.slot})
	case was.Err != nil && now.Err == nil:
		k.unreadable.remove(item[*slot]{of: now.slot})
	}
}

// copy returns an immutable copy of the kind for readers. If nothing has changed, it returns the previous copy, was.
func (k *kindIndex) copy(was *Kind, version uint64) *Kind {
	if was != nil && !k.changed {
		return was
	}
	k.changed = false
	next := new(edit)
	out := &Kind{
		of:         k,
		version:    version,
		names:      k.names.publish(next),
		rows:       make([]*node[*slot], len(k.rows)),
		unreadable: k.unreadable.publish(next),
		bodyBytes:  k.bodyBytes,
	}
	for i := range k.rows {
		out.rows[i] = k.rows[i].publish(next)
	}
	return out
}
