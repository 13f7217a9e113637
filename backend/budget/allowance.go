package budget

import (
	"sync"
	"time"
)

// FreeWork is how much work an event may be before it takes of an [Allowance]: that
// of a resource with a few dozen others. See [Things] for the prices.
const FreeWork = 200

// refill is after how long an allowance that was used up is whole again.
const refill = 4 * time.Second

// Allowance bounds the work of all events of subscriptions together, beyond
// [FreeWork] of each. What was taken comes back in time. A nil Allowance bounds
// nothing. It is safe for concurrent use.
type Allowance struct {
	within *Allowance
	most   int64

	mu   sync.Mutex
	left int64
	at   time.Time
}

// NewAllowance returns an allowance of so much work at once, of which a quarter comes
// back in each second.
func NewAllowance(most int64) *Allowance {
	return &Allowance{most: most, left: most, at: time.Now()}
}

// connectionShare is which part of the allowance the events of one connection may take.
const connectionShare = 4

// Connection is the allowance of one connection within that of all.
func (a *Allowance) Connection() *Allowance {
	if a == nil {
		return nil
	}
	out := NewAllowance(max(a.most/connectionShare, 1))
	out.within = a
	return out
}

// take takes work if so much is left.
func (a *Allowance) take(n int64) bool {
	if a == nil {
		return true
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if back := int64(float64(a.most) * float64(time.Since(a.at)) / float64(refill)); back > 0 {
		a.left = min(a.left+back, a.most)
		a.at = time.Now()
	}
	if a.left < n || !a.within.take(n) {
		return false
	}
	a.left -= n
	return true
}

func (a *Allowance) give(n int64) {
	if a == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.left = min(a.left+n, a.most)
	a.within.give(n)
}
