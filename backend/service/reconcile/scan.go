package reconcile

import (
	"context"
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// scan judges everything anew, and returns a position from which it is followed.
func (f *follower) scan(ctx context.Context) (at backend.Position, err error) {
	judgements := f.r.cfg.Judge.Judgements()
	if at, err = f.r.cfg.Store.Position(ctx); err != nil {
		return at, err
	}
	shard := f.lease.shard + 1 // as a range has it
	kinds := f.r.cfg.Kinds.All()
	for _, k := range kinds {
		if len(k.References) == 0 && k.Conditions == nil {
			continue
		}
		if err := f.again(ctx, func() error { return f.scanRange(ctx, backend.Range{Kind: k.Name, Shard: shard}, f.settleAll) }); err != nil {
			return at, err
		}
	}
	for _, k := range kinds { // behind all others, which may have held them
		if err := f.again(ctx, func() error {
			return f.scanRange(ctx, backend.Range{Kind: k.Name, Index: backend.DeletingIndex, Shard: shard}, f.finishEach)
		}); err != nil {
			return at, err
		}
	}
	f.judgements = judgements
	clear(f.ahead)
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

// settleAll judges resources anew. The changes wake who waits for those that become ready.
func (f *follower) settleAll(ctx context.Context, resources []*backend.Resource) error {
	_, err := f.settleEach(ctx, resources, nil)
	return err
}

// finishEach finishes the deletions of resources that nothing holds.
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
