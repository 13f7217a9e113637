package index

import (
	"context"
	"iter"
	"sort"
	"time"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
)

// View is an immutable state of the index.
type View struct {
	index *Index
	*snapshot
	now time.Time
	// reads records what is read from the view; nil if nothing is recorded.
	reads *ReadSet
	// Err is the error of the store, if [Index.View] has returned no state because the head of the store could not be
	// read.
	Err error
}

// View returns a state of the index that has everything that the store had acknowledged when View was called, through
// any gateway. It returns false if there is no such state in time; the caller then reads the store.
func (x *Index) View(ctx context.Context) (View, bool) {
	s := x.current.Load()
	if s.served == 0 {
		x.fallbacks.Add(1)
		return View{}, false
	}
	head, err := backend.HeadOf(ctx, x.cfg.Store)
	if err == nil {
		if last := x.head.Load(); last == nil || !last.Equal(head) {
			at := head // head itself would be allocated for each read
			x.head.Store(&at)
		}
		s = x.await(ctx, head)
		if s != nil && s.served > 0 {
			return x.view(s), true
		}
	}
	x.fallbacks.Add(1)
	return View{Err: err}, false
}

// view returns the view of a state. The clock is read after the state was taken. With an earlier time a page would be
// inconsistent: it would lack resources that had expired when the kind was filled, but show others that had expired
// before them.
func (x *Index) view(s *snapshot) View {
	x.reads.Add(1)
	return View{index: x, snapshot: s, now: x.now()}
}

// Current returns the current state of the index without asking the store, which may have acknowledged more. The clock
// of the view is the zero time, at which no resource is expired.
func (x *Index) Current() View { return View{index: x, snapshot: x.current.Load()} }

// PinnedChanged returns a channel that is closed when a pinned kind next changes, or when it begins or ceases to be
// served.
func (x *Index) PinnedChanged() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pinnedChanged == nil {
		x.pinnedChanged = make(chan struct{})
	}
	return x.pinnedChanged
}

// Recent returns a resource from the index; nil if the index does not have it or it cannot be read. The store, which is
// not asked, may have a newer state or have deleted the resource. The caller may modify the struct, but not what it
// points to.
func (x *Index) Recent(key backend.Key) *backend.Resource {
	known := x.byName[key.Kind]
	if known == nil {
		return nil
	}
	k := x.current.Load().kinds[known.number]
	if k == nil {
		return nil
	}
	e := k.Get(key.Namespace, key.Name)
	if e == nil || e.Err != nil {
		return nil
	}
	r := e.Resource
	return &r
}

// Await returns a state that serves a kind and has everything that the store had acknowledged when Await was called. It
// waits at most [Patience], and then returns a [FillingError]. ok is false if there is no room for the kind or the
// index does not have it; the caller then reads the store. before is a view that does not serve the kind. If the store
// did not answer when before was taken, it is not asked again.
func (x *Index) Await(ctx context.Context, before View, kind string) (v View, ok bool, err error) {
	k := x.byName[kind]
	if k == nil || x.leftToStore(k) {
		return View{}, false, nil
	}
	if before.Err != nil {
		return View{}, false, before.Err
	}
	head, err := backend.HeadOf(ctx, x.cfg.Store)
	if err != nil {
		return View{}, false, err
	}
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	for {
		s := x.current.Load()
		if s.kinds[k.number] != nil && s.shows(head) {
			return x.view(s), true, nil
		}
		if x.leftToStore(k) {
			return View{}, false, nil
		}
		select {
		case <-x.after(s):
		case <-patience.C:
			return View{}, false, x.fillingError(k)
		case <-ctx.Done():
			return View{}, false, ctx.Err()
		}
	}
}

// Patience is how long a read waits for a kind that is being filled.
const Patience = 5 * time.Second

