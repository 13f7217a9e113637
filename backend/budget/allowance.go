package budget

import (
	"time"

	"golang.org/x/time/rate"
)

// FreeSteps is how many steps of each event do not count against an [Allowance]: enough
// for a resource with a few dozen related ones.
const FreeSteps = 5000

// refill is the time in which an empty allowance is refilled.
const refill = 4 * time.Second

// connectionShare is the divisor of the allowance that gives the share of one connection.
const connectionShare = 4

// Allowance bounds the steps of all events of subscriptions together, beyond
// [FreeSteps] of each. It refills over time. A nil Allowance bounds nothing. It is safe for concurrent use.
type Allowance struct {
	within *Allowance
	left   *rate.Limiter
}

// NewAllowance returns an allowance of most steps at once, a quarter of which comes back each second.
func NewAllowance(most int) *Allowance {
	return &Allowance{left: rate.NewLimiter(rate.Limit(float64(most)/refill.Seconds()), most)}
}

// Connection returns the allowance of one connection, which also takes from a.
func (a *Allowance) Connection() *Allowance {
	if a == nil {
		return nil
	}
	out := NewAllowance(max(a.left.Burst()/connectionShare, 1))
	out.within = a
	return out
}

// take takes n steps if so many are left.
func (a *Allowance) take(n int64) bool {
	return a == nil || a.left.AllowN(time.Now(), int(n)) && a.within.take(n)
}
