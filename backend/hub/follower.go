package hub

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Follower receives each delivery before any watch. The hub calls its methods one at a time. They must return quickly,
// because all watches wait, and must not call the hub.
type Follower interface {
	// Begin sets the position after which the next delivery continues:
	//
	//	the first call                   nothing was delivered yet
	//	a later position, or epoch       the changes in between were not delivered
	//	an earlier position, same epoch  the store has lost the changes in between
	//	zero                             the hub has stopped, until the next Begin
	Begin(at backend.Position)
	// Deliver receives the next delivery of the store. It is shared and must not be modified.
	Deliver(d backend.Delivery)
}

// AddFollower makes f follow the hub until remove is called. It calls Begin before it returns.
func (h *Hub) AddFollower(f Follower) (remove func()) {
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
