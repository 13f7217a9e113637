package server

import (
	"context"
	"net/http"
	"sync"
	"time"

	"github.com/sluicegw/sluice/graph/transport"
)

// arrival limits how long a request of a method may still arrive after the gateway has begun to end streams. Without
// it, a client that does not send the rest of its request would delay the end of the gateway.
type arrival struct {
	control *http.ResponseController
	stop    func() bool

	mu       sync.Mutex // guards the deadline of the connection, and the rest
	hurried  bool
	complete bool
}

// beginArrival returns the arrival of the request whose answer is controlled by control. The caller must call end
// when the request has arrived or was answered.
func (s *Server) beginArrival(control *http.ResponseController) *arrival {
	a := &arrival{control: control}
	a.stop = context.AfterFunc(s.methodStreams, a.hurry)
	return a
}

// hurry sets the deadline, unless the request has arrived.
func (a *arrival) hurry() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !a.complete {
		a.hurried = true
		_ = a.control.SetReadDeadline(time.Now().Add(transport.LateGrace))
	}
}

// end removes the deadline. Over HTTP/1.1, a deadline would end the call while it is executed.
func (a *arrival) end() {
	a.stop()
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.hurried && !a.complete {
		_ = a.control.SetReadDeadline(time.Time{})
	}
	a.complete = true
}
