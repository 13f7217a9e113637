package stream

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Config of [Groups].
type Config struct {
	// Begin starts the subscription of the operation in ctx. If after is not empty, it is the
	// cursor to resume from; otherwise the argument in the document decides. If it fails, it
	// returns errors for the client. Required.
	Begin func(ctx context.Context, after string) (Events, gqlerror.List)
	// Lead starts an execution for all subscriptions that are equal to first. It takes over the
	// stream of first, which becomes a follower, and ends when ctx ends. It returns nil if it
	// fails. Required.
	Lead func(ctx context.Context, first Execution) Execution
	// Responder makes the answers to events. Required.
	Responder Responder
	// Recover returns the errors that a client gets after a panic. Required.
	Recover func(ctx context.Context, v any) gqlerror.List
	// Refuse returns the errors that end a subscription if there is no memory for its next event.
	// Required.
	Refuse func(context.Context) gqlerror.List
	// Memory bounds the memory of all requests and answers in progress. Default:
	// unbounded.
	Memory *budget.Memory
}

// Groups runs the subscriptions to one version of the API of one catalogue.
type Groups struct {
	cfg Config

	mu sync.Mutex // taken before the mutex of a group
	// open has the groups that others can join. Other groups read the snapshot and cannot be joined any more.
	open map[groupKey]*group
}

// groupKey identifies a group: the key of its events, and the point at which it has
// started.
type groupKey struct {
	ShareKey
	at change.JoinPoint
}

// NewGroups returns groups without subscriptions. It starts nothing.
func NewGroups(cfg Config) *Groups { return &Groups{cfg: cfg, open: map[groupKey]*group{}} }

// withMemory returns a context whose answers take their memory from a share.
func withMemory(ctx context.Context, memory *budget.Share) context.Context {
	shared := budget.SharedFrom(ctx)
	shared.Memory = memory
	return budget.WithShared(ctx, shared)
}

// join makes a subscription a follower of the group with the same key and the same position; if
// there is none, it starts one. It returns false if that is impossible: there is a change between
// their positions, the subscription's rights are outdated, or the shared execution does not start.
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

// remove removes a group from those that can be joined. The caller holds mu.
func (x *Groups) remove(g *group) {
	if x.open[g.key] == g {
		delete(x.open, g.key)
	}
}

// unite moves the parked followers of a group that has become live to the live group with the same
// key, if both have received the same changes. If there is no such group, g becomes that
// group. Followers that are behind move later.
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

// Count returns the number of subscriptions that follow groups which can be joined, and how many of
// them are parked or are reading the snapshot.
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
