package transport

import (
	"fmt"
	"net/http"
	"sync"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// admission bounds the connections of a kind that are open, until they are drained. The zero value
// is ready.
type admission struct {
	mu   sync.Mutex // guards all below
	open int
	// draining is closed when no more are admitted, and drained when none is open after that. Both
	// are nil until they are needed.
	draining, drained chan struct{}
	closed            bool // draining is closed
}

// channels makes both channels. The caller holds mu.
func (a *admission) channels() {
	if a.draining == nil {
		a.draining, a.drained = make(chan struct{}), make(chan struct{})
	}
}

// admit counts one more, and reports false if most are open or they are drained. opened is told
// unless it is nil.
func (a *admission) admit(most int, opened func(delta int)) (draining <-chan struct{}, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.closed || a.open >= most {
		return nil, false
	}
	a.channels()
	a.add(1, opened)
	return a.draining, true
}

func (a *admission) release(opened func(delta int)) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.add(-1, opened); a.closed && a.open == 0 {
		close(a.drained)
	}
}

func (a *admission) add(delta int, opened func(delta int)) {
	a.open += delta
	if opened != nil {
		opened(delta)
	}
}

// drain admits no more. It returns a channel that is closed when none is open.
func (a *admission) drain() (drained <-chan struct{}) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.channels(); !a.closed {
		a.closed = true
		close(a.draining)
		if a.open == 0 {
			close(a.drained)
		}
	}
	return a.drained
}

// notAdmitted is told to a client that is not admitted.
func notAdmitted(what string, most int) *gqlerror.Error {
	return &gqlerror.Error{
		Message:    fmt.Sprintf("the gateway has the %d %s that it accepts (configuration key limit-sockets), or is stopping", most, what),
		Extensions: map[string]any{"code": string(failure.CodeLimitExceeded), "limit": most, "key": "limit-sockets", "retryable": true},
	}
}

// writeRefusal answers a request for a long-lived connection that is refused.
func writeRefusal(w http.ResponseWriter, status int, body []byte) {
	w.Header().Set("Content-Type", typeJSON+"; charset=utf-8")
	w.WriteHeader(status)
	_, _ = w.Write(body) // a client that has gone hears nothing
}
