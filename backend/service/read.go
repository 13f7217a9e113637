package service

import (
	"context"
	"errors"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/budget"
)

// Get returns a resource, nil if there is none. One that is stored in a form
// that its kind cannot read is UNREADABLE.
func (s *Service) Get(ctx context.Context, c Caller, id Identity) (*Resource, error) {
	k, key, err := s.resolve(id)
	if err != nil {
		return nil, err
	}
	if err := s.authorize(ctx, c, k.Kind, backend.VerbGet); err != nil {
		return nil, err
	}
	if err := budget.From(ctx).Spend(budget.Rows, 1); err != nil {
		return nil, err
	}
	spent := budget.From(ctx)
	spent.Leave()
	got, err := backend.GetBare(ctx, s.cfg.Store, key)
	spent.Return(ctx)
	if err != nil {
		return nil, translate(err, key)
	}
	if err := hold(ctx, got); err != nil {
		return nil, held(err)
	}
	stored := got[0]
	if stored == nil {
		return nil, nil
	}
	b, err := k.body.Read(stored)
	if err != nil {
		s.noteUnreadable(stored, err)
		return nil, translate(err, key)
	}
	return &Resource{Stored: stored, Body: b}, nil
}

// Node returns the resource of a global id, nil if there is none.
func (s *Service) Node(ctx context.Context, c Caller, id string) (*Resource, error) {
	key, err := ParseGlobalID(id)
	if err != nil {
		return nil, err
	}
	at := Identity{Kind: key.Kind, Name: key.Name}
	if key.Namespace != "" {
		at.Namespace = &key.Namespace
	}
	return s.Get(ctx, c, at)
}

// Lookup returns resources of any kinds, parallel to the keys: nil where there
// is none, or none that can be read. It is one call of the store for each
// backend.MaxKeys keys, or as many as the store returns at once.
func (s *Service) Lookup(ctx context.Context, c Caller, keys []backend.Key) ([]*Resource, error) {
	out := make([]*Resource, len(keys))
	var k *kind
	kinds := make([]*kind, len(keys))
	for i, key := range keys {
		if k == nil || k.Name != key.Kind {
			var err error
			if k, err = s.kind(key.Kind); err != nil {
				return nil, err
			}
			if err := s.authorize(ctx, c, k.Kind, backend.VerbGet); err != nil {
				return nil, err
			}
		}
		kinds[i] = k
	}
	spent := budget.From(ctx)
	if err := spent.Spend(budget.Rows, len(keys)); err != nil {
		return nil, err
	}
	for begin := 0; begin < len(keys); {
		part := keys[begin:min(begin+backend.MaxKeys, len(keys))]
		expected := kinds[begin].estimate(len(part))
		if err := spent.Expect(ctx, expected); err != nil {
			return nil, held(err)
		}
		spent.Leave()
		got, err := backend.GetBare(ctx, s.cfg.Store, part...)
		spent.Return(ctx)
		spent.Unexpect(expected)
		if len(part) == 1 && errors.Is(err, backend.ErrUnreadable) {
			begin++
			continue
		}
		if err != nil {
			return nil, translate(err, backend.Key{})
		}
		if err := hold(ctx, got); err != nil {
			return nil, held(err)
		}
		for i, stored := range got {
			if stored == nil {
				continue
			}
			b, err := kinds[begin+i].body.Read(stored)
			if err != nil {
				s.noteUnreadable(stored, err)
				continue
			}
			out[begin+i] = &Resource{Stored: stored, Body: b}
		}
		begin += len(got)
	}
	return out, nil
}

func (s *Service) read(ctx context.Context, k *kind, key backend.Key) (*backend.Resource, error) {
	got, err := s.cfg.Store.Get(ctx, key)
	if err != nil {
		return nil, translate(err, key)
	}
	return got[0], nil
}

// present is the answer to a write. What was stored can be read, unless an older
// or newer gateway stored what stays; then the answer has no body.
func (s *Service) present(k *kind, stored *backend.Resource) *Resource {
	b, err := k.body.Read(stored)
	if err != nil {
		s.noteUnreadable(stored, err)
	}
	return &Resource{Stored: stored, Body: b}
}
