package index

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unique"
	"unsafe"

	"github.com/tidwall/btree"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

// Definition of a kind in the index.
type Definition struct {
	// Name of the kind.
	Name string
	// Indexes are the rows that are kept; others of a resource are not.
	Indexes []string
	// Sortable are those of the Indexes of which the resources without a row are
	// found too, see [NullIndex].
	Sortable []string
	// ByCreation are those of the Indexes of which the resources with one value are found
	// in the order of their creation too, see [CreationIndex].
	ByCreation []string
	// Rows returns the index rows of a resource. They may share memory with its body.
	Rows func(*body.Body) []Row
	// Keep reads the body of a resource into memory of its own, as [body.Arena.Keep] does.
	Keep func(*backend.Resource) (kept body.Body, bytes int, err error)
}

// Row places a resource in an index: (Index, Value, namespace, name), ordered by Value,
// which is one or more tuple elements ([backend.AppendString] and its siblings).
type Row struct {
	Index string
	Value []byte
}

// MaxRows and MaxRowBytes bound the rows of one resource and the index and value of one.
const (
	MaxRows     = 1024
	MaxRowBytes = 2048
)

// The indexes that every kind has besides those of its definition.
const (
	// CreatedIndex and UpdatedIndex have every resource, by a time as [row.EncodeTime] writes it.
	CreatedIndex = "createdAt"
	UpdatedIndex = "updatedAt"
	// NameIndex has every resource by its name, whatever its namespace, if the
	// definition asks for it.
	NameIndex = "name"
	// expiryIndex has the resources that expire.
	expiryIndex = "expiresAt"
)

// NullIndex has the resources without a row in a sortable index, by their names alone.
func NullIndex(index string) string { return index + "\x00" }

// CreationIndex has the rows of an index in another order: those of one value by the time
// at which the resource was created, before its name. That time, as [CreatedIndex] has it,
// stands for the value where a run is read, and behind the value in the bounds of a run.
func CreationIndex(index string) string { return index + "\x00" + CreatedIndex }

// Entry is a resource in the index. It is never changed once it is in a tree.
//
// What a scan looks at in each resource it passes comes first, within 64 bytes: most of
// its time it waits for entries to come from memory.
type Entry struct {
	// version counts the changes of the index: a view shows what is not newer than itself.
	version uint64
	// slot is the resource's, from the first change to the last.
	slot *slot
	rows packed
	// Err says why the body cannot be read.
	Err   error
	bytes uint32
	// expires says whether Resource has an ExpiresAt.
	expires bool
	// Body of the resource, unless there is an Err.
	Body body.Body
	// Resource has no references, see [backend.Range.Bare].
	Resource backend.Resource
}

// ExpiredAt says whether the resource is expired at the given instant.
func (e *Entry) ExpiredAt(now time.Time) bool { return e.expires && e.Resource.ExpiredAt(now) }

// row is a row of an entry.
type row struct {
	index int // among the trees of the kind
	value string
}

func compareRows(a, b row) int {
	return cmp.Or(cmp.Compare(a.index, b.index), strings.Compare(a.value, b.value))
}

// Place is where the resource stands in the order of names, as [backend.OrderTuple] has it.
func (e *Entry) Place() string { return e.slot.place() }

// state of a kind.
type state int

// The states.
const (
	// waits to be filled.
	waits state = iota
	// lacks some keys, which the store has lost, and waits for them to be read.
	lacks
	// fills: pages are put into the trees, changes wait in between.
	fills
	// filled: the pages are read, but some show changes that the hub has not delivered.
	filled
	serves
	// givenUp: it had no room, or something of it cannot be read.
	givenUp
)

// named is an entry in the order of names.
type named struct {
	place string
	*Entry
}

func lessNamed(a, b named) bool { return a.place < b.place }

// shelf is a kind as the index fills and changes it. It is guarded by the index's mu,
// but for what never changes.
type shelf struct {
	*Definition
	// number of the kind, trees by the names of their indexes, and where nulls lie; they never change.
	number int
	trees  map[string]int
	nulls  map[int]int
	// byCreation is the tree of the same rows by creation, by the number of a tree; 0 if there is none.
	byCreation []int
	// created says which trees, by their numbers, are such trees.
	created []bool
	// room is memory in which entries are made: a *rowRoom.
	room sync.Pool

	state state
	// fillings counts how often the kind was begun to be filled or was cleared.
	fillings int
	names    *btree.BTreeG[named]
	changed  bool // names, since they were copied
	rows     []rows
	// unreadable have no rows.
	unreadable rows
	// waiting are the changes since a page was begun to be read.
	waiting      []change
	waitingBytes int64
	// lost are the keys of a kind that lacks them.
	lost []backend.Key
	// since is the position from which on the trees show one state of the store.
	since backend.Position
	bytes int64
	mean  int64 // of a resource, when the kind was given up
	// tooLarge says that it was given up for want of room.
	tooLarge bool
	// failed is how often the kind was given up since it served, and rest in how many
	// rounds it is tried again.
	failed, rest int
}

