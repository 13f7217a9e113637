package query

import (
	"context"
	"errors"
	"sync"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/index"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/internal/slab"
)

// Moment is the state of the store that the reads of one operation see, as far as
// the index in memory has it: the first of them takes it, for all. The zero value is
// ready. It is safe for concurrent use, and used again after [Moment.Release].
type Moment struct {
	mu sync.Mutex // guards all below
	// released counts the operations that are over: their contexts have no moment any more.
	released uint64
	taken    bool
	view     index.View
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
	m.mu.Lock()
	defer m.mu.Unlock()
	return &use{ctx, m, m.released, true}
}

// Shared returns a context whose reads see the state of the moment that ctx has, but have
// memory of their own: what they return may be used after [Moment.Release].
func Shared(ctx context.Context) context.Context {
	u := useOf(ctx)
	if u == nil {
		return ctx
	}
	return &use{ctx, u.moment, u.released, false}
}

// use is a moment as one operation has it, and the context that carries it.
type use struct {
	context.Context
	moment   *Moment
	released uint64
	// pooled says that pages are in the memory of the moment.
	pooled bool
}

// Value is part of [context.Context].
func (u *use) Value(key any) any {
	if key == (momentKey{}) {
		return u
	}
	return u.Context.Value(key)
}

// lock locks the moment if the operation is not over, and says whether it did.
func (u *use) lock() bool {
	if u == nil {
		return false
	}
	u.moment.mu.Lock()
	if u.moment.released != u.released {
		u.moment.mu.Unlock()
		return false
	}
	return true
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
	m.released++
	m.lists.Reset()
	m.edges.Reset()
}

// room is memory for edges, such as lives as long as they do if the operation has no moment.
func (u *use) room(n int) []Edge {
	if u == nil || !u.pooled || !u.lock() {
		return make([]Edge, 0, n)
	}
	m := u.moment
	defer m.mu.Unlock()
	if m.edges.Keep == 0 {
		m.edges.Chunk, m.edges.Keep = keptEdges, keptEdges
	}
	return m.edges.Take(n)[:0]
}

// take is memory for pages.
func (u *use) take(n int) []listing {
	if u == nil || !u.pooled || !u.lock() {
		return make([]listing, n)
	}
	m := u.moment
	defer m.mu.Unlock()
	if m.lists.Keep == 0 {
		m.lists.Chunk, m.lists.Keep = keptLists, keptLists
	}
	return m.lists.Take(n)
}

type momentKey struct{}

// useOf is the moment of a context, nil if it has none.
func useOf(ctx context.Context) *use {
	u, _ := ctx.Value(momentKey{}).(*use)
	return u
}

// view is the state that a read sees. The zero value knows no kind.
func (r *Reader) view(ctx context.Context) index.View {
	if r.index == nil {
		return index.View{}
	}
	u := useOf(ctx)
	if !u.lock() {
		v, _ := r.index.View(ctx)
		return v
	}
	m := u.moment
	defer m.mu.Unlock()
	if !m.taken {
		m.view, _ = r.index.View(ctx)
		m.taken = true
	}
	return m.view
}

// await is the state from which a kind is listed that the view does not have: the first that
// has it and all that the store had acknowledged, if the kind is in memory or will be. Later
// reads of the operation see that state, too. False: the kind is not in memory.
func (r *Reader) await(ctx context.Context, k *kind.Kind) (v index.View, ok bool, err error) {
	if r.index == nil {
		return index.View{}, false, nil
	}
	v, ok, err = r.index.Await(ctx, k.Name)
	var filling *index.FillingError
	switch {
	case errors.As(err, &filling):
		return index.View{}, false, &failure.Error{
			Code: failure.CodeUnavailable, Kind: k.Name, Retryable: true, RetryAfter: int(filling.RetryAfter.Seconds()), Message: filling.Error() + "; try again",
		}
	case err != nil:
		return index.View{}, false, failure.Of(err, backend.Key{Kind: k.Name})
	}
	if u := useOf(ctx); ok && u.lock() {
		u.moment.view, u.moment.taken = v, true
		u.moment.mu.Unlock()
	}
	return v, ok, nil
}
