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
	// issuerTimeout is how long an issuer may take to answer. maxIssuerAnswer is the maximum size
	// of its answer in bytes.
	issuerTimeout   = 5 * time.Second
	maxIssuerAnswer = 1 << 20
	// keyFetches is how many times the keys of an issuer may be fetched at once because a token has
	// an unknown key. Each keyInterval allows one more fetch.
	keyFetches  = 3
	keyInterval = 5 * time.Second
	// retryFirst and retryMost are the first and the longest delay before an issuer that did not
	// answer is called again.
	retryFirst = time.Second
	retryMost  = 30 * time.Second
	// relearn is the interval at which the endpoints of an issuer are read again and its keys are dropped.
	relearn = time.Hour
)

// issuer verifies the tokens of one issuer.
type issuer struct {
	cfg          IssuerConfig
	log          *zap.Logger
	user, groups selector
	transport    http.RoundTripper
	relearn      time.Duration
	// unknown says that the last fetch of keys failed, so a token with an unknown key may be valid.
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

// client returns an HTTP client for the issuer. answered is called when the issuer answers.
func (i *issuer) client(fetches *rate.Limiter, answered func()) *http.Client {
	return &http.Client{
		Transport: &limitedTransport{next: i.transport, fetches: fetches, answered: answered},
		Timeout:   issuerTimeout,
	}
}

// errTooOften is the error if keys are not fetched because of the limit.
var errTooOften = errors.New("the keys were fetched a moment ago")

// limitedTransport limits how often an issuer is called and the size of its answers.
type limitedTransport struct {
	next    http.RoundTripper
	fetches *rate.Limiter // nil does not limit
	// answered is called when the issuer answers.
	answered func()
}

// RoundTrip implements [http.RoundTripper].
func (t *limitedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	// a redirect belongs to the fetch before it
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

// discover reads the endpoints of the issuer repeatedly until ctx ends. While the issuer does not
// answer, all other callers are served.
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
		// A new verifier has no keys yet, so it gets a new limiter; the old one may be
		// exhausted.
		fetches := rate.NewLimiter(rate.Every(keyInterval), keyFetches)
		keys := oidc.ClientContext(context.WithoutCancel(ctx), i.client(fetches, func() { i.unknown.Store(false) }))
		// checkTimes checks the times, since go-oidc always allows nbf five minutes.
		verifier := provider.VerifierContext(keys, &oidc.Config{ClientID: i.cfg.Audience, SkipExpiryCheck: true})
		if i.verifier.Swap(verifier) == nil {
			i.log.Info("an issuer is known", zap.String("issuer", i.cfg.Name))
		}
		retry.Reset()
		next = i.relearn
	}
	return nil
}

// verify returns the identity of a token.
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

// unfetched is the beginning of go-oidc's error if a signature cannot be verified because the keys
// cannot be fetched. That error wraps no other.
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

// checkTimes refuses a token that has expired, or is not valid yet, by more than the clock of the issuer may be off.
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

// read returns the identity that a verified token names.
func (i *issuer) read(ctx context.Context, token *oidc.IDToken) (*access.Identity, error) {
	all := claims{}
	if err := token.Claims(&all); err != nil {
		return nil, invalid("the claims of the token cannot be read")
	}
	if confirmed, told := all["email_verified"]; i.cfg.User == "email" && told && confirmed != true {
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

// unavailable returns the error for a token whose issuer's keys cannot be fetched.
func (i *issuer) unavailable() error {
	return &failure.Error{
		Code:       failure.CodeUnavailable,
		Message:    "the issuer " + i.cfg.Name + " does not answer, so its tokens cannot be verified",
		Setting:    "oidc",
		Retryable:  true,
		RetryAfter: 2,
	}
}

// isLoopback reports whether a host name means this machine.
func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}
