package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/redis"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/internal/certificate"
)

// redisTLS is the TLS configuration of the connections to Redis. The certificate of the gateway is read again when its
// files change, and is used for new connections. The CAs are read only once. It is nil if Redis is used without TLS.
type redisTLS struct {
	// roots are the CAs in redis-ca; nil means the CAs of the system. authorities are the certificates in redis-ca.
	roots       *x509.CertPool
	authorities []*x509.Certificate
	// files are redis-cert and redis-key; nil if they are not configured.
	files *identity.Files
	pair  atomic.Pointer[tls.Certificate]
}

// openRedisTLS reads the files for connections to Redis. The error joins all problems.
func openRedisTLS(ctx context.Context, s config.Store, log *zap.Logger) (*redisTLS, error) {
	at, err := redis.ParseURL(s.URL)
	if err != nil {
		return nil, fmt.Errorf("redis: %w", err)
	}
	if !at.TLS {
		if s.CA != "" || s.Cert != "" || s.Key != "" {
			return nil, errors.New("redis-ca, redis-cert and redis-key need a URL that begins with rediss")
		}
		return nil, nil
	}
	t := &redisTLS{}
	return t, errors.Join(t.openAuthorities(ctx, s.CA), t.openPair(ctx, s, log))
}

func (t *redisTLS) openAuthorities(ctx context.Context, path string) error {
	if path == "" {
		return nil
	}
	content, err := config.ReadFile(ctx, path)
	if err == nil {
		t.roots, err = certificate.Authorities(certificate.File{Path: path, Content: content})
	}
	if err != nil {
		return fmt.Errorf("redis-ca: %w", err)
	}
	t.authorities = certificate.Parse(content)
	return nil
}

func (t *redisTLS) openPair(ctx context.Context, s config.Store, log *zap.Logger) error {
	if s.Cert == "" && s.Key == "" {
		return nil
	}
	if s.Cert == "" || s.Key == "" {
		return errors.New("redis-cert, redis-key: both are needed")
	}
	t.files = &identity.Files{
		Setting: "redis-cert", Paths: []string{s.Cert, s.Key}, Most: certificate.MaxBytes, Load: t.load, Logger: log,
	}
	return t.files.Open(ctx)
}

// load uses new contents of redis-cert and redis-key.
func (t *redisTLS) load(content [][]byte) error {
	cert := certificate.File{Path: t.files.Paths[0], Content: content[0]}
	key := certificate.File{Path: t.files.Paths[1], Content: content[1]}
	pair, err := certificate.Pair(cert, key)
	if err != nil {
		return err
	}
	t.pair.Store(&pair)
	return nil
}

// config returns the TLS configuration of a client; nil if Redis is used without TLS.
func (t *redisTLS) config() *tls.Config {
	if t == nil {
		return nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: t.roots}
	if t.files != nil {
		cfg.GetClientCertificate = func(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return t.pair.Load(), nil
		}
	}
	return cfg
}

// watched returns the files that are read again when they change.
func (t *redisTLS) watched() []*identity.Files {
	if t == nil || t.files == nil {
		return nil
	}
	return []*identity.Files{t.files}
}

// certificates returns the certificate that the gateway shows to Redis, if there is one.
func (t *redisTLS) certificates() []shownCertificate {
	if t == nil || t.files == nil {
		return nil
	}
	leaf := func() *x509.Certificate { return t.pair.Load().Leaf }
	return []shownCertificate{{t.files.Setting, t.files.Paths[0], leaf}}
}

// authoritiesEnd returns when the next CA certificate that is still valid expires; if all have expired, when the last
// one did. found is false if the gateway does not know the CAs.
func (t *redisTLS) authoritiesEnd(now time.Time) (ends time.Time, found bool) {
	if t == nil || t.authorities == nil {
		return ends, false
	}
	return certificate.NextEnd(t.authorities, now), true
}

// Run reads the certificate of the gateway again whenever its files change, until ctx ends.
func (t *redisTLS) Run(ctx context.Context) error {
	if t == nil || t.files == nil {
		<-ctx.Done()
		return nil
	}
	return t.files.Run(ctx)
}

// check returns an error if the certificate of the gateway is not valid at a time, or if all CA certificates have
// expired. It joins both errors.
func (t *redisTLS) check(now time.Time) error {
	var errs []error
	for _, shown := range t.certificates() {
		errs = append(errs, shown.check(now))
	}
	if ends, found := t.authoritiesEnd(now); found && !ends.After(now) {
		errs = append(errs, fmt.Errorf("redis-ca: all its certificates have expired, the last one at %s",
			ends.UTC().Format(time.RFC3339)))
	}
	return errors.Join(errs...)
}
