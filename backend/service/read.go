package service

import (
	"context"
	"errors"
	"fmt"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
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
	stored, err := s.read(ctx, k, key)
	if err != nil || stored == nil {
		return nil, err
	}
	obj, err := k.decode(stored)
	if err != nil {
		s.noteUnreadable(stored, err)
		return nil, translate(err, key)
	}
	return &Resource{Stored: stored, Object: obj}, nil
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
	for begin := 0; begin < len(keys); {
		part := keys[begin:min(begin+backend.MaxKeys, len(keys))]
		got, err := s.cfg.Store.Get(ctx, part...)
		if len(part) == 1 && errors.Is(err, backend.ErrUnreadable) {
			begin++
			continue
		}
		if err != nil {
			return nil, translate(err, backend.Key{})
		}
		for i, stored := range got {
			if stored == nil {
				continue
			}
			obj, err := kinds[begin+i].decode(stored)
			if err != nil {
				s.noteUnreadable(stored, err)
				continue
			}
			out[begin+i] = &Resource{Stored: stored, Object: obj}
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

// present is the answer to a write: what was stored decodes, unless an older
// or newer gateway stored what stays; then the caller gets no object.
func (s *Service) present(k *kind, stored *backend.Resource) *Resource {
	obj, err := k.decode(stored)
	if err != nil {
		s.noteUnreadable(stored, err)
		return &Resource{Stored: stored}
	}
	return &Resource{Stored: stored, Object: obj}
}

// decode returns the Go value of a stored resource. What the kind
// demands must be there: the API promises it.
func (k *kind) decode(r *backend.Resource) (backend.Object, error) {
	if k.Kind.Decode == nil {
		return k.body.Read(r)
	}
	raw, err := backend.DecodeBody(r.Body)
	if err != nil {
		return nil, err
	}
	if err := k.spec.complete("spec", gjson.GetBytes(raw, "spec")); err != nil {
		return nil, err
	}
	if k.status != nil {
		if status := gjson.GetBytes(raw, "status"); status.Exists() {
			if err := k.status.complete("status", status); err != nil {
				return nil, err
			}
		}
	}
	return k.Kind.Decode(r)
}

// complete says whether the object has what its shape requires, all the way down.
func (s *shape) complete(path string, v gjson.Result) error {
	if !v.IsObject() {
		return fmt.Errorf("%s: no object: %w", path, backend.ErrUnreadable)
	}
	if !s.demanding {
		return nil
	}
	for i := range s.Fields {
		f := s.fields[s.Fields[i].Name]
		if !f.Required && !f.List && (f.shape == nil || !f.shape.demanding) {
			continue
		}
		value := v.Get(gjson.Escape(f.Name))
		if !value.Exists() || value.Type == gjson.Null {
			if f.Required {
				return fmt.Errorf("%s.%s: required and absent: %w", path, f.Name, backend.ErrUnreadable)
			}
			continue
		}
		if err := f.complete(path, value); err != nil {
			return err
		}
	}
	return nil
}

func (f *field) complete(path string, value gjson.Result) (err error) {
	if !f.List {
		if f.shape != nil {
			return f.shape.complete(path+"."+f.Name, value)
		}
		return nil
	}
	if !value.IsArray() {
		return fmt.Errorf("%s.%s: no list: %w", path, f.Name, backend.ErrUnreadable)
	}
	value.ForEach(func(_, e gjson.Result) bool {
		switch {
		case e.Type == gjson.Null:
			err = fmt.Errorf("%s.%s: a null element: %w", path, f.Name, backend.ErrUnreadable)
		case f.shape != nil:
			err = f.shape.complete(path+"."+f.Name, e)
		}
		return err == nil
	})
	return err
}
