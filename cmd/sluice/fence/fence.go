// Package fence keeps writes of kinds back while a gateway replaces the catalogue
// that says where they are stored.
package fence

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
)

// Fence stands before the writes of all services of a gateway. The zero value is
// ready; all methods are safe for concurrent use.
type Fence struct {
	mu   sync.Mutex // guards all below
	gate int        // the number of the newest gate
	// first are the numbers of the oldest gates that a kind may be written through.
	first map[string]int
	// writing is how many writes of a kind are under way.
	writing map[string]int
	// ended is closed when the last write of a kind ends; nil if nobody waits.
	ended chan struct{}
}

// Gate is where the writes of one service pass.
type Gate struct {
	fence  *Fence
	number int
}

// NewGate returns a gate for a service that comes after those of all gates before.
func (f *Fence) NewGate() *Gate {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.gate++
	return &Gate{f, f.gate}
}

// Enter begins a write of a kind, which ends with leave. False: no write of the kind
// passes this gate.
func (g *Gate) Enter(kind string) (leave func(), ok bool) {
	f := g.fence
	f.mu.Lock()
	defer f.mu.Unlock()
	if g.number < f.first[kind] {
		return nil, false
	}
	if f.writing == nil {
		f.writing = map[string]int{}
	}
	f.writing[kind]++
	return func() { f.leave(kind) }, true
}

func (f *Fence) leave(kind string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.writing[kind]--; f.writing[kind] > 0 {
		return
	}
	delete(f.writing, kind)
	if f.ended != nil {
		close(f.ended)
		f.ended = nil
	}
}

// Close closes all older gates to writes of some kinds, and returns when those
// that had passed have ended. They stay closed, unless reopen is called. One gate
// at a time may do so.
func (g *Gate) Close(ctx context.Context, kinds []string) (reopen func(), err error) {
	f := g.fence
	f.mu.Lock()
	before := maps.Clone(f.first)
	if f.first == nil {
		f.first = map[string]int{}
	}
	for _, kind := range kinds {
		f.first[kind] = g.number
	}
	f.mu.Unlock()
	reopen = func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		f.first = before
	}
	for {
		ended := f.wait(kinds)
		if ended == nil {
			return reopen, nil
		}
		select {
		case <-ended:
		case <-ctx.Done():
			reopen()
			return nil, fmt.Errorf("writes of %s do not end: %w", strings.Join(kinds, ", "), ctx.Err())
		}
	}
}

// wait returns what is closed when the last write of a kind ends, nil if no writes
// of the kinds are under way.
func (f *Fence) wait(kinds []string) <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !slices.ContainsFunc(kinds, func(kind string) bool { return f.writing[kind] > 0 }) {
		return nil
	}
	if f.ended == nil {
		f.ended = make(chan struct{})
	}
	return f.ended
}