// leftToStore reports whether a kind must be read from the store because there is no room for it or the index does not
// run. A pinned kind is never read from the store.
func (x *Index) leftToStore(k *kindIndex) bool {
	if k.Pinned {
		return false
	}
	if !x.runs.Load() {
		return true
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return k.state == givenUp && k.tooLarge
}

// Needs estimates the memory in bytes for all kinds if one of them had a given number of resources; 0 if that is not
// known.
func (x *Index) Needs(kind string, resources int) int64 {
	x.mu.Lock()
	defer x.mu.Unlock()
	k := x.byName[kind]
	if k == nil || k.mean == 0 {
		return 0
	}
	return x.bytes - k.bytes + k.mean*int64(resources)
}

// await returns the first snapshot that has everything up to a head; nil if there is none in time.
func (x *Index) await(ctx context.Context, head backend.Position) *snapshot {
	var late <-chan time.Time
	for {
		s := x.current.Load()
		if s.shows(head) {
			return s
		}
		if s.stuck.Load() {
			return nil
		}
		if late == nil {
			x.waits.Add(1)
			timer := time.NewTimer(x.cfg.Wait)
			defer timer.Stop()
			late = timer.C
		}
		select {
		case <-x.after(s):
		case <-late:
			s.stuck.Store(true)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}

// after returns a channel that is closed when the snapshot is replaced.
func (x *Index) after(s *snapshot) <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.current.Load() != s {
		done := make(chan struct{})
		close(done)
		return done
	}
	if x.advanced == nil {
		x.advanced = make(chan struct{})
	}
	return x.advanced
}

// shows reports whether the snapshot has everything up to a head of the same history.
func (s *snapshot) shows(head backend.Position) bool {
	if s.position.Shards() != head.Shards() {
		return false
	}
	for i := range head.Shards() {
		at, want := s.position.Shard(i), head.Shard(i)
		if at.Epoch != want.Epoch || at.Seq < want.Seq {
			return false
		}
	}
	return true
}

// Kind returns a kind of the view. ok is false if the kind must be read from the store.
func (v *View) Kind(name string) (*Kind, bool) {
	if v.index == nil {
		return nil, false
	}
	k := v.index.byName[name]
	if k == nil || v.kinds[k.number] == nil {
		v.reads.addKind(nil)
		return nil, false
	}
	v.reads.addKind(v.kinds[k.number])
	return v.kinds[k.number], true
}

// Position returns the position of the view. A stream from there delivers all later changes.
func (v *View) Position() backend.Position {
	v.reads.addPosition()
	return v.Barrier()
}

// Barrier returns the position of the view without recording a read. It is for callers that only wait until something
// else has reached that position.
func (v *View) Barrier() backend.Position {
	if v.snapshot == nil {
		return backend.Position{}
	}
	return v.position
}

// Served reports whether the view is a state of an index, and not the zero View or a result of [Index.View] with false.
func (v *View) Served() bool { return v.index != nil }

// Shows reports whether the view has everything up to a position of the same history.
func (v *View) Shows(at backend.Position) bool { return v.snapshot != nil && v.shows(at) }

// Now returns the time of the store's clock when the view was taken. Resources that had expired by then must not be
// shown.
func (v *View) Now() time.Time { return v.now }

// Kind is a kind in one state of the index. It is immutable.
type Kind struct {
	of         *kindIndex // only for its fields that never change
	version    uint64
	names      *node[*Entry]
	rows       []*node[*slot]
	unreadable *node[*slot]
	// bodyBytes is the total size of the stored bodies.
	bodyBytes int64
}

// BodyBytes returns the total size of the stored bodies in bytes.
func (k *Kind) BodyBytes() int64 { return k.bodyBytes }

// Version returns a number that grows with each change of the kind.
func (k *Kind) Version() uint64 { return k.version }

// Run is a range of the tree of names, or of the rows of an index. Rows are ordered by value and then by the name of
// the resource. Start is inclusive and End exclusive; nil means no bound.
type Run struct {
	// Index is the name of the index; empty for the tree of names. If there is no such index, the run is empty.
	Index      string
	Start, End []byte
}

// Has reports whether the kind has an index. An empty name stands for the tree of names, which every kind has.
func (k *Kind) Has(index string) bool { return index == "" || k.Number(index) >= 0 }

// Get returns the resource with a name; nil if there is none. It may have expired.
func (k *Kind) Get(namespace, name string) *Entry {
	const around = 4 // the other bytes of the tuple; more if a name has a 0x00
	place := make([]byte, 0, len(namespace)+len(name)+around)
	return k.At(backend.AppendString(backend.AppendString(place, namespace), name))
}

// At is like Get, but takes a key encoded by [backend.OrderTuple].
func (k *Kind) At(place []byte) *Entry {
	e, _ := k.byName().get(text(place))
	return e
}

// Len returns the number of rows in a run, or of resources if it is a run of names. Expired resources count, and in a
// run of names unreadable ones too.
func (k *Kind) Len(r Run) int {
	if r.Index == "" {
		return k.byName().length(r)
	}
	return k.tree(r.Index).length(r)
}

// Unreadable returns the number of unreadable resources in a run of names.
func (k *Kind) Unreadable(r Run) int { return treeOf(k.unreadable, false).length(r) }

// EachUnreadable yields the unreadable resources in a run of names, in order. They may have expired.
func (k *Kind) EachUnreadable(r Run) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		treeOf(k.unreadable, false).scan(r, false, func(i item[*slot]) bool { return yield(k.entry(i.of)) })
	}
}

// Expired yields the resources that have expired at a time and were not removed yet.
func (k *Kind) Expired(now time.Time) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		k.tree(expiryIndex).scan(Run{}, false, func(i item[*slot]) bool {
			e := k.entry(i.of)
			return e.ExpiredAt(now) && yield(e)
		})
	}
}

