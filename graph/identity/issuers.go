package identity

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	lru "github.com/hashicorp/golang-lru/v2"
	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend/service/access"
)

// maxVerified is the maximum number of verified tokens that are cached.
const maxVerified = 10_000

// Issuers verifies the tokens of all issuers of OpenID Connect. It is safe for concurrent use.
type Issuers struct {
	// all maps the URL of each issuer to the issuer.
	all      map[string]*issuer
	logins   []Login
	verified *lru.Cache[[sha256.Size]byte, *access.Identity]
}

// NewIssuers reads the CA files of the issuers and returns the issuers. It does not call them; [Issuers.Run] does.
func NewIssuers(configs []IssuerConfig, log *zap.Logger) (*Issuers, error) {
	out := &Issuers{all: map[string]*issuer{}}
	out.verified, _ = lru.New[[sha256.Size]byte, *access.Identity](maxVerified) // the size is positive
	var errs []error
	for i, c := range configs {
		one, err := newIssuer(c, log)
		if err != nil {
			errs = append(errs, fmt.Errorf("issuers[%d]: %w", i, err))
			continue
		}
		out.all[c.URL], out.logins = one, append(out.logins, c.Login)
	}
	return out, errors.Join(errs...)
}

// Run reads the endpoints of all issuers repeatedly until ctx ends. Before the first answer of an issuer, its tokens
// cannot be verified.
func (x *Issuers) Run(ctx context.Context) error {
	var all errgroup.Group
	for _, one := range x.all {
		all.Go(func() error { return one.discover(ctx) })
	}
	return all.Wait()
}

// Logins returns how users log in with each issuer, in the order of the file. The result is never nil.
func (x *Issuers) Logins() []Login {
	if x == nil {
		return []Login{}
	}
	return x.logins
}

// identity verifies a token and returns the identity in it. A token that was verified before is found in a cache.
func (x *Issuers) identity(ctx context.Context, token string) (*access.Identity, error) {
	hash := sha256.Sum256([]byte(token))
	if id, ok := x.verified.Get(hash); ok {
		if err := id.Err(); err != nil {
			x.verified.Remove(hash)
			return nil, err
		}
		return id, nil
	}
	by := x.all[issuerOf(token)]
	if by == nil {
		return nil, invalid("the token is of no issuer that this gateway knows")
	}
	id, err := by.verify(ctx, token)
	if err != nil {
		return nil, err
	}
	x.verified.Add(hash, id)
	return id, nil
}

// issuerOf returns the issuer that is named in a token, without verifying the token; empty if the token cannot be
// parsed.
func issuerOf(token string) string {
	_, rest, _ := strings.Cut(token, ".")
	payload, _, _ := strings.Cut(rest, ".")
	raw, err := base64.RawURLEncoding.DecodeString(payload)
	if err != nil {
		return ""
	}
	var claim struct {
		Issuer string `json:"iss"`
	}
	if json.Unmarshal(raw, &claim) != nil {
		return ""
	}
	return claim.Issuer
}
