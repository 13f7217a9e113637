package plan

import (
	"context"
	"sync"
)

// Explained describes one read of an operation. It reads a page, a count, or resources by key.
type Explained struct {
	Kind string `json:"kind"`
	// Source is "index" for the index in memory, or "store".
	Source string `json:"source"`
	// By describes what was read: a run of index rows, an order, or all resources of the kind.
	By string `json:"by"`
	// Looked is the number of resources that were looked at.
	Looked int `json:"looked"`
	// Returned is the number of resources that were returned or counted.
	Returned int `json:"returned"`
}

// Explanation collects the reads of an operation. It is safe for concurrent use.
type Explanation struct {
	mu    sync.Mutex // guards reads
	reads []Explained
}

// maxReads is the maximum number of reads that an explanation keeps.
const maxReads = 1000

type explanationKey struct{}

// WithExplanation returns a context whose reads are added to an explanation.
func WithExplanation(ctx context.Context) (context.Context, *Explanation) {
	e := &Explanation{}
	return context.WithValue(ctx, explanationKey{}, e), e
}

// WithoutExplanation returns a context whose reads are not explained.
func WithoutExplanation(ctx context.Context) context.Context {
	return context.WithValue(ctx, explanationKey{}, (*Explanation)(nil))
}

// ExplanationFrom returns the explanation of ctx; nil if there is none.
func ExplanationFrom(ctx context.Context) *Explanation {
	e, _ := ctx.Value(explanationKey{}).(*Explanation)
	return e
}

// Add adds a read, unless the explanation already has maxReads. If e is nil, it does nothing.
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

// Reads returns all reads until now.
func (e *Explanation) Reads() []Explained {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reads[:len(e.reads):len(e.reads)]
}
