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

// skip counts and logs what a read left out. The log names the key alone.
func (c *core) skip(during string, key []byte, err error) {
	c.unreadable.Add(1)
	c.cfg.Logger.Warn("a stored resource does not decode", zap.String("during", during), zap.ByteString("key", key), zap.Error(err))
}

func (c *core) get(ctx context.Context, keys []backend.Key) ([]*backend.Resource, error) {
	out := make([]*backend.Resource, 0, len(keys))
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		now, size := c.cfg.Clock(), 0
		b := tx.Bucket([]byte(resourceBucket))
		var space [128]byte
		for i, k := range keys {
			v := b.Get(k.Append(space[:0]))
			if v == nil {
				out = append(out, nil)
				continue
			}
			r, err := decodeResource(k, v)
			switch {
			case err != nil && len(keys) == 1:
				return unreadable(k, err)
			case err != nil:
				c.skip("get", k.Append(nil), err)
				r = nil
			case r.ExpiredAt(now):
				r = nil
			default:
				if size += r.Size(); size > backend.MaxPageBytes && i > 0 {
					return nil
				}
			}
			out = append(out, r)
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
	kind      []byte // how the keys of the resources begin, empty if the range is of all kinds
	resources *bbolt.Bucket
	page      *backend.PageBuilder
	count     int
}

// ranges answers all ranges from one transaction.
func (c *core) ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	out := make([]backend.Page, len(rs))
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		now := c.cfg.Clock()
		page := backend.NewPageBuilder(backend.Range{}, now)
		for i, r := range rs {
			page = page.Next(r)
			s := &scan{core: c, r: r, now: now, resources: tx.Bucket([]byte(resourceBucket)), page: page}
			if r.Kind != "" {
				s.kind = backend.AppendString(nil, r.Kind)
			}
			if err := s.run(ctx, tx); err != nil {
				return err
			}
			if out[i] = page.Page(); r.Count {
				out[i].Count = s.count
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return out, nil
}

func (s *scan) run(ctx context.Context, tx *bbolt.Tx) error {
	start, end := s.r.Bounds()
	bucket, prefix := rowBucket, s.kind // prefix makes a row's target a key
	var within []byte                   // how the targets begin, if an index is to be filtered
	switch {
	case s.r.Referenced != nil && s.r.Namespace != "" && s.r.Namespace != s.r.Referenced.Namespace:
		return nil // references stay within a namespace
	case s.r.Referenced != nil:
		bucket, prefix = refBucket, nil
	case s.r.Index == "":
		return walk(ctx, s.resources, start, end, s.r.Reverse, s.visit)
	case s.r.Namespace != "":
		// The first byte of the name is part of it, so that "a" does not match "a\x00".
		within = backend.AppendStringPrefix(backend.AppendString(nil, s.r.Namespace), "")
	}
	key := bytes.Clone(prefix)
	return walk(ctx, tx.Bucket([]byte(bucket)), start, end, s.r.Reverse, func(k, v []byte) bool {
		target, err := entryTarget(k, v)
		if err != nil {
			s.core.skip("range", k, err)
			return true
		}
		if !bytes.HasPrefix(target, within) {
			return true
		}
		key = append(key[:len(prefix)], target...)
		return s.visit(key, s.resources.Get(key))
	})
}

// visit takes the encoded resource under a key, and says whether to go on.
func (s *scan) visit(key, form []byte) bool {
	gone, err := expiredForm(form, s.now)
	switch {
	case err != nil:
		s.core.skip("range", key, err)
		return true
	case gone:
		return true
	case s.r.Count:
		s.count++
		return true
	}
	r, err := s.decode(key, form)
	if err != nil {
		s.core.skip("range", key, err)
		return true
	}
	return s.page.Add(r)
}

func (s *scan) decode(key, form []byte) (*backend.Resource, error) {
	if len(s.kind) == 0 {
		k, err := backend.DecodeKey(key)
		if err != nil {
			return nil, err
		}
		return decodeResource(k, form)
	}
	namespace, rest, err := backend.TakeString(key[len(s.kind):])
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
		if k, _ = c.Seek(end); k == nil {
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
