package transport

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// body reads the body of a POST at the pace that clients must keep.
func (h *HTTP) body(w http.ResponseWriter, r *http.Request) (data []byte, taken int64, err error) {
	in := &incoming{control: http.NewResponseController(w), pace: cmp.Or(h.BodyTimeout, DefaultMessageTimeout), end: time.Now().Add(maxBodyTime)}
	h.mu.Lock()
	if h.bodies == nil {
		h.bodies = map[*incoming]struct{}{}
	}
	h.bodies[in] = struct{}{}
	in.endBy(h.stopping)
	h.mu.Unlock()
	defer func() {
		h.mu.Lock()
		delete(h.bodies, in)
		h.mu.Unlock()
	}()
	data, taken, err = reading{from: r.Body, most: h.Body, room: h.Memory.Requests(), announced: r.ContentLength, pace: in}.read()
	if err == nil {
		in.finish()          // the answer has a time of its own
		err = r.Body.Close() // else net/http looks for its end again
	}
	return data, taken, err
}

// Drain gives clients some time to send the rest of the bodies that they are sending.
func (h *HTTP) Drain(grace time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stopping = time.Now().Add(grace)
	for in := range h.bodies {
		in.endBy(h.stopping)
	}
}

func (h *HTTP) isStopping() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.stopping.IsZero()
}

// incoming is a body that is being read.
type incoming struct {
	control *http.ResponseController
	pace    time.Duration

	mu   sync.Mutex // guards the deadline of the connection, and the rest
	end  time.Time
	done bool
}

// extend gives the client time for some more bytes. A connection without
// deadlines keeps those of the server.
func (in *incoming) extend() {
	in.mu.Lock()
	defer in.mu.Unlock()
	next := time.Now().Add(in.pace)
	if next.After(in.end) {
		next = in.end
	}
	_ = in.control.SetReadDeadline(next)
}

// endBy brings the end forward.
func (in *incoming) endBy(end time.Time) {
	in.mu.Lock()
	defer in.mu.Unlock()
	if !in.done && !end.IsZero() && end.Before(in.end) {
		in.end = end
		_ = in.control.SetReadDeadline(end)
	}
}

// finish lifts the deadline.
func (in *incoming) finish() {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.done = true
	_ = in.control.SetReadDeadline(time.Time{})
}

// maxBodyTime is how long a whole body may take, at whatever pace.
const maxBodyTime = time.Minute

// unread is why a body was not read to its end.
func (h *HTTP) unread(w http.ResponseWriter, err error) (int, *gqlerror.Error) {
	var network net.Error
	switch {
	case errors.Is(err, errTooMany):
		return http.StatusRequestEntityTooLarge, &gqlerror.Error{
			Message:    fmt.Sprintf("the request has more than the %d bytes that are accepted (configuration key limit-body)", h.Body),
			Extensions: map[string]any{"code": string(failure.CodeLimitExceeded), "limit": h.Body, "key": "limit-body"},
		}
	case errors.Is(err, errBudget):
		h.busy(w)
		return http.StatusServiceUnavailable, overBudget(h.Memory)
	case errors.As(err, &network) && network.Timeout() && h.isStopping():
		w.Header().Set("Retry-After", "1")
		return http.StatusServiceUnavailable, &gqlerror.Error{
			Message:    "the gateway is shutting down; try again",
			Extensions: map[string]any{"code": string(failure.CodeUnavailable), "retryable": true},
		}
	case errors.As(err, &network) && network.Timeout():
		return http.StatusRequestTimeout, &gqlerror.Error{
			Message:    "the body came too slowly",
			Extensions: map[string]any{"code": string(failure.CodeTimeout), "retryable": true},
		}
	}
	return http.StatusBadRequest, badRequest("the body could not be read")
}
