package budget

import (
	"time"

	"golang.org/x/time/rate"
)

// FreeSteps is the number of steps of each event that do not count against an [Allowance]. It is enough for a resource
// with a few dozen related ones.
const FreeSteps = 5000

// refill is the time after which an empty allowance is full again.
const refill = 4 * time.Second

// connectionShare is the divisor that gives the allowance of one connection.
const connectionShare = 4

// Allowance bounds the steps that all events of subscriptions may use together, not counting the first [FreeSteps] of
// each. It refills over time. A nil Allowance is unlimited. It is safe for concurrent use.
type Allowance struct {
	within *Allowance
	left   *rate.Limiter
}

// NewAllowance returns an allowance of at most the given number of steps, a quarter of which it regains each second.
func NewAllowance(most int) *Allowance {
	return &Allowance{left: rate.NewLimiter(rate.Limit(float64(most)/refill.Seconds()), most)}
}

// Connection returns the allowance of one connection. What it spends is also taken from a.
func (a *Allowance) Connection() *Allowance {
	if a == nil {
		return nil
	}
	out := NewAllowance(max(a.left.Burst()/connectionShare, 1))
	out.within = a
	return out
}

// take takes n steps and reports whether that many were left.
func (a *Allowance) take(n int64) bool {
	return a == nil || a.left.AllowN(time.Now(), int(n)) && a.within.take(n)
}
