package plan

import (
	"context"
	"sync"
)

// Explained is how one page or count was read, or some resources by their keys.
type Explained struct {
	Kind string `json:"kind"`
	// Source is "index", in memory, or "store".
	Source string `json:"source"`
	// By says what was read: a run of index rows, an order, or all resources of the kind.
	By string `json:"by"`
	// Looked is how many resources were looked at, and Returned how many were returned or counted.
	Looked   int `json:"looked"`
	Returned int `json:"returned"`
}

// Explanation collects the reads of an operation. It is safe for concurrent use; a nil one
// collects nothing.
type Explanation struct {
	mu    sync.Mutex // guards reads
	reads []Explained
}

// maxReads is the most reads of an operation that are explained.
const maxReads = 1000

type explanationKey struct{}

// WithExplanation returns a context whose reads are explained.
func WithExplanation(ctx context.Context) (context.Context, *Explanation) {
	e := &Explanation{}
	return context.WithValue(ctx, explanationKey{}, e), e
}

// ExplanationFrom returns the explanation of a context, nil if it asks for none.
func ExplanationFrom(ctx context.Context) *Explanation {
	e, _ := ctx.Value(explanationKey{}).(*Explanation)
	return e
}

// Add notes a read.
func (e *Explanation) Add(r Explained) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.reads) < maxReads {
		e.reads = append(e.reads, r)
	}
}

// Reads returns those so far.
func (e *Explanation) Reads() []Explained {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reads[:len(e.reads):len(e.reads)]
}
