package stream

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Config of groups.
type Config struct {
	// Begin begins the subscription of the operation of ctx. It resumes at the cursor after; empty leaves that to the
	// argument of the document. If it does not begin, the errors are what the client is told. Required.
	Begin func(ctx context.Context, after string) (Events, gqlerror.List)
	// Lead begins an execution for all subscriptions that are equal to that of first, which follows it. It takes the
	// place of first in its stream, and ends when ctx does. It returns nil if it does not begin. Required.
	Lead func(ctx context.Context, first Execution) Execution
	// Responder makes the answers to events. Required.
	Responder Responder
	// Recover returns the errors that a client is told of a panic. Required.
	Recover func(ctx context.Context, v any) gqlerror.List
	// Refuse returns the errors that end a subscription whose next event finds no memory. Required.
	Refuse func(context.Context) gqlerror.List
	// Memory bounds the memory of everything in flight. Default: unbounded.
	Memory *budget.Memory
}

// Groups runs the subscriptions of one API of one catalogue.
type Groups struct {
	cfg Config

	mu sync.Mutex // taken before the mutex of a group
	// open has the groups that others can join. Other groups read the state and cannot be joined any more.
	open map[groupKey]*group
}

// groupKey identifies a group: its events, and the moment at which it began.
type groupKey struct {
	ShareKey
	at change.JoinPoint
}

// NewGroups starts nothing.
func NewGroups(cfg Config) *Groups { return &Groups{cfg: cfg, open: map[groupKey]*group{}} }

// withMemory returns a context whose answers take memory of a share.
func withMemory(ctx context.Context, memory *budget.Share) context.Context {
	shared := budget.SharedFrom(ctx)
	shared.Memory = memory
	return budget.WithShared(ctx, shared)
}

// join makes a subscription a follower of the group with its key that goes on from the same moment, and begins one
// if there is none. It reports false if it cannot: a change lies between the two, the subscription's rights are of an
// older policy, or the shared execution does not begin.
func (x *Groups) join(s *Subscription, at change.JoinPoint) bool {
	key := groupKey{s.loop.execution.Key(), at}
	s.parked = false
	s.seen = 0
	s.resumePoint = nil
	x.mu.Lock()
	defer x.mu.Unlock()
	if g := x.open[key]; g != nil {
		g.mu.Lock()
		defer g.mu.Unlock()
		from := g.head
		if at == change.AtRest {
			from = g.tail
		}
		if !g.ended && from != nil {
			var ok bool
			s.seen, ok = s.loop.execution.Changes().Join(g.leader.Changes())
			if ok {
				s.loop.follow(g.leader)
				g.late = at != change.AtRest
				g.add(s, from)
			}
			return ok
		}
	}
	g := x.newGroup(key, s)
	if g == nil {
		return false
	}
	x.open[key] = g
	if g.live {
		g.Wake() // its first poll asks to be woken by changes
	}
	return true
}

// remove forgets a group. The caller holds mu.
func (x *Groups) remove(g *group) {
	if x.open[g.key] == g {
		delete(x.open, g.key)
	}
}

// unite moves the parked followers of a group that has become live to the live group of the same key, if no
// change lies between the two. If there is no such group, g becomes it. Followers that are behind move later.
func (x *Groups) unite(g *group) {
	x.mu.Lock()
	defer x.mu.Unlock()
	key := groupKey{g.key.ShareKey, change.AtRest}
	main := x.open[key]
	if main == g {
		return
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.ended {
		return
	}
	if main == nil {
		x.remove(g)
		g.key, x.open[key] = key, g
		return
	}
	main.mu.Lock()
	defer main.mu.Unlock()
	if main.ended || g.behind == len(g.followers) {
		return
	}
	seen, ok := g.leader.Changes().CaughtUpWith(main.leader.Changes())
	if !ok {
		return
	}
	for i := len(g.followers) - 1; i >= 0; i-- {
		if s := g.followers[i]; s.parked {
			g.remove(s)
			s.seen = seen
			main.add(s, nil)
		}
	}
	if len(g.followers) == 0 {
		x.remove(g)
		g.stop()
	}
}

// Count returns how many subscriptions follow groups that can be joined, how many of them are parked, and
// how many read the state.
func (x *Groups) Count() (following, parked, reading int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, g := range x.open {
		g.mu.Lock()
		following += len(g.followers)
		parked += len(g.followers) - g.behind
		if !g.live {
			reading += len(g.followers)
		}
		g.mu.Unlock()
	}
	return following, parked, reading
}
