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
	buf     []byte
	release func()
}

type memoryKey struct{}

// With returns a context in which the answer is written into the memory.
func With(ctx context.Context, m *Memory) context.Context {
	return context.WithValue(ctx, memoryKey{}, m)
}

// From returns the memory that a context carries, nil if there is none.
func From(ctx context.Context) *Memory {
	m, _ := ctx.Value(memoryKey{}).(*Memory)
	return m
}

// Fill notes what was written, head and data, and what gives the memory back.
func (m *Memory) Fill(buf []byte, release func()) { m.buf, m.release = buf, release }

// Filled is the head and the data; nil if nobody has written them.
func (m *Memory) Filled() []byte { return m.buf }

// Release gives the memory back. Nothing in it may be read any more.
func (m *Memory) Release() {
	if m.release != nil {
		m.release()
	}
	m.buf, m.release = nil, nil
}
