// Package slab cuts many small pieces of memory from few large ones, for values
// that are made together and forgotten together, as those of one answer are.
package slab

// Slab hands out pieces of memory. A chunk is freed when none of its pieces is in
// use any more, so what lives long must not come from a slab. The zero value is
// ready; it is not safe for concurrent use.
type Slab[T any] struct {
	// Chunk is the maximum number of elements in a chunk. Default 256.
	Chunk int
	// Keep is the maximum number of elements in the chunks that [Slab.Reset] keeps. Default:
	// none.
	Keep int

	free []T
	next int
	// chunks has the chunks that Reset keeps. The first used of them are in use; free is the
	// unused rest of the current chunk.
	chunks [][]T
	used   int
}

// Take returns n zero elements. If n is more than half a chunk, they get memory of their own. The
// first chunk has only room for the first call, and each further one has twice the room of the
// one before.
func (s *Slab[T]) Take(n int) []T {
	if n > len(s.free) {
		most := s.Chunk
		if most == 0 {
			most = 256
		}
		if n > most/2 {
			return make([]T, n)
		}
		s.more(n, most)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// more starts a chunk: one that was kept, or a new one.
func (s *Slab[T]) more(n, most int) {
	for s.used < len(s.chunks) {
		s.free = s.chunks[s.used]
		if s.used++; len(s.free) >= n {
			return
		}
	}
	s.next = min(max(2*s.next, n), most)
	s.free = make([]T, s.next)
	if s.Keep > 0 {
		s.chunks = append(s.chunks, s.free)
		s.used++
	}
}

// One returns one element, its zero value.
func (s *Slab[T]) One() *T { return &s.Take(1)[0] }

// Reset forgets all pieces, which nobody may use any more: their memory is handed out
// again. If they took several chunks, the next ones find one that has room for as many.
func (s *Slab[T]) Reset() {
	most := 0
	for i, chunk := range s.chunks {
		if i < s.used {
			most += len(chunk)
			clear(chunk)
		}
	}
	switch {
	case len(s.chunks) > 1:
		s.chunks = [][]T{make([]T, min(most, s.Keep))}
	case len(s.chunks) == 1 && len(s.chunks[0]) > s.Keep:
		s.chunks = nil
	}
	s.free, s.used = nil, 0
	s.next = 0
	if len(s.chunks) > 0 {
		s.next = len(s.chunks[0])
	}
}
