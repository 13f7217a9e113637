package reconcile

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// pageSize is the number of resources that are read in one call.
	pageSize = 500
	// lookPause is the pause between two checks of a shard's record.
	lookPause = time.Second
	// sweepPause is the pause between two scans of pending deletions.
	sweepPause = 10 * time.Second
)

// maintain does the following every second until ctx ends:
//
//	if this gateway's catalogue is the newest    save, then scanKinds for the kinds that it returns
//	always, but only every 10 s                  sweep
func (f *follower) maintain(ctx context.Context) error {
	sweep := time.Now().Add(rand.N(sweepPause))
	wasNewest := false
	for {
		newest, err := f.r.Newest(ctx)
		if err != nil {
			return err
		}
		if newest && !wasNewest { // until no rebind of an older gateway can be applied any more
			at, err := f.r.cfg.Store.Position(ctx)
			if err != nil {
				return err
			}
			if !wait.For(ctx, rebindTime) || !f.awaitHandled(ctx, at) {
				return ctx.Err()
			}
			if newest, err = f.r.Newest(ctx); err != nil {
				return err
			}
		}
		wasNewest = newest
		if !newest {
			f.mayRebind.Store(false)
			f.r.scanned.set(f.shard, false)
		} else if err := f.saveAndScan(ctx); err != nil {
			return err
		}
		if time.Now().After(sweep) {
			if err := f.sweep(ctx); err != nil {
				return err
			}
			sweep = time.Now().Add(sweepPause)
		}
		if !wait.For(ctx, lookPause+rand.N(lookPause/4)) {
			return ctx.Err()
		}
	}
}

// awaitHandled waits until all changes up to a position are handled, but at most settleTime. It returns false if ctx
// ends first.
func (f *follower) awaitHandled(ctx context.Context, at backend.Position) bool {
	for late := time.Now().Add(settleTime); time.Now().Before(late); {
		f.mu.Lock()
		handled := f.handled.Shard(f.shard)
		f.mu.Unlock()
		if handled.Compare(at.Shard(f.shard)) >= 0 {
			return true
		}
		if !wait.For(ctx, rebindingPause) {
			return false
		}
	}
	return true
}

// saveAndScan saves the position and scans kinds. It is called only while this gateway's catalogue is the newest.
func (f *follower) saveAndScan(ctx context.Context) error {
	stale, err := f.look(ctx)
	if err != nil {
		return err
	}
	f.mayRebind.Store(true)
	if len(stale) == 0 || f.givesWay() {
		return nil
	}
	err = f.scanKinds(ctx, stale)
	if errors.Is(err, errNotNewest) { // another catalogue was accepted meanwhile; the page stays unscanned
		return nil
	}
	if err != nil {
		return err
	}
	_, err = f.look(ctx) // deletes wait until it is known that the scans are done
	return err
}

