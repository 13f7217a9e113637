// Package answer is the memory of an answer, between the engine that writes it and the
// transport that sends it: it is written once, where it is sent from.
package answer

import "context"

// Memory of one answer. The zero value is ready; it is for one goroutine at a time.
type Memory struct {
	// Head is what the transport wants before the data, and Room how many bytes more it
	// wants behind them.
	Head string
	Room int
	// Whole is the head and the data; nil until the engine has written them.
	Whole []byte
}

// Key is the key of a [*Memory] in a context. A context that carries other values too may
// answer it by itself.
type Key struct{}

// From returns the memory that a context carries, nil if there is none.
func From(ctx context.Context) *Memory {
	m, _ := ctx.Value(Key{}).(*Memory)
	return m
}
