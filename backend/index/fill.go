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

// fillStep is how many resources are put into the trees at a time, while no change is.
const fillStep = 250

// fill reads a kind from the store: all of it, or the differences if the kind is stale. Its changes wait
// while a page is read and are applied after it: a page that shows a change which the hub has not delivered
// is not undone by an older one, since revisions are compared. In the end the kind waits until the hub has
// delivered all that the pages can have shown.
//
// It returns false if the store does not answer now.
func (x *Index) fill(ctx context.Context, k *kindIndex) bool {
	x.mu.Lock()
	if !k.stale {
		x.change(k, k.clear)
	}
	k.state, k.read = filling, reading{begin: time.Now(), total: max(k.names.root.len(), len(k.lost))}
	f := filler{x, k, k.fillings}
	stale, lost := k.stale, k.lost
	x.mu.Unlock()
	var err error
	switch {
	case !stale:
		err = f.readAll(ctx)
	case lost == nil:
		err = f.compare(ctx)
	default:
		err = f.reread(ctx, slices.Collect(maps.Keys(lost)))
	}
	var head backend.Head
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
			x.cfg.Logger.Warn("a kind cannot be filled; it is read from the store", zap.String("kind", k.Name), zap.Error(err))
		}
		x.giveUp(k)
	default:
		f.put(nil) // the changes that came since the last page
		if k.fillings == f.number {
			k.state, k.since, k.stale, k.lost = filled, head.Position, false, nil
		}
		x.publish()
	}
	return true
}

// filler fills a kind, as long as it is not cleared and does not become stale again.
type filler struct {
	*Index
	kind   *kindIndex
	number int // kind.fillings
}

// readAll reads the pages of a kind. What does not decode is there by its key, so that a
// single read says so.
func (f *filler) readAll(ctx context.Context) error {
	count, err := f.cfg.Store.Range(ctx, backend.Range{Kind: f.kind.Name, Count: true})
	if err != nil || !f.note(func(r *reading) { r.total = count.Count }) {
		return err
	}
	return f.pages(ctx, backend.Range{Kind: f.kind.Name, Limit: backend.MaxLimit}, func(page *backend.Page) []backend.Key {
		made := make([]change, len(page.Resources))
		for i, stored := range page.Resources {
			made[i] = change{key: stored.Key, revision: stored.Revision, entry: f.kind.entry(stored)}
		}
		f.putAll(made)
		return nil
	})
}

// compare reads the keys and revisions of a kind, and then the resources of which the trees
// have another revision or none, or that only the trees have.
func (f *filler) compare(ctx context.Context) error {
	from := ""
	return f.pages(ctx, backend.Range{Kind: f.kind.Name, KeysOnly: true, Limit: backend.MaxLimit}, func(page *backend.Page) (differ []backend.Key) {
		f.mu.Lock()
		names := tree[*Entry]{root: f.kind.names.publish(new(edit)), key: noKey}
		f.mu.Unlock()
		rest, more := backend.Range{}.After(*page)
		end := string(rest.Start)
		stored, place := page.Resources, ""
		// next takes the next resource of the page.
		next := func() *backend.Resource {
			one := stored[0]
			if stored, place = stored[1:], ""; len(stored) > 0 {
				place = string(backend.OrderTuple(stored[0].Namespace, stored[0].Name))
			}
			return one
		}
		if len(stored) > 0 {
			place = string(backend.OrderTuple(stored[0].Namespace, stored[0].Name))
		}
		names.from(Run{Start: []byte(from)}, false, func(n item[*Entry]) bool {
			if more && n.value >= end {
				return false
			}
			for len(stored) > 0 && place < n.value {
				differ = append(differ, next().Key)
			}
			if len(stored) == 0 || place != n.value || next().Revision != n.of.Resource.Revision {
				differ = append(differ, n.of.Resource.Key)
			}
			return true
		})
		for len(stored) > 0 {
			differ = append(differ, next().Key)
		}
		from = end
		return differ
	})
}

// pages passes the pages of a range to take. It then reads the keys that take returns, and
// the keys of resources that did not decode, once more.
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
		if !f.note(func(r *reading) { r.done, r.took = r.done+len(page.Resources), time.Since(r.begin) }) {
			return nil
		}
	}
	return nil
}

// reread replaces the resources of the trees under keys by the store's.
func (f *filler) reread(ctx context.Context, keys []backend.Key) error {
	for len(keys) > 0 {
		got, err := f.cfg.Store.Get(ctx, keys[:min(len(keys), fillStep)]...)
		if errors.Is(err, backend.ErrUnreadable) { // of a single key
			got, err = []*backend.Resource{nil}, nil
		}
		if err != nil {
			return err
		}
		made := make([]change, len(got))
		var absent []int
		for i, stored := range got {
			if made[i] = f.stored(keys[i], stored); stored == nil {
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

// stored returns the change to the resource that the store has under a key, nil for none.
func (f *filler) stored(key backend.Key, r *backend.Resource) change {
	if r == nil {
		return change{key: key, instead: true}
	}
	return change{key: key, revision: r.Revision, entry: f.kind.entry(r), instead: true}
}

// find looks by [backend.Store.Range] for the keys that [backend.Store.Get] reports as absent:
// Get leaves out resources that do not decode.
func (f *filler) find(ctx context.Context, made []change, absent []int) error {
	if len(absent) == 0 {
		return nil
	}
	// What does not decode is as new as the changes up to here: none of them overtakes it.
	head, err := backend.HeadOf(ctx, f.cfg.Store)
	if err != nil {
		return err
	}
	ranges := make([]backend.Range, len(absent))
	for i, at := range absent {
		key := made[at].key
		place := backend.OrderTuple(key.Namespace, key.Name)
		ranges[i] = backend.Range{Kind: key.Kind, Namespace: key.Namespace, Start: place, End: backend.Successor(place), Limit: 1}
	}
	pages, err := backend.Ranges(ctx, f.cfg.Store, ranges)
	if err != nil {
		return err
	}
	for i, at := range absent {
		key := made[at].key
		switch page := &pages[i]; {
		case len(page.Unreadable) > 0:
			revision := head.Position.Shard(f.shard(key.Namespace))
			made[at].revision, made[at].entry = revision, f.kind.damaged(key, revision)
		case len(page.Resources) > 0:
			made[at] = f.stored(key, page.Resources[0])
		}
	}
	return nil
}

// putAll puts resources into the trees, a few at a time. It reports whether the kind is
// still being filled.
func (f *filler) putAll(made []change) bool {
	for len(made) > 0 {
		n := min(len(made), fillStep)
		if !f.locked(func() { f.put(made[:n]) }) {
			return false
		}
		made = made[n:]
	}
	return true
}

// note applies the changes that have waited for a page, and notes the progress. It reports whether the kind
// is still being filled.
func (f *filler) note(progress func(*reading)) bool {
	return f.locked(func() {
		progress(&f.kind.read)
		f.logProgress()
		f.put(nil)
	})
}

// locked calls do under the lock if the kind is still being filled, and reports whether it is.
func (f *filler) locked(do func()) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.kind.fillings == f.number {
		do()
	}
	return f.kind.fillings == f.number
}

// put applies a part of a page, or if that is empty the changes that have waited. The caller holds mu.
func (f *filler) put(part []change) {
	f.version++
	f.change(f.kind, func() {
		for _, c := range part {
			f.kind.apply(c, f.version)
		}
		if len(part) == 0 {
			f.kind.takeWaiting(f.version)
		}
	})
	if f.fit() {
		f.publish() // what was given up is not served any more
	}
}