// Scan calls yield for each row of a run, in order or in reverse, until yield returns false. value is the value of the
// row; in a [CreationIndex] it is the creation time.
func (k *Kind) Scan(r Run, reverse bool, yield func(value string, e *Entry) bool) {
	if r.Index == "" {
		k.byName().scan(r, reverse, func(i item[*Entry]) bool { return yield("", i.of) })
		return
	}
	tree, at := k.tree(r.Index), k.Number(r.Index)
	next := batch{kind: k, created: at >= 0 && k.of.created[at], beyond: tree.beyond(r, reverse), yield: yield}
	tree.from(r, reverse, next.add)
	next.show()
}

// batch collects rows and shows their resources together, so that the processor can load them from memory at the same
// time. BenchmarkGrowth (label-and-field) measures it.
type batch struct {
	kind *Kind
	// created reports whether the creation time is shown in place of the value.
	created bool
	// beyond reports whether a row is past the end of the run; nil if no row is.
	beyond func(item[*slot]) bool
	yield  func(value string, e *Entry) bool
	items  [16]item[*slot]
	n      int
}

// add adds a row. It returns false if no more rows are wanted.
func (b *batch) add(i item[*slot]) bool {
	b.items[b.n] = i
	b.n++
	return b.n < len(b.items) || b.show()
}

// show calls yield for the collected rows that belong to the run. It returns false if the scan is over, because yield
// returned false or the run has ended.
func (b *batch) show() bool {
	var entries [len(b.items)]*Entry
	items := b.items[:b.n]
	b.n = 0
	ends := b.beyond != nil && len(items) > 0 && b.beyond(items[len(items)-1])
	if ends {
		items = items[:sort.Search(len(items), func(i int) bool { return b.beyond(items[i]) })]
	}
	for i := range items {
		entries[i] = items[i].of.newest.Load()
	}
	for i := range items {
		if e := entries[i]; e == nil || e.version > b.kind.version {
			entries[i] = b.kind.named(items[i].of)
		}
	}
	for i := range items {
		value := items[i].value
		if b.created {
			value = items[i].of.created[:timeBytes]
		}
		if !b.yield(value, entries[i]) {
			return false
		}
	}
	return !ends
}

// entry returns the resource of a slot as the view has it: slot.newest or, if that is newer than the view, the entry in
// the view's tree of names.
func (k *Kind) entry(s *slot) *Entry {
	if e := s.newest.Load(); e != nil && e.version <= k.version {
		return e
	}
	return k.named(s)
}

// named returns the resource of a slot from the view's tree of names.
func (k *Kind) named(s *slot) *Entry {
	e, _ := k.byName().get(s.place())
	return e
}

// tree returns the tree of an index; an empty one if the kind does not have the index.
func (k *Kind) tree(index string) *rowTree[*slot] {
	at := k.Number(index)
	if at < 0 {
		return treeOf(&node[*slot]{}, false)
	}
	return treeOf(k.rows[at], k.of.created[at])
}

func treeOf(root *node[*slot], created bool) *rowTree[*slot] {
	return &rowTree[*slot]{root: root, key: keyOf(created)}
}

func (k *Kind) byName() *rowTree[*Entry] { return &rowTree[*Entry]{root: k.names, key: noKey} }

// text returns a bound as a string without copying it. The caller must not keep the string.
func text(bound []byte) string { return unsafe.String(unsafe.SliceData(bound), len(bound)) }

// Number returns the number of an index, for [Entry.Any]; -1 if the kind does not have it.
func (k *Kind) Number(index string) int {
	if at, known := k.of.trees[index]; known {
		return at
	}
	return -1
}

// Any reports whether accepts returns true for any value of the resource in an index, which is given by its number. The
// values are passed in order. They are shared and must not be modified.
func (e *Entry) Any(number int, accepts func([]byte) bool) bool {
	for row := range e.rows.all() {
		switch {
		case row.index < number:
		case row.index > number:
			return false
		case accepts(unsafe.Slice(unsafe.StringData(row.value), len(row.value))):
			return true
		}
	}
	return false
}

// First returns the value of the first row of a resource in a run. ok is false if the resource has no row in it. The
// index must not be a [CreationIndex].
func (k *Kind) First(e *Entry, r Run) (value string, ok bool) {
	in := func(value string) bool {
		return (r.Start == nil || compare(value, e.slot.place(), text(r.Start), "") >= 0) && (r.End == nil || compare(value, e.slot.place(), text(r.End), "") < 0)
	}
	if r.Index == "" {
		return "", in("")
	}
	number := k.Number(r.Index)
	for row := range e.rows.all() {
		if row.index == number && in(row.value) {
			return row.value, true
		}
	}
	return "", false
}
