package query

import (
	"context"
	"sync"

	"github.com/sluicegw/sluice/backend/index"
)

// Moment is the state of the store that the reads of one operation see, as far as
// the index in memory has it: the first of them takes it, for all. It is safe for concurrent use.
type Moment struct {
	mu    sync.Mutex // guards all below
	taken bool
	view  index.View
}

// Forget makes the next read take a newer state.
func (m *Moment) Forget() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.taken, m.view = false, index.View{}
}

type momentKey struct{}

// WithMoment returns a context whose reads see one state of the store, until it is
// forgotten. Without it each call of the reader takes a state of its own.
func WithMoment(ctx context.Context) (context.Context, *Moment) {
	m := &Moment{}
	return context.WithValue(ctx, momentKey{}, m), m
}

// view is the state that a read sees. The zero value knows no kind.
func (r *Reader) view(ctx context.Context) index.View {
	if r.index == nil {
		return index.View{}
	}
	m, _ := ctx.Value(momentKey{}).(*Moment)
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
