// Package identity authenticates callers. There are four sources of identities: static tokens in a file, issuers of
// OpenID Connect, client certificates, and trusted proxies that name the users in headers. The package does not decide
// what an identity may do.
package identity

import (
	"context"
	"crypto/x509"
	"net/http"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// MaxBearer is the maximum length of a bearer credential, in bytes.
const MaxBearer = 16 << 10

// maxGroups is the maximum number of groups of an identity. maxName is the maximum length of the name of a user or
// group, without its prefix, in bytes.
const (
	maxGroups = 256
	maxName   = 256
)

// Authenticator authenticates callers. The zero value accepts no credential. It is safe for concurrent use.
type Authenticator struct {
	// Tokens are the static tokens; nil if there are none.
	Tokens *Tokens
	// Issuers are the issuers of OpenID Connect; nil if there are none.
	Issuers *Issuers
	// Certificates reports whether callers may use client certificates.
	Certificates bool
	// TLS, if not nil, has the CAs of client certificates. After a CA is removed, its certificates are no longer
	// accepted, not even on open connections.
	TLS *TLS
	// Proxies are the proxies that may name users in headers.
	Proxies Proxies
}

// Required reports whether callers need a credential: it returns true if any source of identities is configured.
func (a *Authenticator) Required() bool {
	return a.Tokens != nil || a.Issuers != nil || a.Certificates || len(a.Proxies) > 0
}

// Run reads the files and issuers again when they change, until ctx ends.
func (a *Authenticator) Run(ctx context.Context) error {
	var all errgroup.Group
	if a.Tokens != nil {
		all.Go(func() error { return a.Tokens.Run(ctx) })
	}
	if a.Issuers != nil {
		all.Go(func() error { return a.Issuers.Run(ctx) })
	}
	<-ctx.Done()
	return all.Wait()
}

// Request returns the identity of the caller; nil if the request has no credential. If there are several credentials,
// it uses the headers of a trusted proxy, then a bearer token, then the client certificate, unless the certificate
// belongs to the proxy. The error has the code UNAUTHENTICATED if a credential is invalid, and UNAVAILABLE if its
// issuer cannot be reached.
func (a *Authenticator) Request(r *http.Request) (*access.Identity, error) {
	certificate, of := a.certificate(r)
	proxied := a.Proxies.trust(r, certificate)
	if proxied {
		if id, err := fromProxy(r.Header); id != nil || err != nil {
			return of.bind(id), err
		}
	}
	switch given := r.Header.Values("Authorization"); {
	case len(given) > 1:
		return nil, invalid("one Authorization header is accepted")
	case len(given) == 1:
		return a.Authorization(r.Context(), given[0])
	}
	if a.Certificates && certificate != nil && !proxied {
		id, err := fromCertificate(certificate)
		return of.bind(id), err
	}
	return nil, nil
}

// certificate returns the client certificate of a request, and its CA if a.TLS is set. It returns nil if there is no
// certificate, or if the CA was removed after the connection was made.
func (a *Authenticator) certificate(r *http.Request) (*x509.Certificate, *authority) {
	certificate := verified(r)
	if certificate == nil || a.TLS == nil {
		return certificate, nil
	}
	of := a.TLS.authority(r.TLS.VerifiedChains)
	if of == nil {
		return nil, nil
	}
	return certificate, of
}

// Authorization returns the identity in an Authorization header of the form "Bearer TOKEN".
func (a *Authenticator) Authorization(ctx context.Context, header string) (*access.Identity, error) {
	scheme, bearer, _ := strings.Cut(header, " ")
	if !strings.EqualFold(scheme, "Bearer") {
		return nil, invalid("the scheme of a credential is Bearer")
	}
	bearer = strings.TrimSpace(bearer)
	switch {
	case len(bearer) > MaxBearer:
		return nil, &failure.Error{Code: failure.CodeUnauthenticated, Message: "the credential is longer than the 16384 bytes that are accepted", Limit: MaxBearer}
	case strings.ContainsFunc(bearer, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		// The JWT parser ignores blanks. They are refused, because otherwise one token could be cached in many forms.
		return nil, invalid("the credential has a blank or another character that no token has")
	case strings.HasPrefix(bearer, tokenPrefix) && a.Tokens != nil:
		return a.Tokens.identity(bearer)
	case strings.Count(bearer, ".") == 2 && a.Issuers != nil:
		return a.Issuers.identity(ctx, bearer)
	}
	return nil, invalid("the credential is none that this gateway knows")
}

// invalid returns the error for a credential that is not accepted.
func invalid(message string) *failure.Error {
	return &failure.Error{Code: failure.CodeUnauthenticated, Message: message}
}

// checkName returns an error if the name of a user or group is empty, too long, or ambiguous in a log or list.
func checkName(what, name string) error {
	switch {
	case name == "":
		return invalid("the " + what + " is empty")
	case len(name) > maxName:
		return invalid("the " + what + " is longer than the 256 bytes that are accepted")
	case strings.ContainsFunc(name, unprintable):
		return invalid("the " + what + " has a character that is not printable, or is not UTF-8")
	}
	return nil
}

// newIdentity returns an identity whose names have the source as a prefix.
func newIdentity(source, name string, groups []string, expires time.Time) (*access.Identity, error) {
	if err := checkName("name of the user", name); err != nil {
		return nil, err
	}
	if len(groups) > maxGroups {
		return nil, invalid("the user is in more than the 256 groups that are accepted")
	}
	id := &access.Identity{
		Name:      source + ":" + name,
		Source:    source,
		ExpiresAt: expires,
		Until:     expires,
		Groups:    make([]string, len(groups)),
	}
	for i, g := range groups {
		if err := checkName("name of a group", g); err != nil {
			return nil, err
		}
		id.Groups[i] = source + ":" + g
	}
	return id, nil
}
