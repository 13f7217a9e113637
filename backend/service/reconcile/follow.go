package reconcile

import (
	"context"
	"errors"
	"slices"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/hub"
	"github.com/sluicegw/sluice/backend/service/dependency"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/wait"
)

// step is how many resources are read at a time.
const step = 500

// judgementsPause is after how long of silence is asked whether resources are judged by
// something else now.
const judgementsPause = time.Second

// follower judges anew what follows from the changes of a shard.
type follower struct {
	r     *Reconciler
	lease *lease
	// judgements are those by which everything was judged.
	judgements string
}

// run follows the shard from where the lease says that everything was judged.
func (f *follower) run(ctx context.Context) error {
	at, judgements := f.lease.place()
	f.judgements = judgements
	for {
		var err error
		if at.IsZero() || f.judgements != f.r.cfg.Judge.Judgements() {
			if at, err = f.scan(ctx); err != nil {
				return err
			}
		}
		at, err = f.follow(ctx, at)
		switch {
		case errors.Is(err, backend.ErrPositionExpired):
			f.r.cfg.Logger.Info("the changes since the last judgement are gone from the log: everything is judged anew", zap.Int("shard", f.lease.shard))
			at = backend.Position{}
		case errors.Is(err, backend.ErrLagged), errors.Is(err, errJudgements):
		default:
			return err
		}
	}
}

// errJudgements: resources are judged by something else now.
var errJudgements = errors.New("resources are judged by something else")

// follow judges what follows from the changes after a position, and returns the place
// that it came to.
func (f *follower) follow(ctx context.Context, at backend.Position) (backend.Position, error) {
	w, err := f.r.cfg.Hub.Watch(ctx, hub.Watch{From: at, Covers: f.covers, Reserved: true})
	if err != nil {
		return at, err
	}
	defer w.Close()
	for {
		d, err := w.NextBefore(ctx, time.Now().Add(judgementsPause))
		if err != nil && !errors.Is(err, hub.ErrIdle) {
			return at, err
		}
		if f.judgements != f.r.cfg.Judge.Judgements() {
			return at, errJudgements
		}
		if err != nil {
			at = w.Position()
		} else {
			if err := f.again(ctx, func() error { return f.judge(ctx, d.Events) }); err != nil {
				return at, err
			}
			at = d.Position
		}
		f.lease.done(at, f.judgements)
	}
}

// covers says whether a change may be of consequence.
func (f *follower) covers(key backend.Key) bool {
	if s, ok := f.r.cfg.Store.(backend.Sharder); ok && s.Shard(key.Namespace) != f.lease.shard {
		return false
	}
	k, err := f.r.cfg.Kinds.Find(key.Kind)
	return err == nil && (k.Referred || len(k.References) > 0 || k.Conditions != nil)
}

