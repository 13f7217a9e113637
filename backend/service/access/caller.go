// Package access identifies callers and decides what they may do: roles and bindings become rights,
// and rights become scopes, which are the resources of a kind on which a verb may be used.
//
//	AccessBinding --roles--> AccessRole        Caller (name, groups)
//	      |                      |                  |
//	      '------- [Policy] -----'---- RightsOf ----'
//	                                      |
//	                                   [Rights] --Scope(kind, verbs)--> [Scope]: all | namespaces | names
//
// Only this package decides on rights. Reads are planned over scopes; writes call
// [Rights.Authorize].
package access

import (
	"cmp"
	"context"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/span"
)

// Caller is the sender of a request. The zero value is anonymous.
type Caller struct {
	// Identity is nil for an anonymous caller.
	Identity *Identity
	// Address is the caller's address, and Request the id of its request; zero if unknown. The log
	// of changes has them.
	Address netip.Addr
	Request string
	// Trace is the traceparent of the request (W3C Trace Context), which calls to other services carry on: the one it
	// came with, or a new one; of a request that is traced here, the one of its span. It is empty without a request.
	Trace string
	// Decided reports whether somebody has decided whether Trace is recorded: the client, or the sampler of the gateway.
	// Calls to other services carry only such a trace on, since they take the decision over.
	Decided bool
}

// UpdatedBy returns the name of the caller as stored in resources; empty for an anonymous
// one.
func (c Caller) UpdatedBy() string {
	if c.Identity == nil {
		return ""
	}
	return c.Identity.Name
}

type callerKey struct{}

// WithCaller returns a context with a caller. The edge creates it once for each
// request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller of a context, the zero value if it has none.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// WithoutCaller returns a context in which the gateway itself acts.
func WithoutCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, nil)
}

// Gateway is the name of the gateway as the author of its own changes: conditions, bindings of
// references, finished deletions.
const Gateway = "system:gateway"

// Actor is the author of a change, as in its log entry.
type Actor struct {
	// Name of the caller, [Anonymous], or [Gateway].
	Name string
	// Address and Request of the caller; empty if they are not known.
	Address, Request string
	// Trace is the traceparent of the span in which the change was made; empty unless it was recorded.
	Trace string
}

// ActorFrom returns the caller in ctx as an actor, or the gateway if there is no caller.
func ActorFrom(ctx context.Context) Actor {
	c, ok := ctx.Value(callerKey{}).(Caller)
	if !ok {
		return Actor{Name: Gateway}
	}
	out := Actor{Name: c.Identity.String(), Request: c.Request}
	if span.Sampled(c.Trace) {
		out.Trace = cmp.Or(span.Of(ctx).Traceparent(), c.Trace)
	}
	if c.Address.IsValid() {
		out.Address = c.Address.String()
	}
	return out
}

// actorSeparator separates the parts of an actor as text; names, addresses and ids do not contain
// it.
const actorSeparator = "\t"

// String returns the actor as in log entries: name, address and request, and for a traced change
// the result of [span.Pack]. That is 9 bytes with the separator, or 25 if the request is not named
// by the id of its trace, and one more for each byte that has to be escaped. The gateway is the
// empty text, as in entries for expired resources.
func (a Actor) String() string {
	if a.Name == Gateway {
		return ""
	}
	packed := span.Pack(a.Trace, a.Request)
	if packed == "" {
		return a.Name + actorSeparator + a.Address + actorSeparator + a.Request
	}
	return a.Name + actorSeparator + a.Address + actorSeparator + a.Request + actorSeparator + escapeTrace(packed)
}

// traceEscape precedes a byte of a packed trace that would cost a store or a reader an escape of the whole text: it
// stands there with its highest bit turned over.
const (
	traceEscape  = '\x1b'
	escapedBytes = "\t\n%\x1b"
)

func escapeTrace(packed string) string {
	if !strings.ContainsAny(packed, escapedBytes) {
		return packed
	}
	out := make([]byte, 0, len(packed)+len(escapedBytes))
	for i := range len(packed) {
		b := packed[i]
		if strings.IndexByte(escapedBytes, b) >= 0 {
			out = append(out, traceEscape, b^0x80)
			continue
		}
		out = append(out, b)
	}
	return string(out)
}

func unescapeTrace(text string) string {
	if strings.IndexByte(text, traceEscape) < 0 {
		return text
	}
	out := make([]byte, 0, len(text))
	for i := 0; i < len(text); i++ {
		b := text[i]
		if b == traceEscape && i+1 < len(text) {
			i++
			b = text[i] ^ 0x80
		}
		out = append(out, b)
	}
	return string(out)
}

// ParseActor reads what String has written.
func ParseActor(text string) Actor {
	if text == "" {
		return Actor{Name: Gateway}
	}
	name, rest, _ := strings.Cut(text, actorSeparator)
	address, rest, _ := strings.Cut(rest, actorSeparator)
	request, packed, _ := strings.Cut(rest, actorSeparator)
	out := Actor{Name: name, Address: address, Request: request}
	if packed != "" {
		out.Trace = span.Unpack(unescapeTrace(packed), request)
	}
	return out
}

// TraceOf returns the trace of an actor as text: see [Actor.Trace]. It costs next to nothing for one that has none.
func TraceOf(actor string) string {
	if strings.Count(actor, actorSeparator) < 3 {
		return ""
	}
	return ParseActor(actor).Trace
}

// Identity is the owner of a credential. It is immutable, and shared by all requests
// with that credential.
type Identity struct {
	// Name begins with the source, so that equal names of two sources differ: token:ci,
	// oidc:corp:alice, cert:worker, proxy:bob.
	Name string
	// Source is token, oidc:NAME, cert or proxy.
	Source string
	// Groups have the same prefix as the name.
	Groups []string
	// ExpiresAt is the expiry in the credential; zero means never.
	ExpiresAt time.Time
	// Until is the time from which the credential is not accepted, which may be slightly
	// later; zero means never.
	Until time.Time
	// Revoked ends when the credential is revoked. Nil means never.
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

// The reasons why a credential is not accepted, or no longer accepted.
var (
	ErrNoCredential = errors.New("a credential is needed")
	ErrExpired      = errors.New("the credential has expired")
	ErrRevoked      = errors.New("the credential was revoked")
)

// Err returns the reason why the credential is no longer valid, as a [failure.Error]; nil
// while it is valid.
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

// Lifetime returns a context that ends with ctx or with the credential. If the credential ends
// first, the cause of the context is the error of Err. end releases the context.
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
