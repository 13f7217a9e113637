// Package answer is the memory of an answer, between who writes it and who
// sends it: so that it is written once, where it is sent from, and used again.
package answer

import "context"

// Memory of one answer. The zero value is ready; it is for one goroutine at a time.
type Memory struct {
	// Head is what whoever sends the answer wants before its data, and Room how
	// many bytes more it wants behind them.
	Head string
	Room int
	// buf is the head and the data.
	buf   []byte
	owner Owner
}

// Owner of memory in which an answer was written.
type Owner interface {
	// TakeBack is called with the memory when nobody reads it any more.
	TakeBack(buf []byte)
}

// ContextKey is the key of a [*Memory] in a context. A context that carries other values too may
// answer it by itself.
type ContextKey struct{}

// From returns the memory that a context carries, nil if there is none.
func From(ctx context.Context) *Memory {
	m, _ := ctx.Value(ContextKey{}).(*Memory)
	return m
}

// Fill notes what was written, head and data, and whose memory it is.
func (m *Memory) Fill(buf []byte, owner Owner) { m.buf, m.owner = buf, owner }

// Filled is the head and the data; nil if nobody has written them.
func (m *Memory) Filled() []byte { return m.buf }

// Release gives the memory back. Nothing in it may be read any more.
func (m *Memory) Release() {
	if m.owner != nil {
		m.owner.TakeBack(m.buf)
	}
	m.buf, m.owner = nil, nil
}
