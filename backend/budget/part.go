package budget

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Part is a bound within a pool: what is taken of it is taken of the pool, too. A nil
// Part bounds nothing. It is safe for concurrent use.
type Part struct {
	pool *Pool
	most int64

	mu      sync.Mutex // guards all below; it is taken before that of the pool
	used    int64
	waiting []*claim // the first comes first
}

// claim is for bytes that are not free yet.
type claim struct {
	bytes int64
	got   chan struct{}
}

// Part returns a part of so many bytes; nil of no pool.
func (p *Pool) Part(most int64) *Part {
	if p == nil {
		return nil
	}
	return &Part{pool: p, most: most}
}

// Take takes bytes if they are free in the part and in the pool.
func (p *Part) Take(n int64) bool {
	if p == nil {
		return true
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.waiting) == 0 && p.take(n)
}

func (p *Part) take(n int64) bool {
	if p.used+n > p.most || !p.pool.Take(n) {
		return false
	}
	p.used += n
	return true
}

// Await takes bytes when they are free. It fails with [ErrBusy] after [Patience], and
// with the error of ctx.
func (p *Part) Await(ctx context.Context, n int64) error {
	if p == nil {
		return nil
	}
	p.mu.Lock()
	if len(p.waiting) == 0 && p.take(n) {
		p.mu.Unlock()
		return nil
	}
	c := &claim{n, make(chan struct{})}
	p.waiting = append(p.waiting, c)
	p.mu.Unlock()
	patience := time.NewTimer(Patience)
	defer patience.Stop()
	select {
	case <-c.got:
		return nil
	case <-ctx.Done():
	case <-patience.C:
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	i := slices.Index(p.waiting, c)
	if i < 0 { // it got them meanwhile
		return nil
	}
	p.waiting = slices.Delete(p.waiting, i, i+1)
	if err := ctx.Err(); err != nil {
		return err
	}
	return ErrBusy
}

// Hold takes bytes that are in use already, whether or not they are free.
func (p *Part) Hold(n int64) {
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used += n
	p.pool.Hold(n)
}

// Give gives bytes back.
func (p *Part) Give(n int64) {
	if p == nil || n == 0 {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.used -= n
	p.pool.Give(n)
	for len(p.waiting) > 0 && p.take(p.waiting[0].bytes) {
		close(p.waiting[0].got)
		p.waiting = p.waiting[1:]
	}
}