// look calls save, and adds the shard to Reconciler.scanned or removes it. It returns the result of save.
func (f *follower) look(ctx context.Context) (stale []staleKind, err error) {
	stale, err = f.save(ctx)
	if err != nil {
		return nil, err
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	f.r.scanned.set(f.shard, len(stale) == 0 && len(f.left) == 0)
	return stale, nil
}

// staleKind is a kind that must be scanned, because its fingerprint differs from the fingerprint of its last scan.
type staleKind struct {
	kind        *kind.Kind
	fingerprint string
}

// save stores the handled position. All gateways together store it at most once a second. save also removes the
// fingerprints of other catalogues from the record, and returns the kinds that must be scanned.
func (f *follower) save(ctx context.Context) (stale []staleKind, err error) {
	f.mu.Lock()
	handled, scanAll := f.handled, f.scanAll
	left := maps.Clone(f.left)
	f.mu.Unlock()
	fingerprints := map[string]string{}
	for _, k := range f.r.cfg.Kinds.All() {
		if fingerprints[k.Name], err = f.r.fingerprint(ctx, k); err != nil {
			return nil, err
		}
	}
	if scanAll {
		if err := f.rescanElsewhere(ctx); err != nil {
			return nil, err
		}
	}
	err = f.r.update(ctx, f.shard, func(rec *record) bool {
		now := f.r.cfg.Clock().UTC().Truncate(time.Millisecond)
		// From now on changes are handled by this gateway's declarations. If an earlier catalogue becomes the newest
		// again, its gateways must scan the kinds that they declare differently.
		forgot := rec.forget(func(kind, by string) bool { return fingerprints[kind] != by || left[kind] })
		if scanAll {
			rec.Scanned, rec.Scan = nil, nil
		}
		stale = stale[:0]
		for _, k := range f.r.cfg.Kinds.All() {
			if rec.Scanned[k.Name] == "" {
				stale = append(stale, staleKind{k, fingerprints[k.Name]})
			}
		}
		was, err := backend.ParsePosition(rec.Position)
		behind := rec.Position == "" || err != nil || was.Shard(f.shard).Compare(handled.Shard(f.shard)) < 0
		if handled.IsZero() || !scanAll && (!behind || now.Sub(rec.Saved).Abs() < lookPause/2) {
			return forgot
		}
		rec.Position, rec.Saved = handled.String(), now
		return true
	})
	if err == nil {
		f.mu.Lock()
		f.scanAll = f.scanAll && !scanAll
		maps.DeleteFunc(f.left, func(kind string, _ bool) bool { return left[kind] })
		f.mu.Unlock()
	}
	return stale, err
}

// scanKinds re-evaluates the resources of stale kinds, unless another gateway is doing this.
func (f *follower) scanKinds(ctx context.Context, stale []staleKind) error {
	scanned := false
	for _, one := range stale {
		k, by := one.kind, one.fingerprint
		for {
			start, mine, err := f.claim(ctx, k, by)
			if err != nil {
				return err
			}
			if !mine {
				break
			}
			scanned = true
			r := backend.Range{Kind: k.Name, Start: start, Shard: f.shard + 1, Limit: pageSize}
			page, err := f.r.cfg.Store.Range(ctx, r)
			if err == nil { // the changes wake the resources that wait for these
				var out reevaluation
				if out, err = f.reevaluate(ctx, page.Resources, nil); err == nil && out.skipped {
					err = errNotNewest
				}
			}
			if err == nil {
				rest, more := r.After(page)
				err = f.noteScan(ctx, k, by, rest.Start, !more)
			}
			if err != nil {
				return err
			}
		}
	}
	if scanned { // finish deletions that were held by references which are gone now
		return f.finishAll(ctx)
	}
	return nil
}

// fillTime is the maximum time for which scans wait for the index.
const fillTime = time.Minute

// givesWay reports whether scans must wait because the index is being filled. Clients wait for the index, and scans
// would slow it down. Scans wait at most fillTime. Saving the position and finishing deletions do not wait.
func (f *follower) givesWay() bool {
	if f.r.cfg.Index == nil || f.r.cfg.Index.Stats().Filling == 0 {
		f.waiting = time.Time{}
		return false
	}
	if f.waiting.IsZero() {
		f.waiting = time.Now()
	}
	return time.Since(f.waiting) < fillTime
}

// claim reserves the scan of a kind for this gateway, and returns the sort key at which the scan continues. mine is
// false if nothing must be scanned, or if another gateway is scanning the shard.
func (f *follower) claim(ctx context.Context, k *kind.Kind, by string) (start []byte, mine bool, err error) {
	err = f.r.update(ctx, f.shard, func(rec *record) bool {
		start, mine = nil, false
		now := f.r.cfg.Clock().UTC().Truncate(time.Millisecond)
		if rec.Scanned[k.Name] == by {
			return false
		}
		if s := rec.Scan; s != nil && s.Holder != f.r.holder {
			// A claim that ends later than twice claimTime was written with a wrong clock.
			if left := s.Until.Sub(now); left > 0 && left <= 2*claimTime {
				return false
			}
		}
		if s := rec.Scan; s != nil && s.Kind == k.Name && s.By == by {
			start = s.Start
		}
		mine = true
		rec.Scan = &scan{Kind: k.Name, By: by, Start: start, Holder: f.r.holder, Until: now.Add(claimTime)}
		return true
	})
	return start, mine, err
}

// noteScan records the sort key at which a scan continues, or that the scan is done.
func (f *follower) noteScan(ctx context.Context, k *kind.Kind, by string, next []byte, done bool) error {
	return f.r.update(ctx, f.shard, func(rec *record) bool {
		s := rec.Scan
		if s == nil || s.Kind != k.Name || s.By != by || s.Holder != f.r.holder {
			return false // another gateway has continued or finished the scan
		}
		if !done {
			s.Start = next
			return true
		}
		rec.Scan = nil
		if rec.Scanned == nil {
			rec.Scanned = map[string]string{}
		}
		rec.Scanned[k.Name] = by
		return true
	})
}

// sweep finishes pending deletions that nothing holds any more, unless another gateway has just done so.
func (f *follower) sweep(ctx context.Context) error {
	var ranges []backend.Range
	for _, k := range f.r.cfg.Kinds.All() {
		ranges = append(ranges, f.deletingRange(k))
		ranges[len(ranges)-1].Limit = 1
	}
	found := false
	for some := range slices.Chunk(ranges, backend.MaxRanges) {
		pages, err := backend.Ranges(ctx, f.r.cfg.Store, some)
		if err != nil {
			return err
		}
		found = found || slices.ContainsFunc(pages, func(p backend.Page) bool { return len(p.Resources) > 0 })
	}
	if !found { // a store in which nothing is being deleted is not written
		return nil
	}
	mine := false
	err := f.r.update(ctx, f.shard, func(rec *record) bool {
		now := f.r.cfg.Clock().UTC().Truncate(time.Millisecond)
		mine = now.Sub(rec.Swept).Abs() >= sweepPause/2
		rec.Swept = now
		return mine
	})
	if err != nil || !mine {
		return err
	}
	return f.finishAll(ctx)
}

// deletingRange returns the range of a kind's resources whose deletion was requested.
func (f *follower) deletingRange(k *kind.Kind) backend.Range {
	return backend.Range{Kind: k.Name, Deleting: true, Shard: f.shard + 1, Limit: pageSize}
}

// finishAll calls Finish for all resources whose deletion was requested.
func (f *follower) finishAll(ctx context.Context) error {
	for _, k := range f.r.cfg.Kinds.All() {
		for page, err := range backend.Pages(ctx, f.r.cfg.Store, f.deletingRange(k)) {
			if err != nil {
				return err
			}
			for _, r := range page.Resources {
				if err := f.r.Finish(ctx, r.Key); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// rebindTime is how long a gateway may send rebinds after it has checked that its catalogue is the newest. When the
// catalogue of another gateway becomes the newest, the other gateway waits for this time before it scans. So its scan
// finds all rebinds. It could not find later ones, because they have no log entries.
const rebindTime = time.Second

// Newest reports whether this gateway's catalogue is the last one that the store has accepted. If the store has lost
// all data, it first records this gateway's catalogue.
func (r *Reconciler) Newest(ctx context.Context) (bool, error) {
	hash, err := catalogue.Newest(ctx, r.cfg.Store)
	if err == nil && hash == "" {
		if err = (catalogue.Gate{Store: r.cfg.Store, Logger: r.cfg.Logger}).Accept(
			ctx, catalogue.Candidate{Kinds: r.cfg.Descriptors, AllowBreaking: true},
		); err == nil {
			hash, err = catalogue.Newest(ctx, r.cfg.Store)
		}
	}
	switch {
	case errors.Is(err, backend.ErrFormat): // a newer release keeps the record
		return false, nil
	case err != nil:
		return false, err
	}
	return hash == r.hash, nil
}

// fingerprint returns a text that changes whenever all resources of a kind must be re-evaluated. Records store this
// text.
func (r *Reconciler) fingerprint(ctx context.Context, k *kind.Kind) (string, error) {
	if err := r.loadControllers(ctx); err != nil {
		return "", err
	}
	name := fmt.Sprint(k.Declared, k.Conditions != nil, r.controllers.owns(k.Name))
	for _, ref := range k.References {
		if to, err := r.cfg.Kinds.Find(ref.Kind); err == nil {
			name += fmt.Sprint(" ", to.Conditions != nil)
		}
	}
	return name, nil
}