// change is what became of a key at a revision; no entry means that it was deleted.
type change struct {
	key      backend.Key
	revision backend.Revision
	entry    *Entry
}

func newShelf(d *Definition, number int) *shelf {
	s := &shelf{Definition: d, number: number, trees: map[string]int{}, nulls: map[int]int{}}
	for _, name := range append([]string{CreatedIndex, UpdatedIndex, expiryIndex}, d.Indexes...) {
		if _, known := s.trees[name]; !known {
			s.trees[name] = len(s.trees)
		}
	}
	for _, name := range d.Sortable {
		if of, known := s.trees[name]; known {
			at := len(s.trees)
			s.trees[NullIndex(name)], s.nulls[of] = at, at
		}
	}
	s.byCreation = make([]int, len(s.trees)+len(d.ByCreation))
	s.created = make([]bool, len(s.trees)+len(d.ByCreation))
	for _, name := range d.ByCreation {
		if of, known := s.trees[name]; known {
			at := len(s.trees)
			s.trees[CreationIndex(name)], s.byCreation[of], s.created[at] = at, at, true
		}
	}
	s.room.New = func() any { return new(rowRoom) }
	s.clear()
	return s
}

// clear forgets all resources.
func (s *shelf) clear() {
	s.names = btree.NewBTreeGOptions(lessNamed, btree.Options{Degree: degree, NoLocks: true})
	s.rows = make([]rows, len(s.trees))
	for i := range s.rows {
		s.rows[i] = newRows(s.created[i])
	}
	s.unreadable = newRows(false)
	s.changed, s.bytes = true, 0
	s.waiting, s.waitingBytes, s.lost = nil, 0, nil
	s.since = backend.Position{}
	s.fillings++
}

// lose has keys read again that the store has lost: all of the kind if that is less work.
func (s *shelf) lose(keys map[backend.Key]bool) {
	switch {
	case len(keys) == 0:
	case len(keys) > max(manyLost, s.names.Len()/10):
		s.clear()
		s.state = waits
	default:
		s.lost, s.state = slices.Collect(maps.Keys(keys)), lacks
	}
}

// manyLost is how many lost keys are read one by one at least, however small the kind.
const manyLost = 1000

// forget removes what the trees have of a key.
func (s *shelf) forget(key backend.Key) {
	place := string(backend.OrderTuple(key.Namespace, key.Name))
	if found, known := s.names.Delete(named{place: place}); known {
		s.changed = true
		s.replace(found.Entry, &Entry{slot: found.slot})
		found.slot.newest.Store(nil)
	}
}

// What an entry takes beside its bytes: itself and the places in trees.
const (
	entryBytes = int(unsafe.Sizeof(Entry{})) + 64
	rowBytes   = 2 * int(unsafe.Sizeof(item{}))
)

// entry makes the entry of a resource: a copy, which keeps nothing else in memory.
func (s *shelf) entry(r *backend.Resource) *Entry {
	e := &Entry{Resource: backend.Resource{Key: r.Key, Envelope: r.Envelope, Body: r.Body}, expires: !r.ExpiresAt.IsZero()}
	e.Resource.Kind, e.Resource.Namespace = s.Name, unique.Make(r.Namespace).Value()
	room := s.room.Get().(*rowRoom)
	room.created = backend.AppendInt(room.created[:0], r.CreatedAt.UnixNano())
	room.created = backend.AppendString(backend.AppendString(room.created, r.Namespace), r.Name) // as [backend.OrderTuple] has it
	e.slot = &slot{created: string(room.created)}
	var bytes int
	if e.Body, bytes, e.Err = s.Keep(&e.Resource); e.Err == nil {
		rows := s.rowsOf(r, s.Rows(&e.Body), room)
		e.rows, room.packed = pack(rows, room.packed[:0])
		for _, row := range rows {
			if bytes += rowBytes; s.byCreation[row.index] != 0 {
				bytes += rowBytes
			}
		}
	}
	s.room.Put(room)
	// The rows count twice: the trees have the values of another entry's piece, or copies.
	e.bytes = uint32(bytes + len(e.slot.created) + 2*len(e.rows) + entryBytes)
	return e
}

// damaged is the entry of a resource that does not decode.
func (s *shelf) damaged(key backend.Key) *Entry {
	e := &Entry{Resource: backend.Resource{Key: key}, Err: backend.ErrUnreadable, bytes: uint32(entryBytes)}
	e.slot = &slot{created: string(append(backend.AppendInt(nil, 0), backend.OrderTuple(key.Namespace, key.Name)...))}
	return e
}

// rowRoom is memory in which the rows of an entry are made.
type rowRoom struct {
	rows    []row
	values  []byte
	packed  []byte
	created []byte
}

