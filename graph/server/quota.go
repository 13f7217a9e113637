package server

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/hashicorp/golang-lru/v2/simplelru"
	"golang.org/x/time/rate"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/transport"
)

// uses is the number of values of [transport.Use].
const uses = transport.UseSocket + 1

// CallerLimits are what one caller may take, so that a greedy one leaves enough for the others. Zero is the default
// of each, see [DefaultCallerLimits].
type CallerLimits struct {
	// Requests, Subscriptions and Sockets are the most at a time.
	Requests, Subscriptions, Sockets int
	// Rate is the most operations that begin in a second; as many may come at once.
	Rate int
	// Steps is the most work of queries and mutations in a second, in steps of the budget of an operation. An operation
	// that has begun is not cut short: the caller waits afterwards.
	Steps int
}

// of returns how many of a use there may be at a time, the setting that says so, and what to call them.
func (l CallerLimits) of(use transport.Use) (most int, setting, what string) {
	switch use {
	case transport.UseSubscription:
		return l.Subscriptions, "limit-caller-subscriptions", "subscriptions"
	case transport.UseSocket:
		return l.Sockets, "limit-caller-sockets", "WebSocket connections"
	default:
		return l.Requests, "limit-caller-requests", "requests in flight"
	}
}

// DefaultCallerLimits are the defaults for a number of processors, of which one caller may take half.
func DefaultCallerLimits(processors int) CallerLimits {
	const stepsOfProcessor = 10_000_000 // in a second
	return CallerLimits{
		Requests:      500,
		Subscriptions: 5_000,
		Sockets:       1_000,
		Rate:          5_000,
		Steps:         max(processors, 1) * stepsOfProcessor / 2,
	}
}

// maxIdle is the most callers that are remembered though they have nothing open.
const maxIdle = 20_000

// callers counts what each caller takes. It is safe for concurrent use.
type callers struct {
	limits CallerLimits
	now    func() time.Time

	mu   sync.Mutex         // guards the rest
	busy map[string]*caller // have something open
	idle *simplelru.LRU[string, *caller]
}

// newCallers returns the counts of callers under limits, zeros of which are as in defaults.
func newCallers(limits, defaults CallerLimits, now func() time.Time) *callers {
	fill(&limits.Requests, defaults.Requests)
	fill(&limits.Subscriptions, defaults.Subscriptions)
	fill(&limits.Sockets, defaults.Sockets)
	fill(&limits.Rate, defaults.Rate)
	fill(&limits.Steps, defaults.Steps)
	idle, _ := simplelru.NewLRU[string, *caller](maxIdle, nil) // the size is positive
	return &callers{limits: limits, now: now, busy: map[string]*caller{}, idle: idle}
}

// caller counts what one caller takes. callers.mu guards it.
type caller struct {
	of    *callers
	name  string
	open  [uses]int
	begun *rate.Limiter
	// left are the steps that it had at a moment; fewer than none while it must wait. mean is what its
	// operations took of late.
	left, mean float64
	at         time.Time
	// recent are the steps that its operations took, those of a minute ago by half, and so on.
	recent float64
}

// CallerState is what a caller takes now.
type CallerState struct {
	// Name is an identity, or the address of an anonymous client.
	Name string `json:"name"`
	// Requests, Subscriptions and Sockets are open.
	Requests      int `json:"requests"`
	Subscriptions int `json:"subscriptions"`
	Sockets       int `json:"sockets"`
	// RecentSteps is the work of its operations, that of a minute ago by half, and so on.
	RecentSteps int64 `json:"recentSteps"`
}

// noisiest returns the callers whose operations took most of late, followed by those that have most open.
func (c *callers) noisiest(most int) []CallerState {
	c.mu.Lock()
	now := c.now()
	all := make([]CallerState, 0, len(c.busy)+c.idle.Len())
	for _, of := range slices.Concat(slices.Collect(maps.Values(c.busy)), c.idle.Values()) {
		all = append(all, CallerState{
			Name:          of.name,
			Requests:      of.open[transport.UseRequest],
			Subscriptions: of.open[transport.UseSubscription],
			Sockets:       of.open[transport.UseSocket],
			RecentSteps:   int64(of.recentSteps(now)),
		})
	}
	c.mu.Unlock()
	slices.SortFunc(all, func(a, b CallerState) int {
		open := func(s CallerState) int { return s.Requests + s.Subscriptions + s.Sockets }
		return cmp.Or(
			cmp.Compare(b.RecentSteps, a.RecentSteps),
			cmp.Compare(open(b), open(a)),
			cmp.Compare(a.Name, b.Name),
		)
	})
	return all[:min(len(all), most)]
}

