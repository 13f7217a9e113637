// Package access identifies callers and decides what they may do. Roles and bindings give a caller rights. A scope is
// the set of resources of a kind on which these rights include a verb.
//
//	AccessBinding --roles--> AccessRole        Caller (name, groups)
//	      |                      |                  |
//	      '------- [Policy] -----'---- RightsOf ----'
//	                                      |
//	                                   [Rights] --Scope(kind, verbs)--> [Scope]: all | namespaces | names
//
// Only this package decides on rights. Reads return only resources in the scope of the caller; writes call
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
	// Address is the IP address of the caller. Request is the id of the caller's request. The log of changes contains
	// both. They are zero if unknown.
	Address netip.Addr
	Request string
	// Trace is the traceparent (W3C Trace Context) that calls to other services pass on. If this gateway traces the
	// request, it names the span of the request. Otherwise it is the traceparent that came with the request, or a new
	// one. It is empty outside of requests.
	Trace string
	// Decided reports whether the client or the gateway's sampler has decided whether Trace is recorded. Only then is
	// the decision passed on to other services, which adopt it.
	Decided bool
}

// UpdatedBy returns the name of the caller as resources store it. It is empty for an anonymous caller.
func (c Caller) UpdatedBy() string {
	if c.Identity == nil {
		return ""
	}
	return c.Identity.Name
}

type callerKey struct{}

// WithCaller returns a context with a caller. The server calls it once for each request.
func WithCaller(ctx context.Context, c Caller) context.Context {
	return context.WithValue(ctx, callerKey{}, c)
}

// CallerFrom returns the caller in ctx; the zero Caller if there is none.
func CallerFrom(ctx context.Context) Caller {
	c, _ := ctx.Value(callerKey{}).(Caller)
	return c
}

// WithoutCaller returns a context without a caller. Changes made with this context are changes of the gateway itself.
func WithoutCaller(ctx context.Context) context.Context {
	return context.WithValue(ctx, callerKey{}, nil)
}

// Gateway is the name of the gateway as the author of its own changes, such as conditions, bindings of references and
// finished deletions.
const Gateway = "system:gateway"

// Actor is the author of a change in the log of changes.
type Actor struct {
	// Name is the name of the caller, or [Anonymous] or [Gateway].
	Name string
	// Address and Request are the address of the caller and the id of the caller's request; empty if unknown.
	Address, Request string
	// Trace is the traceparent of the span in which the change was made; empty if that span was not recorded.
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

// actorSeparator separates the parts of an actor in its text. Names, addresses and ids do not contain it.
const actorSeparator = "\t"

// String returns the actor in the form of log entries: name, address and request id, separated by tabs. For a traced
// change, a tab and the result of [span.Pack] follow. This result takes 9 bytes, or 25 if the request id is not the id
// of the trace, and one more byte for each byte that is escaped. For the gateway itself String returns "", which is
// also the actor in log entries of expired resources.
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

// In the text of an actor, a packed trace is escaped. Each byte that occurs in escapedBytes is written as traceEscape,
// followed by the byte with its highest bit flipped. escapedBytes are the bytes that separate the parts of an actor,
// and bytes that a store or a reader would otherwise have to escape.
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

// ParseActor parses the result of [Actor.String].
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

// TraceOf returns the [Actor.Trace] of an actor in the form of [Actor.String]. It parses the text only if the text has
// a trace.
func TraceOf(actor string) string {
	if strings.Count(actor, actorSeparator) < 3 {
		return ""
	}
	return ParseActor(actor).Trace
}

// Identity is the owner of a credential. It is immutable. All requests with the same credential share it.
type Identity struct {
	// Name begins with the name of the source, as in token:ci, oidc:corp:alice, cert:worker and proxy:bob. Thus equal
	// names from two sources differ.
	Name string
	// Source is token, oidc:NAME, cert or proxy.
	Source string
	// Groups are the groups of the caller. They have the same prefix as Name.
	Groups []string
	// ExpiresAt is the expiry that the credential contains; zero means never.
	ExpiresAt time.Time
	// Until is the time from which the credential is no longer accepted. It may be slightly later than ExpiresAt,
	// because clocks differ. Zero means that it is always accepted.
	Until time.Time
	// Revoked is a context that ends when the credential is revoked; nil if it cannot be revoked.
	Revoked context.Context
}

// Anonymous is the name, in logs and in the API, of a caller without an identity.
const Anonymous = "anonymous"

// String returns the name of the caller; [Anonymous] for nil.
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

// Err returns nil if the credential is still valid. Otherwise it returns the reason why it is not, as a
// [failure.Error]. For a nil identity it returns nil.
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

// Lifetime returns a context that ends with ctx or when the credential ends. In the second case, the cause of the
// context is the error of Err. end releases the context.
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
