package query

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// Get returns a resource, nil if there is none. One that is stored in a form
// that its kind cannot read is UNREADABLE.
func (r *Reader) Get(ctx context.Context, c access.Caller, id kind.Identity) (*Resource, error) {
	k, key, err := r.kinds.Resolve(id)
	if err != nil {
		return nil, err
	}
	if err := access.Authorize(ctx, c, k.Kind, descriptor.VerbGet); err != nil {
		return nil, err
	}
	if err := budget.From(ctx).Spend(budget.Rows, 1); err != nil {
		return nil, err
	}
	view := r.view(ctx)
	if served, ok := view.Kind(k.Name); ok {
		out, err := r.getIndexed(served, key, view.Now())
		explainKeys(ctx, "index", []backend.Key{key}, []*Resource{out})
		return out, err
	}
	var out *Resource
	defer func() { explainKeys(ctx, "store", []backend.Key{key}, []*Resource{out}) }()
	spent := budget.From(ctx)
	spent.Leave()
	got, err := backend.GetBare(ctx, r.store, key)
	spent.Return(ctx)
	if err != nil {
		return nil, failure.Of(err, key)
	}
	if err := hold(ctx, got); err != nil {
		return nil, held(err)
	}
	stored := got[0]
	if stored == nil {
		return nil, nil
	}
	b, err := k.Body.Read(stored)
	if err != nil {
		r.unreadable.Note(stored, err)
		return nil, failure.Of(err, key)
	}
	out = &Resource{Stored: stored, Body: b}
	return out, nil
}

// getIndexed is Get from the index in memory.
func (r *Reader) getIndexed(k *index.Kind, key backend.Key, now time.Time) (*Resource, error) {
	e := k.Get(key.Namespace, key.Name)
	switch {
	case e == nil || e.ExpiredAt(now):
		return nil, nil
	case e.Err != nil:
		r.unreadable.Note(&e.Resource, e.Err)
		return nil, failure.Of(e.Err, key)
	}
	return &Resource{Stored: &e.Resource, Body: &e.Body}, nil
}

// Node returns the resource of a global id, nil if there is none.
func (r *Reader) Node(ctx context.Context, c access.Caller, id string) (*Resource, error) {
	key, err := r.kinds.KeyOf(id)
	if err != nil {
		return nil, err
	}
	at := kind.Identity{Kind: key.Kind, Name: key.Name}
	if key.Namespace != "" {
		at.Namespace = &key.Namespace
	}
	return r.Get(ctx, c, at)
}

// NodeKey is the key that a global id means, of a kind that the caller may read.
func (r *Reader) NodeKey(ctx context.Context, c access.Caller, id string) (backend.Key, error) {
	key, err := r.kinds.KeyOf(id)
	if err != nil {
		return backend.Key{}, err
	}
	k, err := r.kinds.Find(key.Kind)
	if err != nil {
		return backend.Key{}, err
	}
	return key, access.Authorize(ctx, c, k.Kind, descriptor.VerbGet)
}

// Lookup returns resources of any kinds, parallel to the keys: nil where there
// is none, or none that can be read. It is one call of the store for each
// backend.MaxKeys keys, or as many as the store returns at once.
func (r *Reader) Lookup(ctx context.Context, c access.Caller, keys []backend.Key) ([]*Resource, error) {
	out := make([]*Resource, len(keys))
	var k *kind.Kind
	kinds := make([]*kind.Kind, len(keys))
	for i, key := range keys {
		if k == nil || k.Name != key.Kind {
			var err error
			if k, err = r.kinds.Find(key.Kind); err != nil {
				return nil, err
			}
			if err := access.Authorize(ctx, c, k.Kind, descriptor.VerbGet); err != nil {
				return nil, err
			}
		}
		kinds[i] = k
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Rows, len(keys)); err != nil {
		return nil, err
	}
	if r.lookupIndexed(ctx, keys, out) {
		explainKeys(ctx, "index", keys, out)
		return out, nil
	}
	defer func() { explainKeys(ctx, "store", keys, out) }()
	for begin := 0; begin < len(keys); {
		part := keys[begin:min(begin+backend.MaxKeys, len(keys))]
		expected := r.sizes.estimate(kinds[begin], len(part))
		if err := spent.Expect(ctx, expected); err != nil {
			return nil, held(err)
		}
		spent.Leave()
		got, err := backend.GetBare(ctx, r.store, part...)
		spent.Return(ctx)
		spent.Unexpect(expected)
		if len(part) == 1 && errors.Is(err, backend.ErrUnreadable) {
			begin++
			continue
		}
		if err != nil {
			return nil, failure.Of(err, backend.Key{})
		}
		if err := hold(ctx, got); err != nil {
			return nil, held(err)
		}
		for i, stored := range got {
			if stored == nil {
				continue
			}
			b, err := kinds[begin+i].Body.Read(stored)
			if err != nil {
				r.unreadable.Note(stored, err)
				continue
			}
			out[begin+i] = &Resource{Stored: stored, Body: b}
		}
		begin += len(got)
	}
	return out, nil
}

// lookupIndexed is Lookup from the index in memory. It says whether that serves all kinds.
func (r *Reader) lookupIndexed(ctx context.Context, keys []backend.Key, out []*Resource) bool {
	view := r.view(ctx)
	var k *index.Kind
	last := ""
	for _, key := range keys {
		if key.Kind != last {
			var ok bool
			if k, ok = view.Kind(key.Kind); !ok {
				return false
			}
			last = key.Kind
		}
	}
	all := make([]Resource, len(keys))
	for i, key := range keys {
		if key.Kind != last {
			k, _ = view.Kind(key.Kind)
			last = key.Kind
		}
		e := k.Get(key.Namespace, key.Name)
		switch {
		case e == nil || e.ExpiredAt(view.Now()):
		case e.Err != nil:
			r.unreadable.Note(&e.Resource, e.Err)
		default:
			all[i] = Resource{Stored: &e.Resource, Body: &e.Body}
			out[i] = &all[i]
		}
	}
	return true
}
