package stream

import (
	"context"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/change"
)

// Config configures [Groups].
type Config struct {
	// Begin begins the subscription of the operation in ctx. If after is not empty, it is the cursor to resume from;
	// otherwise the argument in the document applies. If the subscription cannot begin, Begin returns errors for the
	// client. Required.
	Begin func(ctx context.Context, after string) (Events, gqlerror.List)
	// Lead begins an execution that all subscriptions equal to first share. It takes over the stream of first, and ends
	// with ctx. If it cannot begin, Lead returns nil. Required.
	Lead func(ctx context.Context, first Execution) Execution
	// Responder provides each answer with a budget, errors and extensions. Required.
	Responder Responder
	// Recover returns the errors for the client after a panic. Required.
	Recover func(ctx context.Context, v any) gqlerror.List
	// Refuse returns the errors with which a subscription ends if there is no memory for its next event. Required.
	Refuse func(context.Context) gqlerror.List
	// Memory is the memory that all requests and answers share. Default: unbounded.
	Memory *budget.Memory
}

// Groups runs the subscriptions to one version of the API, in one catalogue.
type Groups struct {
	cfg Config

	mu sync.Mutex // taken before the mutex of a group
	// open has the newest group with each key. A group that is reading the snapshot may be closed to other
	// subscriptions; the next subscription then begins another group in its place.
	open map[groupKey]*group
}

// groupKey identifies a group by the key of its execution and the point at which it began.
type groupKey struct {
	ShareKey
	at change.JoinPoint
}

// NewGroups returns Groups without subscriptions. It starts nothing.
func NewGroups(cfg Config) *Groups { return &Groups{cfg: cfg, open: map[groupKey]*group{}} }

// withMemory returns a context whose answers claim memory from a share.
func withMemory(ctx context.Context, memory *budget.Share) context.Context {
	shared := budget.SharedFrom(ctx)
	shared.Memory = memory
	return budget.WithShared(ctx, shared)
}

// join makes a subscription follow the group with its key and join point, and begins that group if there is none. It
// returns false if that is not possible: there is a change between the positions of the subscription and the group, the
// rights of the subscription are outdated, or the shared execution cannot begin.
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

// remove removes a group from open. The caller holds mu.
func (x *Groups) remove(g *group) {
	if x.open[g.key] == g {
		delete(x.open, g.key)
	}
}

// unite makes a group that has become live the one that equal subscriptions join. If there is already such a group and
// both have received the same changes, it moves the parked followers of g there; followers that are behind move later.
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

// Count returns how many subscriptions follow the newest group with their key, and how many of these are parked or
// reading the snapshot.
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
