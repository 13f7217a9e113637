package budget

import (
	"time"

	"golang.org/x/time/rate"
)

// FreeSteps is how many steps an event may take before it takes of an [Allowance]: those
// of a resource with a few dozen others.
const FreeSteps = 5000

// refill is after how long an allowance that was used up is whole again.
const refill = 4 * time.Second

// connectionShare is which part of the allowance the events of one connection may take.
const connectionShare = 4

// Allowance bounds the steps of all events of subscriptions together, beyond
// [FreeSteps] of each. What was taken comes back in time. A nil Allowance bounds
// nothing. It is safe for concurrent use.
type Allowance struct {
	within *Allowance
	left   *rate.Limiter
}

// NewAllowance returns an allowance of so many steps at once, of which a quarter comes
// back in each second.
func NewAllowance(most int) *Allowance {
	return &Allowance{left: rate.NewLimiter(rate.Limit(float64(most)/refill.Seconds()), most)}
}

// Connection is the allowance of one connection within that of all.
func (a *Allowance) Connection() *Allowance {
	if a == nil {
		return nil
	}
	out := NewAllowance(max(a.left.Burst()/connectionShare, 1))
	out.within = a
	return out
}

// take takes steps if so many are left.
func (a *Allowance) take(n int64) bool {
	return a == nil || a.left.AllowN(time.Now(), int(n)) && a.within.take(n)
}
