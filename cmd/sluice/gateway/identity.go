package gateway

import (
	"context"
	"fmt"
	"net"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/identity"
)

// openIdentities reads the files for the authentication of callers.
func (s *Gateway) openIdentities(ctx context.Context, log *zap.Logger) (err error) {
	from, to := s.Identities, &s.Server.Identities
	if from.Certificates.Cert != "" {
		if s.Server.TLS, err = identity.OpenTLS(ctx, from.Certificates, log); err != nil {
			return exit.Usage(err)
		}
	}
	to.Certificates = from.Certificates.ClientCA != ""
	if to.Certificates {
		to.TLS = s.Server.TLS
	}
	if to.Proxies, err = identity.ParseProxies(from.Proxies); err != nil {
		return exit.Usage(err)
	}
	if from.Tokens != "" {
		if to.Tokens, err = identity.OpenTokens(ctx, from.Tokens, log); err != nil {
			return exit.Usage(err)
		}
	}
	if from.Issuers != "" {
		if to.Issuers, err = openIssuers(ctx, from.Issuers, log); err != nil {
			return exit.Usage(fmt.Errorf("oidc: %s: %w", from.Issuers, err))
		}
	}
	s.warnOfExposure(log)
	return nil
}

func openIssuers(ctx context.Context, path string, log *zap.Logger) (*identity.Issuers, error) {
	data, err := config.ReadFile(ctx, path)
	if err != nil {
		return nil, err
	}
	issuers, err := identity.ParseIssuers(data)
	if err != nil {
		return nil, err
	}
	return identity.NewIssuers(issuers, log)
}

// warnOfExposure logs a warning if others on the network can do everything, or can read credentials on the way.
func (s *Gateway) warnOfExposure(log *zap.Logger) {
	s.warnOfAddress("listen", s.Listen, log)
	s.warnOfAddress("service-listen", s.ServiceListen, log)
}

func (s *Gateway) warnOfAddress(setting, address string, log *zap.Logger) {
	host, _, err := net.SplitHostPort(address)
	switch {
	case err != nil || config.Loopback(host):
	case s.AllowAnonymous:
		log.Warn(
			"everybody who reaches the address may read and change everything (allow-anonymous)",
			zap.String(setting, address),
		)
	case s.Server.TLS == nil && len(s.Server.Identities.Proxies) == 0:
		log.Warn(
			"credentials travel in the clear; set tls-cert, or let only a proxy with TLS reach the address",
			zap.String(setting, address),
		)
	}
}

// scheme returns the scheme of the gateway's URLs, with the slashes.
func (s *Gateway) scheme() string {
	if s.Server.TLS != nil {
		return "https://"
	}
	return "http://"
}
