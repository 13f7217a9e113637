package slab_test

import (
	"math/rand/v2"
	"testing"

	"github.com/sluicegw/sluice/internal/slab"
)

func TestPiecesNeverOverlap(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 1))
	s := slab.Slab[int]{Chunk: 64}
	var pieces [][]int
	for i := range 1000 {
		p := s.Take(random.IntN(80))
		if len(p) != cap(p) {
			t.Fatalf("a piece of %d has room for %d", len(p), cap(p))
		}
		for n := range p {
			if p[n] != 0 {
				t.Fatalf("element %d of piece %d is %d", n, i, p[n])
			}
			p[n] = i + 1
		}
		pieces = append(pieces, p)
	}
	for i, p := range pieces {
		for n := range p {
			if p[n] != i+1 {
				t.Fatalf("element %d of piece %d was overwritten by piece %d", n, i, p[n]-1)
			}
		}
	}
}

func TestManyPiecesTakeFewAllocations(t *testing.T) {
	if n := testing.AllocsPerRun(10, func() {
		var s slab.Slab[[4]int]
		for range 1000 {
			_ = s.One()
		}
	}); n > 12 { // 1, 2, 4 ... 256, 256, 256
		t.Errorf("1,000 pieces took %v allocations", n)
	}
	if n := testing.AllocsPerRun(10, func() {
		var s slab.Slab[byte]
		_ = s.Take(100)
	}); n != 1 {
		t.Errorf("one piece took %v allocations", n)
	}
}

func TestMemoryThatIsKeptIsCleared(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 1))
	s := slab.Slab[int]{Chunk: 64, Keep: 200}
	for round := range 50 {
		for range random.IntN(40) {
			for n := range s.Take(1 + random.IntN(30)) {
				_ = n
			}
			p := s.Take(1 + random.IntN(70))
			for n := range p {
				if p[n] != 0 {
					t.Fatalf("round %d: an element is %d", round, p[n])
				}
				p[n] = round + 1
			}
		}
		s.Reset()
	}
	warm := func() {
		for range 3 {
			s.Take(20)
		}
		s.Reset()
	}
	warm()
	if n := testing.AllocsPerRun(100, warm); n > 0 {
		t.Errorf("%v allocations though the memory was kept", n)
	}
}
