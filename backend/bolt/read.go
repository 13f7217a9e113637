package bolt

import (
	"bytes"
	"context"
	"time"

	"go.etcd.io/bbolt"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/storekit"
)

// skip counts and logs a resource that a read has skipped. It logs the key, but no other part of the resource.
func (c *core) skip(during string, key []byte, err error) {
	c.unreadable.Add(1)
	c.cfg.Logger.Warn(
		"a stored resource does not decode", zap.String("during", during), zap.ByteString("key", key), zap.Error(err),
	)
}

func (c *core) get(ctx context.Context, keys []backend.Key, bare bool) ([]*backend.Resource, error) {
	out := make([]*backend.Resource, 0, len(keys))
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		now, size := c.cfg.Clock(), 0
		resources := tx.Bucket([]byte(resourceBucket)).Cursor()
		var space [128]byte
		memory := arena{bare: bare}
		for i, k := range keys {
			key := k.Append(space[:0])
			v := valueOf(resources, key)
			if v == nil {
				out = append(out, nil)
				continue
			}
			r, err := memory.resource(k, key, v)
			switch {
			case err != nil && len(keys) == 1:
				return storekit.Unreadable(k, err)
			case err != nil:
				c.skip("get", k.Append(nil), err)
				r = nil
			case r.ExpiredAt(now):
				r = nil
			default:
				size += r.Size()
				if size > backend.MaxPageBytes && i > 0 {
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

// valueOf returns the value of a key; nil if there is none. Unlike [bbolt.Bucket.Get], a cursor that is used for
// several keys does not allocate for each.
func valueOf(c *bbolt.Cursor, key []byte) []byte {
	if k, v := c.Seek(key); bytes.Equal(k, key) {
		return v
	}
	return nil
}

// scan reads the ranges of a call, one after the other, in one transaction.
type scan struct {
	core   *core
	tx     *bbolt.Tx
	now    time.Time
	page   *storekit.PageBuilder
	memory arena
	// resources is a cursor for looking up the resources of entries in other buckets.
	resources *bbolt.Cursor
	// cursors has a cursor for each bucket that was read.
	cursors map[string]*bbolt.Cursor

	r     backend.Range // the range that is read
	kind  []byte        // the prefix of the keys of its resources; empty if the range has all kinds
	count int
}

// ranges reads all ranges in one transaction.
func (c *core) ranges(ctx context.Context, rs []backend.Range) ([]backend.Page, error) {
	out := make([]backend.Page, len(rs))
	err := c.view(ctx, func(tx *bbolt.Tx) error {
		now := c.cfg.Clock()
		s := &scan{core: c, tx: tx, now: now, page: storekit.NewPageBuilder(now), cursors: map[string]*bbolt.Cursor{}}
		s.resources = tx.Bucket([]byte(resourceBucket)).Cursor()
		for i, r := range rs {
			s.page.Next(r)
			s.r = r
			s.count = 0
			s.kind = s.kind[:0]
			s.memory.bare = r.Bare
			s.memory.keysOnly = r.KeysOnly
			if r.Kind != "" {
				s.kind = backend.AppendString(s.kind, r.Kind)
			}
			if err := ctx.Err(); err != nil { // walk checks ctx only in long ranges
				return err
			}
			if err := s.run(ctx); err != nil {
				return err
			}
			out[i] = s.page.Page()
			if r.Count {
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

func (s *scan) run(ctx context.Context) error {
	switch {
	case s.r.Deleting:
		return s.walk(ctx, deletingBucket, func(k, _ []byte) bool {
			return s.visit(k, valueOf(s.resources, k))
		})
	case s.r.Referenced == nil:
		return s.walk(ctx, resourceBucket, s.visit)
	case s.r.Namespace != "" && !s.r.MayRefer(s.r.Namespace):
		return nil
	}
	return s.walk(ctx, refBucket, func(k, v []byte) bool {
		target, err := entryTarget(k, v)
		if err != nil {
			s.skip(k, err)
			return true
		}
		if s.elsewhere(target) {
			return true
		}
		return s.visit(target, valueOf(s.resources, target))
	})
}

// elsewhere reports whether the key of a referrer is outside the namespace of the range. The bounds of the range
// exclude other namespaces only if the range has a kind.
func (s *scan) elsewhere(key []byte) bool {
	if s.r.Namespace == "" || s.r.Kind != "" {
		return false
	}
	k, err := backend.DecodeKey(key)
	return err == nil && k.Namespace != s.r.Namespace
}

// skip leaves out a resource that does not decode. It counts and logs the resource, and adds its key to the
// page.
func (s *scan) skip(key []byte, err error) {
	s.core.skip("range", key, err)
	k, _ := backend.DecodeKey(key) // the zero Key if it does not decode
	s.page.Skip(k)
}

// visit adds an encoded resource to the page. It returns false if the page is full.
func (s *scan) visit(key, form []byte) bool {
	gone, err := expiredForm(form, s.now)
	if err == nil && (gone || s.r.Count) { // other resources are decoded below, which checks the sum
		err = checkSum(key, form)
	}
	switch {
	case err != nil:
		if s.skip(key, err); s.r.Count && s.r.Referenced != nil {
			s.count++
		}
		return true
	case gone:
		return true
	case s.r.Count:
		s.count++
		return true
	}
	r, err := s.decode(key, form)
	if err != nil {
		s.skip(key, err)
		return true
	}
	return s.page.Add(r)
}

func (s *scan) decode(key, form []byte) (*backend.Resource, error) {
	var k backend.Key
	var err error
	if len(s.kind) == 0 {
		k, err = backend.DecodeKey(key)
	} else {
		k, err = s.memory.key(s.r.Kind, key[len(s.kind):])
	}
	if err != nil {
		return nil, err
	}
	return s.memory.resource(k, key, form)
}

// walk calls visit for the entries of a bucket in the range, until visit returns false or ctx ends.
func (s *scan) walk(ctx context.Context, bucket string, visit func(k, v []byte) bool) error {
	c := s.cursors[bucket]
	if c == nil {
		c = s.tx.Bucket([]byte(bucket)).Cursor()
		s.cursors[bucket] = c
	}
	start, end := s.r.Bounds()
	var k, v []byte
	step := c.Next
	if s.r.Reverse {
		step = c.Prev
		k, _ = c.Seek(end)
		if k == nil {
			k, v = c.Last()
		} else {
			k, v = c.Prev()
		}
	} else {
		k, v = c.Seek(start)
	}
	for n := 1; k != nil && bytes.Compare(k, end) < 0 && (!s.r.Reverse || bytes.Compare(k, start) >= 0) &&
		visit(k, v); n++ {
		if n%256 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		k, v = step()
	}
	return nil
}