// recentSteps returns recent as it counts at an instant.
func (c *caller) recentSteps(now time.Time) float64 {
	return c.recent * math.Exp2(-now.Sub(c.at).Minutes())
}

// Begin counts one more thing of a caller, which done gives back. The error is LIMIT_EXCEEDED if the caller
// has as many as it may, or, of requests, if it is too fast or has too much work done.
func (c *callers) Begin(name string, use transport.Use) (done func(), err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	caller := c.caller(name)
	if most, setting, what := c.limits.of(use); caller.open[use] >= most {
		return nil, callerExceeds(
			setting,
			most,
			1,
			fmt.Sprintf("the caller has the %d %s that it may have (%s)", most, what, setting),
		)
	}
	if use == transport.UseRequest {
		if err := caller.pace(c.now()); err != nil {
			return nil, err
		}
	}
	caller.open[use]++
	c.busy[name] = caller
	c.idle.Remove(name)
	return func() { c.end(caller, use) }, nil
}

// pace refuses a request of a caller that must wait.
func (c *caller) pace(now time.Time) error {
	limits := c.of.limits
	// What is in flight is paid at its end; without this, all that wait would begin together.
	if left := c.stepsLeft(now) - float64(c.open[transport.UseRequest])*c.mean; left < 0 {
		return callerExceeds("limit-caller-steps", limits.Steps, int(math.Ceil(-left/float64(limits.Steps))), fmt.Sprintf("the caller's operations take more than %d steps a second (limit-caller-steps)", limits.Steps))
	}
	if !c.begun.AllowN(now, 1) {
		return callerExceeds("limit-caller-rate", limits.Rate, 1, fmt.Sprintf("the caller begins more than %d operations a second (limit-caller-rate)", limits.Rate))
	}
	return nil
}

// stepsLeft returns how many steps the caller has: at most the steps of one second. A [rate.Limiter] allows no more
// than that at once, and one operation may take many times as many.
func (c *caller) stepsLeft(now time.Time) float64 {
	most := float64(c.of.limits.Steps)
	return min(most, c.left+now.Sub(c.at).Seconds()*most)
}

// Spend counts the steps that an operation of a caller took.
func (c *callers) Spend(name string, steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	caller, now := c.caller(name), c.now()
	caller.mean += (float64(steps) - caller.mean) / 8
	caller.recent = caller.recentSteps(now) + float64(steps)
	caller.left, caller.at = caller.stepsLeft(now)-float64(steps), now
}

// caller returns a caller, which is new if it is not remembered. The caller holds mu.
func (c *callers) caller(name string) *caller {
	if known := c.busy[name]; known != nil {
		return known
	}
	if known, ok := c.idle.Get(name); ok {
		return known
	}
	known := &caller{
		of: c, name: name,
		begun: rate.NewLimiter(rate.Limit(c.limits.Rate), c.limits.Rate),
		left:  float64(c.limits.Steps), at: c.now(),
	}
	c.idle.Add(name, known)
	return known
}

// end gives one back.
func (c *callers) end(caller *caller, use transport.Use) {
	c.mu.Lock()
	defer c.mu.Unlock()
	caller.open[use]--
	if caller.open == [uses]int{} {
		delete(c.busy, caller.name)
		c.idle.Add(caller.name, caller)
	}
}

func callerExceeds(setting string, limit, retryAfter int, message string) error {
	return &failure.Error{
		Code:       failure.CodeLimitExceeded,
		Message:    message,
		Limit:      limit,
		Setting:    setting,
		Retryable:  true,
		RetryAfter: retryAfter,
	}
}
