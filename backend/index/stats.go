package index

import "context"

// Stats say what the index holds and does.
type Stats struct {
	// Bytes that the kinds take, roughly, and Limit, how many they may.
	Bytes, Limit int64
	// Kinds are all, Served those that are read from the index, and Filling those that will be.
	Kinds, Served, Filling int
	// Resources of the kinds that are served.
	Resources int
	// Reads were answered by the index, Fallbacks by the store: requests for a state.
	Reads, Fallbacks uint64
	// Behind is how many changes the store has, by what was heard of its head last, and
	// the index does not.
	Behind uint64
	// Waits is how many of the requests had to wait for the hub.
	Waits uint64
}

// Stats of now.
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

// Filled returns nil once every kind is served or was given up, or the error of ctx.
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
