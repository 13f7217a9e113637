// Package access says who asks, and whether they may. It is the one place that
// judges that.
package access

import (
	"context"
	"fmt"
	"net/netip"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
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

// Authorize is the one place that says whether the caller may do this. Until
// access control exists, everybody may do everything a kind offers.
func Authorize(_ context.Context, _ Caller, k *descriptor.Kind, v descriptor.Verb) error {
	if !k.Has(v) {
		return &failure.Error{Code: failure.CodeBadUserInput, Kind: k.Name, Message: fmt.Sprintf("kind %s does not offer %s", k.Name, v)}
	}
	return nil
}

// AuthorizeKind reports whether the caller may read the settings of a kind. Until access control exists,
// everybody may.
func AuthorizeKind(context.Context, Caller, *descriptor.Kind) error { return nil }
