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
	"net/netip"
)

// Caller is who asks, and by which API view. The zero value is anonymous with
// the newest view.
type Caller struct {
	// Identity is nil for an anonymous caller.
	Identity *Identity
	View     string
	// Address is where the caller asks from, and Request the id of its request; zero if unknown. They are
	// told in the log of changes.
	Address netip.Addr
	Request string
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