// again does something until it succeeds, or what is wrong is more than that the store
// does not answer now.
func (f *follower) again(ctx context.Context, do func() error) error {
	for pause := minPause; ; pause = min(2*pause, maxPause) {
		err := do()
		if err == nil || errors.Is(err, backend.ErrClosed) {
			return err
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		f.r.cfg.Logger.Warn("judging what follows from a change failed and is tried again", zap.Int("shard", f.lease.shard), zap.Error(err))
		if !wait.For(ctx, pause) {
			return ctx.Err()
		}
	}
}

// judge judges what follows from changes.
func (f *follower) judge(ctx context.Context, events []backend.Event) error {
	c := consequences{released: map[backend.Key]bool{}}
	for i := range events {
		e := &events[i]
		if k, err := f.r.cfg.Kinds.Find(e.Resource.Kind); err == nil {
			c.add(k, e)
		}
	}
	if err := f.finish(ctx, c); err != nil {
		return err
	}
	if err := f.settleEach(ctx, c.changed); err != nil {
		return err
	}
	if err := f.r.cfg.Judge.Conclude(ctx, c.created); err != nil {
		return err
	}
	return f.wake(ctx, c.woken)
}

// consequences of changes.
type consequences struct {
	// woken are the resources whose dependents may wait for them no more, or for something else.
	woken []backend.Key
	// deleting are those whose deletion may be finished, and released those on which
	// another relies no more: if they are being deleted they may be finished.
	deleting []backend.Key
	released map[backend.Key]bool
	// created are those that were created and have conditions.
	created []*backend.Resource
	// changed are those that may wait for what nobody has judged.
	changed []*backend.Resource
}

func (c *consequences) add(k *kind.Kind, e *backend.Event) {
	r := e.Resource
	if k.Referred && wakes(k, e) && !slices.Contains(c.woken, r.Key) {
		c.woken = append(c.woken, r.Key)
	}
	switch {
	case e.Type == backend.Deleted:
		for _, ref := range r.Refs {
			if ref.Bound {
				c.released[ref.Key] = true
			}
		}
		return
	case r.Deleting:
		if !slices.Contains(c.deleting, r.Key) {
			c.deleting = append(c.deleting, r.Key)
		}
	case len(r.Refs) > backend.MaxChecks, r.Fingerprint != k.Rows.Fingerprint:
		c.changed = append(c.changed, r)
	}
	if e.Type == backend.Added && k.Conditions != nil {
		c.created = append(c.created, r)
	}
	if e.RowsChanged() {
		for _, key := range k.Rows.Dropped(r.Namespace, e.RowsBefore, r.Rows) {
			c.released[key] = true
		}
	}
}

// wakes says whether a change may be of consequence for those that wait for a resource.
func wakes(k *kind.Kind, e *backend.Event) bool {
	if e.Type != backend.Modified || e.Resource.Deleting || e.FingerprintBefore != e.Resource.Fingerprint {
		return true
	}
	before := backend.Resource{Rows: e.RowsBefore}
	return dependency.Ready(k, &before) != dependency.Ready(k, e.Resource)
}

// finish tries to finish the deletions that changes may have set free.
func (f *follower) finish(ctx context.Context, c consequences) error {
	for _, key := range c.deleting {
		delete(c.released, key)
		if err := f.r.cfg.Judge.Finish(ctx, key); err != nil {
			return err
		}
	}
	keys := make([]backend.Key, 0, len(c.released))
	for key := range c.released {
		keys = append(keys, key)
	}
	for len(keys) > 0 {
		got, err := f.r.cfg.Store.Get(ctx, keys[:min(len(keys), backend.MaxKeys)]...)
		if errors.Is(err, backend.ErrUnreadable) {
			got, err = make([]*backend.Resource, 1), nil
		}
		if err != nil {
			return err
		}
		for i, r := range got {
			if r == nil || !r.Deleting {
				continue
			}
			if err := f.r.cfg.Judge.Finish(ctx, keys[i]); err != nil {
				return err
			}
		}
		keys = keys[len(got):]
	}
	return nil
}

// wake judges the dependents of resources anew.
func (f *follower) wake(ctx context.Context, keys []backend.Key) error {
	for len(keys) > 0 {
		some := keys[:min(len(keys), backend.MaxRanges)]
		keys = keys[len(some):]
		ranges := make([]backend.Range, len(some))
		for i := range some {
			ranges[i] = backend.Range{Referenced: &some[i], Limit: step}
		}
		pages, err := backend.Ranges(ctx, f.r.cfg.Store, ranges)
		if err != nil {
			return err
		}
		var found []*backend.Resource
		for _, page := range pages {
			found = append(found, page.Resources...)
		}
		if err := f.settleEach(ctx, found); err != nil {
			return err
		}
		for i, page := range pages {
			if err := f.rest(ctx, ranges[i], page); err != nil {
				return err
			}
		}
	}
	return nil
}

// rest judges the resources of a range that come after a page of it.
func (f *follower) rest(ctx context.Context, r backend.Range, page backend.Page) error {
	for page.More && len(page.Resources) > 0 {
		last := page.Resources[len(page.Resources)-1]
		r.Start = backend.Successor(place(r, last))
		var err error
		if page, err = f.r.cfg.Store.Range(ctx, r); err != nil {
			return err
		}
		if err := f.settleEach(ctx, page.Resources); err != nil {
			return err
		}
	}
	return nil
}

// settleEach judges resources anew, those of a namespace together and each once.
func (f *follower) settleEach(ctx context.Context, resources []*backend.Resource) error {
	seen := make(map[backend.Key]bool, len(resources))
	byNamespace := map[string][]*backend.Resource{}
	var namespaces []string
	for _, r := range resources {
		if seen[r.Key] {
			continue
		}
		seen[r.Key] = true
		if byNamespace[r.Namespace] == nil {
			namespaces = append(namespaces, r.Namespace)
		}
		byNamespace[r.Namespace] = append(byNamespace[r.Namespace], r)
	}
	for _, namespace := range namespaces {
		if err := f.r.cfg.Judge.Settle(ctx, byNamespace[namespace]); err != nil {
			return err
		}
	}
	return nil
}

// scan judges everything anew, and returns a position from which it is followed.
func (f *follower) scan(ctx context.Context) (at backend.Position, err error) {
	judgements := f.r.cfg.Judge.Judgements()
	if at, err = f.r.cfg.Store.Position(ctx); err != nil {
		return at, err
	}
	for _, k := range f.r.cfg.Kinds.All() {
		if len(k.References) > 0 || k.Conditions != nil {
			err = f.again(ctx, func() error { return f.scanRange(ctx, backend.Range{Kind: k.Name}, f.settleEach) })
		}
		if err == nil {
			err = f.again(ctx, func() error {
				return f.scanRange(ctx, backend.Range{Kind: k.Name, Index: backend.DeletingIndex}, f.finishEach)
			})
		}
		if err != nil {
			return at, err
		}
	}
	f.judgements = judgements
	f.lease.done(at, judgements)
	return at, nil
}

// scanRange does something with the resources of a range that lie in the shard.
func (f *follower) scanRange(ctx context.Context, r backend.Range, do func(context.Context, []*backend.Resource) error) error {
	for r.Limit = step; ; {
		page, err := f.r.cfg.Store.Range(ctx, r)
		if err != nil {
			return err
		}
		if len(page.Resources) == 0 {
			return nil
		}
		last := page.Resources[len(page.Resources)-1]
		own := slices.DeleteFunc(slices.Clone(page.Resources), func(o *backend.Resource) bool { return !f.covers(o.Key) })
		if err := do(ctx, own); err != nil {
			return err
		}
		if !page.More {
			return nil
		}
		r.Start = backend.Successor(place(r, last))
	}
}

func (f *follower) finishEach(ctx context.Context, resources []*backend.Resource) error {
	for _, r := range resources {
		if err := f.r.cfg.Judge.Finish(ctx, r.Key); err != nil {
			return err
		}
	}
	return nil
}

// place of a resource in the order of a range.
func place(r backend.Range, of *backend.Resource) []byte {
	switch {
	case r.Referenced != nil:
		return of.Key.Append(nil)
	case r.Index == backend.DeletingIndex:
		return append(backend.AppendBool(nil, true), backend.OrderTuple(of.Namespace, of.Name)...)
	}
	return backend.OrderTuple(of.Namespace, of.Name)
}
