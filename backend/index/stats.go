package index

import "context"

// Stats describes the content and the use of the index.
type Stats struct {
	// Bytes is the approximate size of the kinds, Limit its bound.
	Bytes, Limit int64
	// Kinds counts all kinds, Served those that are read from the index, and Filling those that
	// will be.
	Kinds, Served, Filling int
	// Resources counts the resources of served kinds.
	Resources int
	// Reads counts requests for a state that the index answered, Fallbacks those that
	// were left to the store.
	Reads, Fallbacks uint64
	// Behind is the number of changes by which the index is behind the last known head
	// of the store.
	Behind uint64
	// Waits counts the requests that waited for the hub.
	Waits uint64
}

// Stats returns the present statistics.
func (x *Index) Stats() Stats {
	s := x.current.Load()
	out := Stats{
		Limit:     x.cfg.Bytes,
		Kinds:     len(s.kinds),
		Served:    s.served,
		Reads:     x.reads.Load(),
		Fallbacks: x.fallbacks.Load(),
		Waits:     x.waits.Load(),
	}
	if head := x.head.Load(); head != nil {
		for i := range head.Shards() {
			at, want := s.position.Shard(i), head.Shard(i)
			if at.Epoch == want.Epoch && at.Seq < want.Seq {
				out.Behind += want.Seq - at.Seq
			}
		}
	}
	for _, k := range s.kinds {
		if k != nil {
			out.Resources += k.names.len()
		}
	}
	x.mu.Lock()
	out.Bytes = x.used()
	for _, k := range x.kinds {
		if k.state != serving && k.state != givenUp {
			out.Filling++
		}
	}
	x.mu.Unlock()
	return out
}

// Filled waits until every kind is served or was given up, and returns nil, or the
// error of ctx.
func (x *Index) Filled(ctx context.Context) error {
	for {
		s := x.current.Load()
		changed := x.after(s)
		if x.Stats().Filling == 0 {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
