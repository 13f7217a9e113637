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

// CallerLimits limit each caller, so that one caller cannot take what others need. Zero means the default of
// [DefaultCallerLimits].
type CallerLimits struct {
	// Requests, Subscriptions and Sockets are the maximum numbers at a time.
	Requests, Subscriptions, Sockets int
	// Rate is the maximum number of operations that begin in a second. A burst may have the same number.
	Rate int
	// Steps is the maximum work of queries and mutations in a second, in [budget.Steps]. An operation that exceeds it
	// is completed; after that the caller must wait.
	Steps int
}

// of returns the maximum number of requests, subscriptions or sockets that a caller may have open at the same time, the
// setting that defines it, and a name for messages.
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

// DefaultCallerLimits returns the defaults for a gateway with the given number of processors. By default a caller may
// use half of them.
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

// maxIdle is the maximum number of callers that are remembered although they have nothing open.
const maxIdle = 20_000

// callers counts what each caller uses. It is safe for concurrent use.
type callers struct {
	limits CallerLimits
	now    func() time.Time

	mu   sync.Mutex         // guards the rest
	busy map[string]*caller // callers that have something open
	idle *simplelru.LRU[string, *caller]
}

// newCallers returns counts with limits. Limits that are zero are replaced by defaults.
func newCallers(limits, defaults CallerLimits, now func() time.Time) *callers {
	fill(&limits.Requests, defaults.Requests)
	fill(&limits.Subscriptions, defaults.Subscriptions)
	fill(&limits.Sockets, defaults.Sockets)
	fill(&limits.Rate, defaults.Rate)
	fill(&limits.Steps, defaults.Steps)
	idle, _ := simplelru.NewLRU[string, *caller](maxIdle, nil) // the size is positive
	return &callers{limits: limits, now: now, busy: map[string]*caller{}, idle: idle}
}

// caller counts what one caller uses. It is guarded by callers.mu.
type caller struct {
	of    *callers
	name  string
	open  [uses]int
	begun *rate.Limiter
	// left is the number of steps that the caller could still take at the time at, when steps were last charged. It is
	// negative if the caller must wait. mean is the mean number of steps of the caller's latest operations.
	left, mean float64
	at         time.Time
	// recent is the number of steps of the caller's operations until the time at. Their weight decreases by half in
	// each minute.
	recent float64
}

// CallerState describes what a caller uses now.
type CallerState struct {
	// Name is the name of the caller, or the address of an anonymous client.
	Name string `json:"name"`
	// Requests, Subscriptions and Sockets are the numbers that are open.
	Requests      int `json:"requests"`
	Subscriptions int `json:"subscriptions"`
	Sockets       int `json:"sockets"`
	// RecentSteps is the number of steps of the caller's operations. Their weight decreases by half in each minute.
	RecentSteps int64 `json:"recentSteps"`
}

// noisiest returns the callers with the largest RecentSteps, the largest first. It returns no more callers than most.
// Callers with equal steps are ordered by how much they have open.
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

// recentSteps returns the value that recent has at a later time, if no more steps are charged.
func (c *caller) recentSteps(now time.Time) float64 {
	return c.recent * math.Exp2(-now.Sub(c.at).Minutes())
}

// Begin counts another use of a caller, until done is called. It returns LIMIT_EXCEEDED if the caller has reached its
// maximum, or for a request if the caller exceeds its rate or its work.
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

// pace returns an error if the caller must wait before its next request.
func (c *caller) pace(now time.Time) error {
	limits := c.of.limits
	// The work of running requests is charged when they end. Their expected work is subtracted now; otherwise all
	// waiting requests would begin together.
	if left := c.stepsLeft(now) - float64(c.open[transport.UseRequest])*c.mean; left < 0 {
		return callerExceeds("limit-caller-steps", limits.Steps, int(math.Ceil(-left/float64(limits.Steps))), fmt.Sprintf("the caller's operations take more than %d steps a second (limit-caller-steps)", limits.Steps))
	}
	if !c.begun.AllowN(now, 1) {
		return callerExceeds("limit-caller-rate", limits.Rate, 1, fmt.Sprintf("the caller begins more than %d operations a second (limit-caller-rate)", limits.Rate))
	}
	return nil
}

// stepsLeft returns how many steps the caller has at a time, at most the steps of one second. A [rate.Limiter] would
// not do: it allows no event larger than its burst, and one operation may take many times the steps of a second.
func (c *caller) stepsLeft(now time.Time) float64 {
	most := float64(c.of.limits.Steps)
	return min(most, c.left+now.Sub(c.at).Seconds()*most)
}

// Spend charges the steps that an operation has taken to its caller.
func (c *callers) Spend(name string, steps int64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	caller, now := c.caller(name), c.now()
	caller.mean += (float64(steps) - caller.mean) / 8
	caller.recent = caller.recentSteps(now) + float64(steps)
	caller.left, caller.at = caller.stepsLeft(now)-float64(steps), now
}

// caller returns the counts of a caller, which are new if it is not remembered. The caller of the method holds mu.
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

// end ends a use of a caller.
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
