package hub

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Follower sees all that the hub follows, in order, before any subscriber hears of
// it: what a subscriber is told of, a follower knows. Its methods are called by one
// goroutine at a time. They must be quick, for everybody waits, and must not use the hub.
type Follower interface {
	// Begin says that deliveries follow from a position on: at first, and again where the hub
	// could not go on. In the epoch of the last delivery it may lie before that: then the
	// store has lost the changes between the two, and has all up to the position. Otherwise
	// changes before it were not delivered. Zero says that the hub does not follow the store,
	// until Begin is called again.
	Begin(at backend.Position)
	// Deliver is the next delivery of the store. It is shared and must not be changed.
	Deliver(d backend.Delivery)
}

// Attach makes f follow the hub until detach is called. Begin is called before Attach returns.
func (h *Hub) Attach(f Follower) (detach func()) {
	h.relay.Lock()
	defer h.relay.Unlock()
	f.Begin(h.Position())
	h.followers = append(h.followers, f)
	return func() {
		h.relay.Lock()
		defer h.relay.Unlock()
		h.followers = slices.DeleteFunc(h.followers, func(known Follower) bool { return known == f })
	}
}
