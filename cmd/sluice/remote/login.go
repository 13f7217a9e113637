package remote

import (
	"context"
	"crypto/tls"
	"net/http"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/client"
)

// IssuerClient returns an HTTP client for calling issuers. It trusts the CAs of the system and of the context.
func IssuerClient(ctx context.Context, a credential.Access) (*http.Client, error) {
	known, err := a.Authorities(ctx)
	return PlainClient(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: known}), err
}

// PlainClient returns an HTTP client that follows no redirects and keeps no connections open.
func PlainClient(security *tls.Config) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives, t.TLSClientConfig = true, security
	return &http.Client{
		Transport:     t,
		Timeout:       credential.IssuerTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// loginSource returns a source of tokens from the login of the context; nil if there is no login for the server.
func (r *Flags) loginSource(ctx context.Context) (client.TokenSource, error) {
	path := credential.LoginsPath(ContextsPath())
	l, found, err := credential.FindLogin(path, r.Login)
	if err != nil || !found || !sameServer(l.Server, r.Server) {
		return nil, err
	}
	there, err := IssuerClient(ctx, r.Access)
	if err != nil {
		return nil, err
	}
	return (&credential.Source{Path: path, Context: r.Login, HTTP: there}).Token, nil
}
