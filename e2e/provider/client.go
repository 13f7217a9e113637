package main

import (
	"time"

	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// client is the only client. It is public: it has no secret and must use PKCE. It may
// redirect to any port and path of the loopback address.
type client struct {
	id       string
	lifetime time.Duration
	clock    time.Duration
}

var _ op.HasRedirectGlobs = client{}

func (c client) GetID() string { return c.id }

func (c client) RedirectURIs() []string { return nil }

func (c client) RedirectURIGlobs() []string {
	return []string{"{http,https}://{127.0.0.1,localhost}:*/**"}
}

func (c client) PostLogoutRedirectURIs() []string { return nil }

func (c client) PostLogoutRedirectURIGlobs() []string { return c.RedirectURIGlobs() }

func (c client) ApplicationType() op.ApplicationType { return op.ApplicationTypeNative }

func (c client) AuthMethod() oidc.AuthMethod { return oidc.AuthMethodNone }

func (c client) ResponseTypes() []oidc.ResponseType {
	return []oidc.ResponseType{oidc.ResponseTypeCode}
}

func (c client) GrantTypes() []oidc.GrantType {
	return []oidc.GrantType{oidc.GrantTypeCode, oidc.GrantTypeRefreshToken, oidc.GrantTypeDeviceCode}
}

func (c client) LoginURL(id string) string { return loginPath + "?id=" + id }

// AccessTokenType returns JWT, so that an access token has the same audience as an ID
// token.
func (c client) AccessTokenType() op.AccessTokenType { return op.AccessTokenTypeJWT }

// ClockSkew makes the provider issue tokens as if its clock were ahead by c.clock. The
// library subtracts the skew from iat, but adds it to exp. IDTokenLifetime compensates
// for that.
func (c client) ClockSkew() time.Duration { return -c.clock }

func (c client) IDTokenLifetime() time.Duration { return c.lifetime + 2*c.clock }

// DevMode returns true, so that HTTPS redirects to the loopback address are also
// allowed. A gateway with TLS needs them.
func (c client) DevMode() bool { return true }

func (c client) RestrictAdditionalIdTokenScopes() func([]string) []string { return same }

func (c client) RestrictAdditionalAccessTokenScopes() func([]string) []string { return same }

func same(scopes []string) []string { return scopes }

func (c client) IsScopeAllowed(string) bool { return false }

// IDTokenUserinfoClaimsAssertion puts the claims of a user into the ID token.
func (c client) IDTokenUserinfoClaimsAssertion() bool { return true }