// rowsOf are the rows of an entry, in order. They are in the room until it is used again.
func (s *shelf) rowsOf(r *backend.Resource, found []Row, room *rowRoom) []row {
	n := 4*timeBytes + len(r.Name) + 2
	for _, f := range found {
		n += len(f.Value)
	}
	out, piece := room.rows[:0], slices.Grow(room.values[:0], n)
	add := func(index string, appendTo func([]byte) []byte) {
		if at, known := s.trees[index]; known {
			from := len(piece)
			piece = appendTo(piece)
			out = append(out, row{at, text(piece[from:])}) // what is there is not changed any more
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
	for of, at := range s.nulls {
		if i, _ := slices.BinarySearchFunc(out[:some], row{index: of}, compareRows); i == some || out[i].index != of {
			out = append(out, row{index: at})
		}
	}
	slices.SortFunc(out, compareRows)
	room.rows, room.values = out, piece
	return slices.Compact(out)
}

// timeBytes is how long a time is as the value of a row.
const timeBytes = 9

// maxWaiting is how many bytes of changes may wait while a page is read.
const maxWaiting = 64 << 20

// take makes a change, or lets it wait while pages are read.
func (s *shelf) take(c change, version uint64) {
	switch s.state {
	case serves, filled:
		s.apply(c, version)
	case fills, lacks:
		s.waiting = append(s.waiting, c)
		s.waitingBytes += 256
		if c.entry != nil {
			s.waitingBytes += int64(c.entry.bytes)
		}
		if s.waitingBytes > maxWaiting { // it is written faster than it is read: begin again later
			s.clear()
			s.state = givenUp
		}
	}
}

// takeWaiting makes the changes that have waited.
func (s *shelf) takeWaiting(version uint64) {
	for _, c := range s.waiting {
		s.apply(c, version)
	}
	s.waiting, s.waitingBytes = nil, 0
}

// apply makes a change, unless the trees have it already.
func (s *shelf) apply(c change, version uint64) {
	var place string
	if c.entry != nil {
		place = c.entry.slot.place()
	} else {
		place = string(backend.OrderTuple(c.key.Namespace, c.key.Name))
	}
	found, known := s.names.Get(named{place: place})
	was, now := found.Entry, c.entry
	if known && (was.Resource.Revision.Compare(c.revision) > 0 || now != nil && was.Resource.Revision == c.revision) || !known && now == nil {
		return
	}
	s.changed = true
	switch {
	case now == nil:
		s.names.Delete(named{place: place})
		s.replace(was, &Entry{slot: was.slot})
		was.slot.newest.Store(nil)
		return
	case known && was.slot.created == now.slot.created:
		now.slot = was.slot
	case known: // another one of that name
		s.replace(was, &Entry{slot: was.slot})
		was.slot.newest.Store(nil)
		was = &Entry{slot: now.slot}
	default:
		was = &Entry{slot: now.slot}
	}
	now.version = version
	s.names.Set(named{now.slot.place(), now})
	s.replace(was, now)
	now.slot.newest.Store(now)
}

// replace changes the rows in which two entries of a slot differ.
func (s *shelf) replace(was, now *Entry) {
	s.bytes += int64(now.bytes) - int64(was.bytes)
	// A row stays in its tree as long as its value does: the piece of a later entry would be
	// kept by the one row that was new in it.
	alone := was.rows != ""
	for a, b := was.rows, now.rows; a != b; { // what follows is equal where the rest is
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
			s.rows[x.index].remove(item{x.value, was.slot})
			if at := s.byCreation[x.index]; at != 0 {
				s.rows[at].remove(item{x.value, was.slot})
			}
		case order > 0:
			tree := &s.rows[y.index]
			put := item{tree.shared(y.value, alone), now.slot}
			tree.put(put)
			if at := s.byCreation[y.index]; at != 0 {
				s.rows[at].put(put)
			}
		}
	}
	switch {
	case was.Err == nil && now.Err != nil:
		s.unreadable.put(item{slot: now.slot})
	case was.Err != nil && now.Err == nil:
		s.unreadable.remove(item{slot: now.slot})
	}
}

// copy is the kind as readers see it, with what has not changed of the copy before.
func (s *shelf) copy(was *Kind, version uint64) *Kind {
	if was != nil && !s.changed {
		return was
	}
	out := &Kind{shelf: s, version: version, names: s.names.Copy(), rows: make([]*btree.BTreeG[item], len(s.rows))}
	s.changed = false
	for i := range s.rows {
		out.rows[i] = s.rows[i].copy(was, func(k *Kind) *btree.BTreeG[item] { return k.rows[i] })
	}
	out.unreadable = s.unreadable.copy(was, func(k *Kind) *btree.BTreeG[item] { return k.unreadable })
	return out
}

// copy is the tree as readers see it: that of the kind's copy before, if it has not changed.
func (r *rows) copy(was *Kind, of func(*Kind) *btree.BTreeG[item]) *btree.BTreeG[item] {
	if was != nil && !r.dirty {
		return of(was)
	}
	r.dirty = false
	return r.tree.Copy()
}
