package index

import "context"

// Stats describes the contents and the use of an index.
type Stats struct {
	// Bytes is the approximate size of the kinds, and Limit its maximum.
	Bytes, Limit int64
	// Kinds is the number of all kinds, Served the number of kinds that are read from the index, and Filling the number
	// of kinds that are being filled or will be.
	Kinds, Served, Filling int
	// Resources is the number of resources of served kinds.
	Resources int
	// Reads is the number of requests for a state that the index has answered, and Fallbacks the number of requests
	// that it has left to the store.
	Reads, Fallbacks uint64
	// Behind is by how many changes the index is behind the latest known head of the store.
	Behind uint64
	// Waits is the number of requests that waited for the hub.
	Waits uint64
}

// Stats returns the current statistics.
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

// Filled waits until each kind is served or was given up. It returns an error only if ctx ends first.
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
