// Package slab cuts many small pieces of memory from few large ones, for values
// that are made together and forgotten together, as those of one answer are.
package slab

// Slab hands out pieces of memory. A chunk is freed when none of its pieces is in
// use any more, so what lives long must not come from a slab. The zero value is
// ready; it is not safe for concurrent use.
type Slab[T any] struct {
	// Chunk is the most elements of one chunk. Default 256.
	Chunk int

	free []T
	next int
}

// Take returns n elements, each its zero value. A piece of more than half a
// chunk has memory of its own. The first chunk has room for the first piece
// alone, and each has twice the room of the one before.
func (s *Slab[T]) Take(n int) []T {
	if n > len(s.free) {
		most := s.Chunk
		if most == 0 {
			most = 256
		}
		if n > most/2 {
			return make([]T, n)
		}
		s.next = min(max(2*s.next, n), most)
		s.free = make([]T, s.next)
	}
	out := s.free[:n:n]
	s.free = s.free[n:]
	return out
}

// One returns one element, its zero value.
func (s *Slab[T]) One() *T { return &s.Take(1)[0] }
