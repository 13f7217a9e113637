package query

import (
	"context"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/query/plan"
)

// Get returns a resource; nil if there is none. If the body of the resource does not match its kind, the error is
// UNREADABLE.
func (r *Reader) Get(ctx context.Context, id kind.Identity) (*Resource, error) {
	k, key, err := r.kinds.Resolve(id)
	if err != nil {
		return nil, err
	}
	rights, err := r.use(ctx, k, descriptor.VerbGet)
	if err != nil {
		return nil, access.About(err, key)
	}
	if err := budget.From(ctx).Spend(budget.Rows, 1); err != nil {
		return nil, err
	}
	if !rights.Sees(k.Kind, key) {
		return nil, nil
	}
	view := r.view(ctx)
	var out *Resource
	served, ok := view.Kind(k.Name)
	source := "index"
	if ok {
		out, err = r.getIndexed(served, key, view.Now())
	} else {
		out, err = r.fetch.One(ctx, k, key)
		source = "store"
	}
	explainKeys(ctx, source, []backend.Key{key}, []*Resource{out})
	return out, err
}

// getIndexed gets a resource from the index.
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

// Node returns the resource with a global id; nil if there is none.
func (r *Reader) Node(ctx context.Context, id string) (*Resource, error) {
	key, err := r.kinds.KeyOf(id)
	if err != nil {
		return nil, err
	}
	return r.Get(ctx, kind.IdentityOf(key))
}

// NodeKey returns the key that a global id encodes. It returns an error if the caller may not GET any resource of the
// kind.
func (r *Reader) NodeKey(ctx context.Context, id string) (backend.Key, error) {
	key, err := r.kinds.KeyOf(id)
	if err != nil {
		return backend.Key{}, err
	}
	k, err := r.kinds.Find(key.Kind)
	if err != nil {
		return backend.Key{}, err
	}
	_, err = r.use(ctx, k, descriptor.VerbGet)
	return key, access.About(err, key)
}

// Lookup returns the resources with the given keys, in the order of the keys. An element is nil if the resource does
// not exist, cannot be read, or may not be seen by the caller. Lookup calls the store once for each backend.MaxKeys
// keys, or more often if the store returns fewer at a time.
func (r *Reader) Lookup(ctx context.Context, keys []backend.Key) ([]*Resource, error) {
	rights, err := r.Rights(ctx)
	if err != nil {
		return nil, err
	}
	var k *kind.Kind
	var scope *access.Scope
	kinds, hidden := make([]*kind.Kind, len(keys)), 0
	for i, key := range keys {
		if k == nil || k.Name != key.Kind {
			if k, err = r.kinds.Find(key.Kind); err != nil {
				return nil, err
			}
			if !k.Has(descriptor.VerbGet) {
				return nil, rights.Use(k.Kind, descriptor.VerbGet)
			}
			scope = rights.Scope(k.Kind, descriptor.VerbGet)
		}
		kinds[i] = k
		if !scope.Has(key.Namespace, key.Name) {
			kinds[i] = nil
			hidden++
		}
	}
	if hidden == 0 {
		return r.lookup(ctx, keys, kinds)
	}
	out := make([]*Resource, len(keys))
	var at []int
	var seen []backend.Key
	var of []*kind.Kind
	for i, key := range keys {
		if kinds[i] != nil {
			at = append(at, i)
			seen = append(seen, key)
			of = append(of, kinds[i])
		}
	}
	found, err := r.lookup(ctx, seen, of)
	if err != nil {
		return nil, err
	}
	for n, i := range at {
		out[i] = found[n]
	}
	return out, nil
}

// lookup reads resources that the caller may see. kinds has the kind of each key.
func (r *Reader) lookup(ctx context.Context, keys []backend.Key, kinds []*kind.Kind) ([]*Resource, error) {
	if err := budget.From(ctx).Spend(budget.Rows, len(keys)); err != nil {
		return nil, err
	}
	if out, ok := r.lookupIndexed(ctx, keys); ok {
		explainKeys(ctx, "index", keys, out)
		return out, nil
	}
	out, err := r.fetch.Keys(ctx, keys, func(i int) *kind.Kind { return kinds[i] })
	if err == nil {
		explainKeys(ctx, "store", keys, out)
	}
	return out, err
}

// lookupIndexed reads resources from the index. It returns false if the index does not have one of the kinds.
func (r *Reader) lookupIndexed(ctx context.Context, keys []backend.Key) ([]*Resource, bool) {
	view := r.view(ctx)
	var k *index.Kind
	last := ""
	out, all := make([]*Resource, len(keys)), make([]Resource, len(keys))
	for i, key := range keys {
		if k == nil || key.Kind != last {
			var ok bool
			k, ok = view.Kind(key.Kind)
			if !ok {
				return nil, false
			}
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
	return out, true
}

// explainKeys adds reads by key to the explanation of the operation.
func explainKeys(ctx context.Context, source string, keys []backend.Key, found []*Resource) {
	e := plan.ExplanationFrom(ctx)
	if e == nil {
		return
	}
	for from := 0; from < len(keys); {
		one := plan.Explained{Kind: keys[from].Kind, Source: source, By: "key"}
		for ; from < len(keys) && keys[from].Kind == one.Kind; from++ {
			if one.Looked++; found[from] != nil {
				one.Returned++
			}
		}
		e.Add(one)
	}
}
