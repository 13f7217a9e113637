package access

import (
	"context"
	"errors"
	"time"

	"github.com/sluicegw/sluice/backend/service/failure"
)

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
