package index

import (
	"context"
	"iter"
	"sort"
	"time"
	"unsafe"

	"github.com/sluicegw/sluice/backend"
)

// View is one state of the store, which never changes.
type View struct {
	index *Index
	*snapshot
	now time.Time
	// reads records what is read of the view; nil records nothing.
	reads *ReadSet
	// Err is why [Index.View] returned no state, if the store did not tell how far its log goes.
	Err error
}

// View returns the index's state once it shows all that the store has acknowledged
// until now, through any gateway. It returns false if there is none in time: then the caller
// reads the store.
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

// view returns the view of a state. It reads the clock after the state was taken. What had expired when the kind was
// filled is not in the state; by an earlier clock a page would lack it and still show what expired before it.
func (x *Index) view(s *snapshot) View {
	x.reads.Add(1)
	return View{index: x, snapshot: s, now: x.now()}
}

// Current returns the index's state as it is. It asks nobody: the store may have acknowledged more. Its clock is the
// zero time, at which nothing has expired.
func (x *Index) Current() View { return View{index: x, snapshot: x.current.Load()} }

// PinnedChanged returns a channel that is closed when a pinned kind changes from now on, or is served or no longer
// served.
func (x *Index) PinnedChanged() <-chan struct{} {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.pinnedChanged == nil {
		x.pinnedChanged = make(chan struct{})
	}
	return x.pinnedChanged
}

// Recent returns a resource as the index has it now, nil if it has none that can be read.
// It asks nobody: the store may have a newer one, or none any more. The caller may change
// the resource, but nothing that it leads to.
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

// Await returns the first state that serves a kind and shows everything that the store had acknowledged. It
// waits for at most [Patience]; then it fails with a [FillingError]. It returns false if the kind has no room
// in memory, or is none of the index: then the caller reads the store. before is the view that does not serve
// the kind: if the store did not answer then, it is not asked again.
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

// leftToStore reports whether a kind is read from the store because there is no room for it, or because the
// index does not run. A pinned kind never is: readers wait for it.
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

// Needs is how many bytes of memory all kinds would take, roughly, if one had so many resources; 0 if that is not
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

// await returns the first snapshot that shows a head, nil if there is none in time.
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

// after returns a channel that is closed when another snapshot follows.
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

// shows reports whether the snapshot has everything up to a head, in the same history.
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

// Kind returns a kind of the view, false if it is to be read from the store.
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

// Position returns the position from which a stream has all changes after the view.
func (v *View) Position() backend.Position {
	v.reads.addPosition()
	return v.Barrier()
}

// Barrier returns the position of the view, too, but does not record that it was read. It is for waits until something
// else is as new as the view.
func (v *View) Barrier() backend.Position {
	if v.snapshot == nil {
		return backend.Position{}
	}
	return v.position
}

// Served reports whether the view is a state of an index: [Index.View] has returned it together with true.
func (v *View) Served() bool { return v.index != nil }

// Shows reports whether the view has everything up to a position, in the same history.
func (v *View) Shows(at backend.Position) bool { return v.snapshot != nil && v.shows(at) }

// Now is the store's clock when the view was taken: what has expired then is not to be shown.
func (v *View) Now() time.Time { return v.now }

// Kind is the resources of a kind in one state.
type Kind struct {
	of         *kindIndex // what never changes of it
	version    uint64
	names      *node[*Entry]
	rows       []*node[*slot]
	unreadable *node[*slot]
	// bodyBytes is the size of all stored bodies.
	bodyBytes int64
}

// BodyBytes returns how many bytes the stored bodies of the kind's resources have.
func (k *Kind) BodyBytes() int64 { return k.bodyBytes }

// Version grows with each change of the kind.
func (k *Kind) Version() uint64 { return k.version }

// Run is a part of the names, or of an index: of its rows and the names behind
// them. Start is inclusive, End exclusive; nil leaves that side open.
type Run struct {
	// Index of the rows; empty for the names. One without rows is empty.
	Index      string
	Start, End []byte
}

