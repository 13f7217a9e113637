package index

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

// fillStep is the number of resources that are put into the trees with the lock held. Between two steps, changes can be
// applied.
const fillStep = 250

// fill reads a kind from the store: the whole kind or, if it is stale, what differs. Changes that the hub delivers
// while a page is read are queued, and applied after the page. The page may already show a later state than such a
// change; revisions are compared, so that the older change does not replace it. After the last page the kind is filled.
// It is served when the hub has delivered all changes that the pages may have shown.
//
//	the store        page 1            page 2             head
//	the hub    --- a ------- b --- c ---------- d --- ... ------ the hub reaches head
//	waiting          a, b      c, d
//	trees                 page 1, a, b   page 2, c, d            serving
//
// fill returns false if the store does not answer.
func (x *Index) fill(ctx context.Context, k *kindIndex) bool {
	x.mu.Lock()
	if !k.stale {
		x.update(k, k.clear)
	}
	k.state, k.read = filling, progress{begin: time.Now(), total: max(k.names.root.len(), len(k.lost))}
	f := filler{x, k, k.fillings}
	stale := k.stale
	known := k.lost != nil
	lost := slices.Collect(maps.Keys(k.lost)) // Begin may add to k.lost meanwhile
	x.mu.Unlock()
	var err error
	switch {
	case !stale:
		err = f.readAll(ctx)
	case !known:
		err = f.readDifferences(ctx)
	default:
		err = f.reread(ctx, lost)
	}
	var head backend.Position
	if err == nil {
		head, err = backend.HeadOf(ctx, x.cfg.Store)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	switch {
	case k.fillings != f.number: // it was cleared meanwhile, or is stale again
	case errors.Is(err, backend.ErrUnavailable):
		x.cfg.Logger.Debug("a kind cannot be filled now", zap.String("kind", k.Name), zap.Error(err))
		k.state = waiting
		return false
	case err != nil:
		if ctx.Err() == nil {
			x.cfg.Logger.Warn(
				"a kind cannot be filled; it is read from the store", zap.String("kind", k.Name), zap.Error(err),
			)
		}
		x.evict(k)
	default:
		f.put(nil) // the changes that came since the last page
		if k.fillings == f.number {
			k.state = filled
			k.since = head
			k.stale = false
			k.lost = nil
		}
		x.publish()
	}
	return true
}

// filler fills a kind. It stops if the kind is cleared or becomes stale again.
type filler struct {
	*Index
	kind *kindIndex
	// number is the value of kind.fillings when the filling began. If that has changed, the filling has ended.
	number int
}

// readAll reads all pages of a kind. A resource that does not decode gets an entry with an error.
func (f *filler) readAll(ctx context.Context) error {
	count, err := f.cfg.Store.Range(ctx, backend.Range{Kind: f.kind.Name, Count: true})
	if err != nil || !f.note(func(r *progress) { r.total = count.Count }) {
		return err
	}
	return f.pages(ctx, backend.Range{
		Kind:  f.kind.Name,
		Limit: backend.MaxLimit,
	}, func(page *backend.Page) []backend.Key {
		made := make([]keyChange, len(page.Resources))
		for i, stored := range page.Resources {
			made[i] = keyChange{key: stored.Key, revision: stored.Revision, entry: f.kind.newEntry(stored)}
		}
		f.putAll(made)
		return nil
	})
}

// readDifferences reads the keys and revisions of a kind, and then the resources that differ from those in the trees.
func (f *filler) readDifferences(ctx context.Context) error {
	var from []byte
	keys := backend.Range{Kind: f.kind.Name, KeysOnly: true, Limit: backend.MaxLimit}
	return f.pages(ctx, keys, func(page *backend.Page) []backend.Key {
		f.mu.Lock()
		names := rowTree[*Entry]{root: f.kind.names.publish(new(edit)), key: noKey}
		f.mu.Unlock()
		run := Run{Start: from}
		if rest, more := keys.After(*page); more {
			run.End = rest.Start
			from = rest.Start
		}
		return differences(&names, run, page.Resources)
	})
}

// differences compares a run of names with the resources that the store has in the same range, in the same order. It
// returns the keys that only one of the two has, and those with different revisions.
func differences(names *rowTree[*Entry], r Run, stored []*backend.Resource) (keys []backend.Key) {
	places := make([]string, len(stored))
	for i, one := range stored {
		places[i] = string(backend.OrderTuple(one.Namespace, one.Name))
	}
	i := 0
	names.scan(r, false, func(n item[*Entry]) bool {
		for ; i < len(stored) && places[i] < n.value; i++ { // only the store has it
			keys = append(keys, stored[i].Key)
		}
		same := false
		if i < len(stored) && places[i] == n.value {
			same = stored[i].Revision == n.of.Resource.Revision
			i++
		}
		if !same {
			keys = append(keys, n.of.Resource.Key)
		}
		return true
	})
	for ; i < len(stored); i++ {
		keys = append(keys, stored[i].Key)
	}
	return keys
}

// pages calls take with each page of a range. Then it rereads the keys that take returns, and the keys of resources on
// the page that did not decode.
func (f *filler) pages(ctx context.Context, r backend.Range, take func(*backend.Page) []backend.Key) error {
	for page, err := range backend.Pages(ctx, f.cfg.Store, r) {
		if err != nil {
			return err
		}
		keys := take(&page)
		for _, key := range page.Unreadable {
			if key == (backend.Key{}) {
				f.cfg.Logger.Warn("a resource has no key that can be read", zap.String("kind", f.kind.Name))
				continue
			}
			keys = append(keys, key)
		}
		if err := f.reread(ctx, keys); err != nil {
			return err
		}
		if !f.note(func(r *progress) { r.done, r.took = r.done+len(page.Resources), time.Since(r.begin) }) {
			return nil
		}
	}
	return nil
}

// reread reads resources by key and replaces them in the trees.
func (f *filler) reread(ctx context.Context, keys []backend.Key) error {
	for len(keys) > 0 {
		got, err := f.cfg.Store.Get(ctx, keys[:min(len(keys), fillStep)]...)
		if errors.Is(err, backend.ErrUnreadable) { // of a single key
			got, err = []*backend.Resource{nil}, nil
		}
		if err != nil {
			return err
		}
		made := make([]keyChange, len(got))
		var absent []int
		for i, stored := range got {
			made[i] = f.stored(keys[i], stored)
			if stored == nil {
				absent = append(absent, i)
			}
		}
		if err := f.find(ctx, made, absent); err != nil {
			return err
		}
		if !f.putAll(made) {
			return nil
		}
		keys = keys[len(got):]
	}
	return nil
}

// stored returns the change that puts a resource of the store into the trees. r is nil if the store does not have it.
func (f *filler) stored(key backend.Key, r *backend.Resource) keyChange {
	if r == nil {
		return keyChange{key: key, overrides: true}
	}
	return keyChange{key: key, revision: r.Revision, entry: f.kind.newEntry(r), overrides: true}
}

// find looks up with [backend.Ranges] the keys for which [backend.Store.Get] has returned nil. Get also returns nil for
// a resource that does not decode.
func (f *filler) find(ctx context.Context, made []keyChange, absent []int) error {
	if len(absent) == 0 {
		return nil
	}
	// The revision of a resource that does not decode is unknown. It is set to the head of the store, so that changes
	// up to there do not replace it.
	head, err := backend.HeadOf(ctx, f.cfg.Store)
	if err != nil {
		return err
	}
	ranges := make([]backend.Range, len(absent))
	for i, at := range absent {
		key := made[at].key
		place := backend.OrderTuple(key.Namespace, key.Name)
		ranges[i] = backend.Range{
			Kind:      key.Kind,
			Namespace: key.Namespace,
			Start:     place,
			End:       backend.Successor(place),
			Limit:     1,
		}
	}
	pages, err := backend.Ranges(ctx, f.cfg.Store, ranges)
	if err != nil {
		return err
	}
	for i, at := range absent {
		key := made[at].key
		switch page := &pages[i]; {
		case len(page.Unreadable) > 0:
			revision := head.Shard(backend.ShardOf(f.cfg.Store, key.Namespace))
			made[at].revision, made[at].entry = revision, f.kind.damagedEntry(key, revision)
		case len(page.Resources) > 0:
			made[at] = f.stored(key, page.Resources[0])
		}
	}
	return nil
}

// putAll puts resources into the trees, some at a time. It returns false if the kind is no longer being filled.
func (f *filler) putAll(made []keyChange) bool {
	for len(made) > 0 {
		n := min(len(made), fillStep)
		if !f.locked(func() { f.put(made[:n]) }) {
			return false
		}
		made = made[n:]
	}
	return true
}

// note applies the changes that were queued during a page, and updates the progress. It returns false if the kind is no
// longer being filled.
func (f *filler) note(update func(*progress)) bool {
	return f.locked(func() {
		update(&f.kind.read)
		f.logProgress()
		f.put(nil)
	})
}

// locked calls do with mu held and returns true, if the kind is still being filled; otherwise it returns false.
func (f *filler) locked(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kind.fillings == f.number {
		do()
	}
	return f.kind.fillings == f.number
}

// put puts a part of a page into the trees, or applies the queued changes if part is empty. The caller holds mu.
func (f *filler) put(part []keyChange) {
	f.version++
	f.update(f.kind, func() {
		for _, c := range part {
			f.kind.apply(c, f.version)
		}
		if len(part) == 0 {
			f.kind.takeWaiting(f.version)
		}
	})
	if f.fit() {
		f.publish() // kinds that were given up are no longer served
	}
}
