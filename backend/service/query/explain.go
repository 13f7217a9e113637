package query

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend"
)

// Explained is how one page or count was read.
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

// Explanation collects how the reads of an operation were done. It is safe for concurrent use.
type Explanation struct {
	mu    sync.Mutex
	reads []Explained
}

// maxExplained is the most reads of an operation that are explained.
const maxExplained = 1000

// Reads are those so far.
func (e *Explanation) Reads() []Explained {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.reads[:len(e.reads):len(e.reads)]
}

type explainKey struct{}

// WithExplanation returns a context whose reads are explained.
func WithExplanation(ctx context.Context) (context.Context, *Explanation) {
	e := &Explanation{}
	return context.WithValue(ctx, explainKey{}, e), e
}

// explained is how a scan was read from the store.
func (sc *scan) explained() Explained {
	by := "order of names"
	switch {
	case sc.query.names != nil:
		by = "names"
	case sc.left.Referenced != nil:
		by = "references to " + sc.query.parentKey.String()
	case !sc.streams:
		by = "all resources"
	}
	returned := len(sc.found)
	if sc.counting {
		returned = sc.count
	}
	return Explained{Kind: sc.query.kind.Name, Source: "store", By: by, Looked: sc.looked, Returned: returned}
}

// explainKeys notes reads of single resources by their keys.
func explainKeys(ctx context.Context, source string, keys []backend.Key, found []*Resource) {
	e := explanation(ctx)
	if e == nil {
		return
	}
	for from := 0; from < len(keys); {
		one := Explained{Kind: keys[from].Kind, Source: source, By: "key"}
		for ; from < len(keys) && keys[from].Kind == one.Kind; from++ {
			if one.Looked++; found[from] != nil {
				one.Returned++
			}
		}
		e.add(one)
	}
}

// explanation is that of a context, nil if it asks for none.
func explanation(ctx context.Context) *Explanation {
	e, _ := ctx.Value(explainKey{}).(*Explanation)
	return e
}

// add notes a read; of nil it does nothing.
func (e *Explanation) add(one Explained) {
	if e == nil {
		return
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.reads) < maxExplained {
		e.reads = append(e.reads, one)
	}
}