// Has reports whether the kind has the index.
func (k *Kind) Has(index string) bool { return index == "" || k.Number(index) >= 0 }

// Get returns the resource of a name, nil if there is none. It may have expired.
func (k *Kind) Get(namespace, name string) *Entry {
	const around = 4 // bytes of tuple beside the two names, unless they hold zeros
	place := make([]byte, 0, len(namespace)+len(name)+around)
	return k.At(backend.AppendString(backend.AppendString(place, namespace), name))
}

// At is Get by the place among the names, as [backend.OrderTuple] makes it.
func (k *Kind) At(place []byte) *Entry {
	e, _ := k.byName().get(text(place))
	return e
}

// Len returns how many rows a run has, or how many resources a run of the names has. Expired ones count, and
// among the names unreadable ones.
func (k *Kind) Len(r Run) int {
	if r.Index == "" {
		return k.byName().length(r)
	}
	return k.tree(r.Index).length(r)
}

// Unreadable is how many resources of a run of the names cannot be read.
func (k *Kind) Unreadable(r Run) int { return treeOf(k.unreadable, false).length(r) }

// EachUnreadable returns the resources of a run of the names that cannot be read, in order. They may have expired.
func (k *Kind) EachUnreadable(r Run) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		treeOf(k.unreadable, false).scan(r, false, func(i item[*slot]) bool { return yield(k.entry(i.of)) })
	}
}

// Expired are the resources that have expired and are still there.
func (k *Kind) Expired(now time.Time) iter.Seq[*Entry] {
	return func(yield func(*Entry) bool) {
		k.tree(expiryIndex).scan(Run{}, false, func(i item[*slot]) bool {
			e := k.entry(i.of)
			return e.ExpiredAt(now) && yield(e)
		})
	}
}

// Scan calls yield with the resources of a run, in order or in the reverse, once for
// each row, until it returns false. value is the row's value, without the name, or in a [CreationIndex] the
// time.
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

// batch shows the resources of a few rows together, so that it waits for all of them to
// come from memory at once: see BenchmarkGrowth, label-and-field.
type batch struct {
	kind *Kind
	// created: the time of creation is shown for the value.
	created bool
	// beyond reports whether a row lies behind the run; nil if none does.
	beyond func(item[*slot]) bool
	yield  func(value string, e *Entry) bool
	items  [16]item[*slot]
	n      int
}

// add adds a row. It returns false if no more are wanted.
func (b *batch) add(i item[*slot]) bool {
	b.items[b.n] = i
	b.n++
	return b.n < len(b.items) || b.show()
}

// show calls yield with the resources of the rows that were added, as far as they are of the
// run. It returns false if no more are wanted, or there are none.
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

// entry returns the resource of a slot: the newest one, or if that is newer than the view the one in the
// view's tree of names.
func (k *Kind) entry(s *slot) *Entry {
	if e := s.newest.Load(); e != nil && e.version <= k.version {
		return e
	}
	return k.named(s)
}

// named returns the resource of a slot in the view's tree of names.
func (k *Kind) named(s *slot) *Entry {
	e, _ := k.byName().get(s.place())
	return e
}

// tree returns the rows of an index; none if the kind does not have it.
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

// text is a bound as a string, without a copy: nothing keeps it.
func text(bound []byte) string { return unsafe.String(unsafe.SliceData(bound), len(bound)) }

// Number returns the number of an index of the kind, for [Entry.Any]; -1 if it has none of that name.
func (k *Kind) Number(index string) int {
	if at, known := k.of.trees[index]; known {
		return at
	}
	return -1
}

// Any reports whether the resource has a value in an index, by its number, that is
// accepted. The values come in order; they are shared and must not be changed.
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

// First returns the value of the first row by which a resource is in a run; false if it is not in it. The run
// is not of a [CreationIndex].
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
