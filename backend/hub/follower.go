package hub

import (
	"slices"

	"github.com/sluicegw/sluice/backend"
)

// Follower sees each delivery before any watch does. The hub calls its methods one at a time.
// They must be quick, because every watch waits, and must not use the hub.
type Follower interface {
	// Begin sets the position that the next delivery continues:
	//
	//	the first call                   nothing was delivered yet
	//	a later position, or epoch       the changes in between were not delivered
	//	an earlier position, same epoch  the store has lost the changes in between
	//	zero                             the hub has stopped, until the next Begin
	Begin(at backend.Position)
	// Deliver passes on the next delivery of the store. It is shared and must not be changed.
	Deliver(d backend.Delivery)
}

// AddFollower makes f follow the hub until remove is called. Begin is called before AddFollower
// returns.
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
