package identity

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/coreos/go-oidc/v3/oidc"
	"go.uber.org/zap"
	"golang.org/x/time/rate"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/internal/wait"
)

const (
	// issuerTimeout is the time within which an issuer must answer. maxIssuerAnswer is the maximum size of an answer in
	// bytes.
	issuerTimeout   = 5 * time.Second
	maxIssuerAnswer = 1 << 20
	// keyFetches limits how often the keys of an issuer are fetched because a token has an unknown key: keyFetches
	// times in a row, and then once per keyInterval.
	keyFetches  = 3
	keyInterval = 5 * time.Second
	// retryFirst and retryMost are the shortest and the longest pause before an issuer that has not answered is called
	// again.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	// relearn is the interval at which the endpoints of an issuer are read again. Its cached keys are then discarded.
	relearn = time.Hour
)

// issuer verifies the tokens of one issuer.
type issuer struct {
	cfg          IssuerConfig
	log          *zap.Logger
	user, groups selector
	transport    http.RoundTripper
	relearn      time.Duration
	// unknown is set while the keys cannot be fetched. A token with an unknown key may then be valid.
	unknown  atomic.Bool
	verifier atomic.Pointer[oidc.IDTokenVerifier] // nil until the issuer has answered
}

func newIssuer(c IssuerConfig, log *zap.Logger) (*issuer, error) {
	i := &issuer{cfg: c, log: log, relearn: relearn}
	var err error
	if i.user, err = newSelector(c.User, c.UserExpression); err != nil {
		return nil, fmt.Errorf("userExpression: %w", err)
	}
	if i.groups, err = newSelector(c.Groups, c.GroupsExpression); err != nil {
		return nil, fmt.Errorf("groupsExpression: %w", err)
	}
	trusted, err := clientTLS(c.CA)
	if err != nil {
		return nil, fmt.Errorf("ca: %w", err)
	}
	i.transport = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
		TLSClientConfig:        trusted,
		ForceAttemptHTTP2:      true,
		IdleConnTimeout:        time.Minute,
		MaxIdleConnsPerHost:    2,
		MaxResponseHeaderBytes: 64 << 10,
	}
	return i, nil
}

// client returns an HTTP client for the issuer. answered is called after each answer. fetches limits the number of
// requests; nil for no limit.
func (i *issuer) client(fetches *rate.Limiter, answered func()) *http.Client {
	return &http.Client{
		Transport: &limitedTransport{next: i.transport, fetches: fetches, answered: answered},
		Timeout:   issuerTimeout,
	}
}

// errTooOften means that the keys were not fetched because keyFetches was exceeded.
var errTooOften = errors.New("the keys were fetched a moment ago")

// limitedTransport limits the number of requests to an issuer, and the size of its answers.
type limitedTransport struct {
	next    http.RoundTripper
	fetches *rate.Limiter // nil does not limit
	// answered is called after each answer.
	answered func()
}

// RoundTrip implements [http.RoundTripper].
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	// A redirect belongs to the request before it, and does not count.
	if first := r.Response == nil; first && t.fetches != nil && !t.fetches.Allow() {
		return nil, errTooOften
	}
	res, err := t.next.RoundTrip(r)
	if err == nil {
		t.answered()
		res.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(res.Body, maxIssuerAnswer), res.Body}
	}
	return res, err
}

