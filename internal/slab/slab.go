// Package slab allocates many small pieces of memory as parts of a few large chunks. It is for values that are made
// together and freed together, such as the values of one answer.
package slab

// Slab allocates pieces of memory from chunks. The memory of a chunk is freed only when none of its pieces is in use
// any more. Therefore values that live long should not come from a slab. The zero value is ready to use. A Slab is not
// safe for concurrent use.
type Slab[T any] struct {
	// Chunk is the maximum number of elements in a chunk. The default is 256.
	Chunk int
	// Keep is the maximum number of elements in chunks that [Slab.Reset] keeps for reuse. With 0 it keeps none.
	Keep int

	free []T
	next int
	// chunks has the chunks that Reset may keep. The first of them, as many as used, are in use. free is the unused
	// part of the current chunk.
	chunks [][]T
	used   int
}

// Take returns n elements with zero values. If n is more than half a chunk, Take allocates the elements separately. The
// first chunk is only as large as the first call needs. Each further chunk is twice as large as the one before it.
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

// more begins another chunk with room for n elements: one that was kept, or a new one.
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

// One returns a pointer to one element with the zero value.
func (s *Slab[T]) One() *T { return &s.Take(1)[0] }

// Reset makes the memory of all pieces available again. The pieces must not be used any more. If there were several
// chunks, Reset replaces them by one chunk that is large enough for as many elements.
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
