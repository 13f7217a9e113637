package bolt

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
)

func unreadable(k backend.Key, err error) error {
	if errors.Is(err, backend.ErrUnreadable) {
		return fmt.Errorf("%s: %w", k, err)
	}
	return fmt.Errorf("%s: %w: %w", k, backend.ErrUnreadable, err)
}

// skip counts and reports what a read left out, by its key alone.
func (c *core) skip(during string, key []byte, err error) {
	c.unreadable.Add(1)
	c.cfg.Logger.Warn("a stored resource does not decode", zap.String("during", during), zap.ByteString("key", key), zap.Error(err))
}

func (c *core) get(ctx context.Context, keys []backend.Key) ([]*backend.Resource, error) {
	out := make([]*backend.Resource, len(keys))
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		now := c.cfg.Clock()
		b := tx.Bucket([]byte(resourceBucket))
		var space [128]byte
		for i, k := range keys {
			v := b.Get(k.Append(space[:0]))
			if v == nil {
				continue
			}
			r, err := decodeResource(k, v)
			if err != nil {
				return unreadable(k, err)
			}
			if !r.ExpiredAt(now) {
				out[i] = r
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

// scan is one Range within a transaction.
type scan struct {
	core      *core
	r         backend.Range
	now       time.Time
	prefix    []byte // of the kind, in resources
	namespace []byte // how the tuples of Range.Namespace begin, if an index is to be filtered
	resources *bbolt.Bucket
	page      *backend.PageBuilder
	count     int
}

func (c *core) rangePage(ctx context.Context, r backend.Range) (backend.Page, error) {
	now := c.cfg.Clock()
	s := &scan{core: c, r: r, now: now, prefix: backend.AppendString(nil, r.Kind), page: backend.NewPageBuilder(r, now)}
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		s.resources = tx.Bucket([]byte(resourceBucket))
		if r.Index == "" {
			start, end := r.Bounds(s.prefix)
			return walk(ctx, s.resources, start, end, r.Reverse, func(k, v []byte) bool { return s.visit(k[len(s.prefix):], v) })
		}
		if r.Namespace != "" {
			// With the beginning of the name, so that "a" does not match "a\x00".
			s.namespace = backend.AppendStringPrefix(backend.AppendString(nil, r.Namespace), "")
		}
		start, end := r.Bounds(backend.AppendString(bytes.Clone(s.prefix), r.Index))
		key := bytes.Clone(s.prefix)
		return walk(ctx, tx.Bucket([]byte(rowBucket)), start, end, r.Reverse, func(k, v []byte) bool {
			target, err := rowTarget(k, v)
			if err != nil {
				c.skip("range", k, err)
				return true
			}
			if !bytes.HasPrefix(target, s.namespace) {
				return true
			}
			key = append(key[:len(s.prefix)], target...)
			return s.visit(target, s.resources.Get(key))
		})
	})
	if err != nil {
		return backend.Page{}, err
	}
	page := s.page.Page()
	if r.Count {
		page.Count = s.count
	}
	return page, nil
}

// visit takes the resource with that (namespace, name) tuple and form, and says whether to go on.
func (s *scan) visit(target, form []byte) bool {
	gone, err := expiredForm(form, s.now)
	switch {
	case err != nil:
		s.core.skip("range", append(bytes.Clone(s.prefix), target...), err)
		return true
	case gone:
		return true
	case s.r.Count:
		s.count++
		return true
	}
	r, err := s.decode(target, form)
	if err != nil {
		s.core.skip("range", append(bytes.Clone(s.prefix), target...), err)
		return true
	}
	return s.page.Add(r)
}

func (s *scan) decode(target, form []byte) (*backend.Resource, error) {
	namespace, rest, err := backend.TakeString(target)
	if err != nil {
		return nil, err
	}
	name, rest, err := backend.TakeString(rest)
	if err != nil {
		return nil, err
	}
	if len(rest) > 0 {
		return nil, backend.ErrUnreadable
	}
	return decodeResource(backend.Key{Kind: s.r.Kind, Namespace: namespace, Name: name}, form)
}

// walk visits the half-open interval until visit says no or ctx ends.
func walk(ctx context.Context, b *bbolt.Bucket, start, end []byte, reverse bool, visit func(k, v []byte) bool) error {
	c := b.Cursor()
	var k, v []byte
	step := c.Next
	if reverse {
		step = c.Prev
		if k, v = c.Seek(end); k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	} else {
		k, v = c.Seek(start)
	}
	for n := 1; k != nil && bytes.Compare(k, start) >= 0 && bytes.Compare(k, end) < 0 && visit(k, v); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		k, v = step()
	}
	return nil
}