// discover reads the endpoints of the issuer at each interval relearn until ctx ends. If the issuer does not answer,
// discover repeats the call after a pause. Callers with other credentials are served meanwhile.
func (i *issuer) discover(ctx context.Context) error {
	retry, next := wait.Backoff{Least: retryFirst, Most: retryMost}, time.Duration(0)
	discovery := oidc.ClientContext(ctx, i.client(nil, func() {}))
	for wait.For(ctx, next) {
		provider, err := oidc.NewProvider(discovery, i.cfg.URL)
		if err != nil {
			if retry.First() && ctx.Err() == nil {
				i.log.Warn(
					"an issuer does not answer; it is asked again and again", zap.String("issuer", i.cfg.Name),
					zap.Error(err),
				)
			}
			next = retry.Next()
			continue
		}
		// The new verifier must fetch the keys, so it gets a new limiter: the old one may be exhausted.
		fetches := rate.NewLimiter(rate.Every(keyInterval), keyFetches)
		keys := oidc.ClientContext(context.WithoutCancel(ctx), i.client(fetches, func() { i.unknown.Store(false) }))
		// checkTimes checks the times instead, because go-oidc always allows five minutes for nbf.
		verifier := provider.VerifierContext(keys, &oidc.Config{ClientID: i.cfg.Audience, SkipExpiryCheck: true})
		if i.verifier.Swap(verifier) == nil {
			i.log.Info("an issuer is known", zap.String("issuer", i.cfg.Name))
		}
		retry.Reset()
		next = i.relearn
	}
	return nil
}

// verify verifies a token of the issuer and returns the identity in it.
func (i *issuer) verify(ctx context.Context, token string) (*access.Identity, error) {
	verifier := i.verifier.Load()
	if verifier == nil {
		return nil, i.unavailable()
	}
	verified, err := verifier.Verify(ctx, token)
	if err != nil {
		return nil, i.refusal(ctx, err)
	}
	if err := i.checkTimes(verified); err != nil {
		return nil, err
	}
	return i.read(ctx, verified)
}

// unfetched is the beginning of go-oidc's error if it cannot fetch the keys to verify a signature. That error does not
// wrap another one.
const unfetched = "failed to verify signature: fetching keys "

// refusal returns the error for a token that could not be verified.
func (i *issuer) refusal(ctx context.Context, err error) error {
	tooOften := strings.HasSuffix(err.Error(), errTooOften.Error())
	switch {
	case !strings.HasPrefix(err.Error(), unfetched):
		return invalid("the token is not valid: its signature, issuer, audience or times are not as they must be")
	case tooOften && !i.unknown.Load():
		return invalid("the token has no key that its issuer has published")
	case !tooOften && ctx.Err() == nil:
		i.unknown.Store(true)
	}
	return i.unavailable()
}

// checkTimes returns an error if the token has expired or is not valid yet. The clock of the issuer may differ from
// ours by cfg.skew.
func (i *issuer) checkTimes(token *oidc.IDToken) error {
	var times struct {
		NotBefore float64 `json:"nbf"` // seconds
	}
	now := time.Now()
	switch err := token.Claims(&times); {
	case err != nil:
		return invalid("the claims of the token cannot be read")
	case !now.Before(token.Expiry.Add(i.cfg.skew)):
		return failure.Unauthenticated(access.ErrExpired)
	case times.NotBefore > float64(now.Add(i.cfg.skew).Unix()):
		return invalid("the token is not valid yet")
	}
	return nil
}

// read returns the identity in a verified token.
func (i *issuer) read(ctx context.Context, token *oidc.IDToken) (*access.Identity, error) {
	all := claims{}
	if err := token.Claims(&all); err != nil {
		return nil, invalid("the claims of the token cannot be read")
	}
	if confirmed, present := all["email_verified"]; i.cfg.User == "email" && present && confirmed != true {
		return nil, invalid("the e-mail address in the token is not verified")
	}
	user, err := i.user.text(ctx, all)
	if err != nil {
		return nil, err
	}
	groups, err := i.groups.texts(ctx, all)
	if err != nil {
		return nil, err
	}
	id, err := newIdentity("oidc:"+i.cfg.Name, user, groups, token.Expiry)
	if err != nil {
		return nil, err
	}
	id.Until = token.Expiry.Add(i.cfg.skew)
	return id, nil
}

// unavailable returns the error for a token that cannot be verified because the keys of its issuer cannot be fetched.
func (i *issuer) unavailable() error {
	return &failure.Error{
		Code:       failure.CodeUnavailable,
		Message:    "the issuer " + i.cfg.Name + " does not answer, so its tokens cannot be verified",
		Setting:    "oidc",
		Retryable:  true,
		RetryAfter: 2,
	}
}

// isLoopback reports whether a host name stands for this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
