package query

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/internal/slab"
)

// Moment is the state of the store that the reads of one operation see, as far as
// the index in memory has it: the first of them takes it, for all. The zero value is
// ready. It is safe for concurrent use, and used again after [Moment.Release].
type Moment struct {
	mu    sync.Mutex // guards all below
	taken bool
	view  index.View
	// lists are the pages that were read, edges what is on them.
	lists slab.Slab[listing]
	edges slab.Slab[Edge]
}

// keptLists and keptEdges are how many pages of an operation, and edges on them, have
// memory that the next one uses.
const (
	keptLists = 1024
	keptEdges = 4096
)

// With returns a context whose reads see one state of the store, until it is
// forgotten. Without it each call of the reader takes a state of its own.
func (m *Moment) With(ctx context.Context) context.Context {
	return context.WithValue(ctx, momentKey{}, m)
}

// Forget makes the next read take a newer state.
func (m *Moment) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken, m.view = false, index.View{}
}

// Release forgets all, the pages too: nobody may use any of them, nor a context of [Moment.With].
func (m *Moment) Release() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken, m.view = false, index.View{}
	m.lists.Reset()
	m.edges.Reset()
}

// room is memory for edges.
func (m *Moment) room(n int) []Edge {
	if m == nil {
		return make([]Edge, 0, n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.edges.Keep == 0 {
		m.edges.Chunk, m.edges.Keep = keptEdges, keptEdges
	}
	return m.edges.Take(n)[:0]
}

// take returns memory for pages, of a nil moment such as lives as long as they do.
func (m *Moment) take(n int) []listing {
	if m == nil {
		return make([]listing, n)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.lists.Keep == 0 {
		m.lists.Chunk, m.lists.Keep = keptLists, keptLists
	}
	return m.lists.Take(n)
}

type momentKey struct{}

// momentOf is the moment of a context, nil if it has none.
func momentOf(ctx context.Context) *Moment {
	m, _ := ctx.Value(momentKey{}).(*Moment)
	return m
}

// view is the state that a read sees. The zero value knows no kind.
func (r *Reader) view(ctx context.Context) index.View {
	if r.index == nil {
		return index.View{}
	}
	m := momentOf(ctx)
	if m == nil {
		v, _ := r.index.View(ctx)
		return v
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.taken {
		m.view, _ = r.index.View(ctx)
		m.taken = true
	}
	return m.view
}
