package transport

import (
	"fmt"
	"net/http"
	"sync"
)

// admission limits the number of open connections of a transport.
type admission struct {
	key     string // the setting
	most    int
	changed func(delta int)

	mu   sync.Mutex // guards open and idle
	open int
	idle chan struct{} // closed when none is open; nil before drain is called
}

// admit counts another connection. It returns false if the limit is reached or drain was called.
func (a *admission) admit() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.idle != nil || a.open >= a.most {
		return false
	}
	a.open++
	a.changed(1)
	return true
}

func (a *admission) release() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.open--
	a.changed(-1)
	if a.idle != nil && a.open == 0 {
		close(a.idle)
	}
}

// drain refuses new connections. The returned channel is closed when no connection is open.
func (a *admission) drain() <-chan struct{} {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.idle == nil {
		a.idle = make(chan struct{})
		if a.open == 0 {
			close(a.idle)
		}
	}
	return a.idle
}

func (a *admission) isDraining() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.idle != nil
}

// refuse answers a request whose connection was not admitted.
func (a *admission) refuse(w http.ResponseWriter, r *http.Request, e *Executor, what string) {
	err := exceeded(a.key, int64(a.most), fmt.Sprintf("the gateway has the %d %s that it accepts (%s), or is stopping", a.most, what, a.key))
	err.Extensions["retryable"] = true
	w.Header().Set("Retry-After", "1")
	write(w, typeJSON, http.StatusServiceUnavailable, e.Refuse(r.Context(), err))
}
