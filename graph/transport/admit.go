package transport

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"sync"

	"github.com/gorilla/websocket"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// Use is something that a caller may have or do only a limited number of times at once: see [Config.Admit].
type Use int

// The values of [Use].
const (
	// UseRequest is a query, a mutation, or a request that begins a subscription.
	UseRequest Use = iota
	// UseSubscription is an open subscription.
	UseSubscription
	// UseSocket is a WebSocket connection that was initialised.
	UseSocket
)

// admit calls [Config.Admit]. The function done may be called more than once.
func (c *Config) admit(ctx context.Context, use Use) (done func(), refused *gqlerror.Error) {
	done, err := c.Admit(ctx, use)
	switch {
	case err != nil:
		return func() {}, asGraphQL(err)
	case done == nil:
		return func() {}, nil
	}
	return sync.OnceFunc(done), nil
}

// asGraphQL wraps an error for [Executor.Present].
func asGraphQL(err error) *gqlerror.Error { return &gqlerror.Error{Message: err.Error(), Err: err} }

// Refuse answers a request with an error instead of executing it. The error determines the HTTP status.
func (t *Transport) Refuse(w http.ResponseWriter, r *http.Request, err error) {
	t.refuse(w, r, Status(w, err), asGraphQL(err))
}

// Status returns the HTTP status for a refused request, and sets the headers that go with it.
func Status(w http.ResponseWriter, err error) int {
	var known *failure.Error
	if !errors.As(err, &known) {
		return http.StatusInternalServerError
	}
	if known.RetryAfter > 0 {
		w.Header().Set("Retry-After", strconv.Itoa(known.RetryAfter))
	}
	switch known.Code {
	case failure.CodeUnauthenticated:
		challenge := "Bearer"
		if !errors.Is(err, access.ErrNoCredential) {
			challenge += ` error="invalid_token"` // RFC 6750, 3.1
		}
		w.Header().Set("WWW-Authenticate", challenge)
		return http.StatusUnauthorized
	case failure.CodeLimitExceeded:
		return http.StatusTooManyRequests
	case failure.CodeUnavailable:
		return http.StatusServiceUnavailable
	}
	return http.StatusForbidden
}

// closingFor returns how to close a connection whose caller is refused, or whose credential has ended.
func closingFor(err error) *closing {
	out := &closing{code: codeForbidden, reason: "Forbidden", wait: true}
	var known *failure.Error
	if errors.As(err, &known) {
		out.reason = string(known.Code) + ": " + known.Message
		if known.RetryAfter > 0 {
			out.code = websocket.CloseTryAgainLater
		}
	}
	return out
}

// watchCredential closes the connection when the credential of its caller ends.
func (s *socket) watchCredential(ctx context.Context) {
	id := access.CallerFrom(ctx).Identity
	if id == nil {
		return
	}
	lifetime, end := id.Lifetime(ctx)
	context.AfterFunc(lifetime, func() {
		end()
		s.close(closingFor(context.Cause(lifetime))) // does nothing if the connection is already ending
	})
}
