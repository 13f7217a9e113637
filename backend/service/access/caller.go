// Package access says who asks, and what they may do: roles and bindings become rights, and
// rights become scopes, which are the resources of a kind that a verb may be used on.
//
//	AccessBinding --roles--> AccessRole        Caller (name, groups)
//	      |                      |                  |
//	      '------- [Policy] -----'---- RightsOf ----'
//	                                      |
//	                                   [Rights] --Scope(kind, verbs)--> [Scope]: all | namespaces | names
//
// It is the one place that judges. Reads are planned over scopes; writes ask [Rights.Authorize].
package access

import (
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// Caller is who asks. The zero value is anonymous.
type Caller struct {
	// Identity is nil for an anonymous caller.
	Identity *Identity
	// Address is where the caller asks from, and Request the id of its request; zero if unknown. They are
	// told in the log of changes.
	Address netip.Addr
	Request string
	// Trace is the traceparent of the request (W3C Trace Context), which calls to other services carry on; empty if it
	// has none.
	Trace string
}

// UpdatedBy returns the name of the caller as resources keep it; empty for an anonymous one.
func (c Caller) UpdatedBy() string {
	if c.Identity == nil {
		return ""
	}
	return c.Identity.Name
}

type callerKey struct{}

// WithCaller returns a context that says who asks. The edge makes it, once for
// each request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom is who asks; the zero value where the context does not say.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// WithoutCaller returns a context in which the gateway itself acts.
func WithoutCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, nil)
}

// Gateway is the name of the gateway itself, which gives resources their conditions, binds references and
// finishes deletions.
const Gateway = "system:gateway"

// Actor is who made a change, as its log entry has it.
type Actor struct {
	// Name of the caller, [Anonymous], or [Gateway].
	Name string
	// Address and Request of the caller; empty if they are not known.
	Address, Request string
}

// ActorFrom returns the caller in ctx as an actor, or the gateway if there is no caller.
func ActorFrom(ctx context.Context) Actor {
	c, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return Actor{Name: Gateway}
	}
	out := Actor{Name: c.Identity.String(), Request: c.Request}
	if c.Address.IsValid() {
		out.Address = c.Address.String()
	}
	return out
}

// actorSeparator stands between the parts of an actor as text; names, addresses and ids have none.
const actorSeparator = "\t"

// String returns the actor as log entries have it. The gateway is the empty text, as in entries of what has expired.
func (a Actor) String() string {
	if a.Name == Gateway {
		return ""
	}
	return a.Name + actorSeparator + a.Address + actorSeparator + a.Request
}

// ParseActor reads what String has written.
func ParseActor(text string) Actor {
	if text == "" {
		return Actor{Name: Gateway}
	}
	name, rest, _ := strings.Cut(text, actorSeparator)
	address, request, _ := strings.Cut(rest, actorSeparator)
	return Actor{Name: name, Address: address, Request: request}
}

// Identity is who a credential belongs to. It is immutable, and shared by all requests
// with that credential.
type Identity struct {
	// Name has the prefix of its source, so that equal names of two sources never meet:
	// token:ci, oidc:corp:alice, cert:worker, proxy:bob.
	Name string
	// Source is token, oidc:NAME, cert or proxy.
	Source string
	// Groups have the same prefix as the name.
	Groups []string
	// ExpiresAt is when the credential says that it expires; zero is never.
	ExpiresAt time.Time
	// Until is when it is not accepted any more, which may be a little later; zero is never.
	Until time.Time
	// Revoked ends when the credential is revoked. Nil is never.
	Revoked context.Context
}

// Anonymous is the name of a caller without an identity, in logs and in the API.
const Anonymous = "anonymous"

// String returns the name of the caller.
func (i *Identity) String() string {
	if i == nil {
		return Anonymous
	}
	return i.Name
}

// The reasons why a credential is not accepted, or not any more.
var (
	ErrNoCredential = errors.New("a credential is needed")
	ErrExpired      = errors.New("the credential has expired")
	ErrRevoked      = errors.New("the credential was revoked")
)

// Err returns why the credential is not valid any more, as a [failure.Error]; nil while it is.
func (i *Identity) Err() error {
	switch {
	case i == nil:
	case i.Revoked != nil && i.Revoked.Err() != nil:
		return failure.Unauthenticated(ErrRevoked)
	case !i.Until.IsZero() && !time.Now().Before(i.Until):
		return failure.Unauthenticated(ErrExpired)
	}
	return nil
}

// Lifetime returns a context that ends with ctx or with the credential. In the second case its cause is the
// error that Err returns. end frees what it holds.
func (i *Identity) Lifetime(ctx context.Context) (lifetime context.Context, end context.CancelFunc) {
	if i == nil {
		return context.WithCancel(ctx)
	}
	lifetime, cancel := context.WithCancelCause(ctx)
	end = func() { cancel(nil) }
	if !i.Until.IsZero() {
		lifetime, end = context.WithDeadlineCause(lifetime, i.Until, failure.Unauthenticated(ErrExpired))
	}
	if i.Revoked != nil {
		stop := context.AfterFunc(i.Revoked, func() { cancel(failure.Unauthenticated(ErrRevoked)) })
		context.AfterFunc(lifetime, func() { stop() })
	}
	return lifetime, end
}
