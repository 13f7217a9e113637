// Command provider is an OpenID provider for tests. It runs in a process beside the
// gateway, like a real login service. It serves discovery, keys, the authorization code
// flow with PKCE, the device flow and refresh tokens. A user logs in with a name from
// [users]; there are no passwords.
//
// The test controls the provider over a second port; see [control].
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// config has the values of the flags.
type config struct {
	listen, cert, key, keys, client, audience string
	lifetime                                  time.Duration
}

func main() {
	var c config
	flag.StringVar(&c.listen, "listen", "127.0.0.1:0", "the address of the provider")
	flag.StringVar(&c.cert, "tls-cert", "", "a certificate (PEM); plain HTTP without one")
	flag.StringVar(&c.key, "tls-key", "", "the key of the certificate (PEM)")
	flag.StringVar(&c.keys, "keys", "", "a file that keeps the signing keys for the next start")
	flag.StringVar(&c.client, "client", "sluice", "the id of the public client")
	flag.StringVar(&c.audience, "audience", "", "an audience of all tokens beside the client")
	flag.DurationVar(&c.lifetime, "lifetime", time.Hour, "how long tokens are valid")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
	defer stop()
	if err := run(ctx, c); err != nil {
		fmt.Fprintln(os.Stderr, "provider:", err)
		os.Exit(1)
	}
}

// addresses is printed as one line of JSON when both ports are open.
type addresses struct {
	// URL is the identifier of the issuer.
	URL string `json:"url"`
	// Control is the URL of the second port.
	Control string `json:"control"`
}

// run serves both ports until ctx is done.
func run(ctx context.Context, c config) error {
	public, err := net.Listen("tcp", c.listen)
	if err != nil {
		return err
	}
	private, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	scheme := "http"
	if c.cert != "" {
		scheme = "https"
	}
	at := addresses{URL: scheme + "://" + public.Addr().String(), Control: "http://" + private.Addr().String()}
	keys, err := openKeyring(c.keys)
	if err != nil {
		return err
	}
	s := newStore(c, keys)
	handler, err := newHandler(at.URL, s)
	if err != nil {
		return err
	}
	fetches := &fetches{next: handler}
	login := &http.Server{Handler: fetches, ReadHeaderTimeout: time.Minute}
	steering := &http.Server{Handler: (&control{issuer: at.URL, store: s, fetches: fetches}).handler(), ReadHeaderTimeout: time.Minute}
	ended := make(chan error, 2)
	go func() {
		if c.cert != "" {
			ended <- login.ServeTLS(public, c.cert, c.key)
			return
		}
		ended <- login.Serve(public)
	}()
	go func() { ended <- steering.Serve(private) }()
	if err := json.NewEncoder(os.Stdout).Encode(at); err != nil {
		return err
	}
	select {
	case <-ctx.Done():
	case err = <-ended:
	}
	return errors.Join(err, login.Close(), steering.Close())
}

// newHandler returns a handler for the provider and its two login pages.
func newHandler(issuer string, s *store) (http.Handler, error) {
	provider, err := op.NewProvider(&op.Config{
		CodeMethodS256:        true,
		GrantTypeRefreshToken: true,
		SupportedScopes:       []string{"openid", "profile", "email", "offline_access"},
		DeviceAuthorization:   op.DeviceAuthorizationConfig{Lifetime: 5 * time.Minute, PollInterval: time.Second, UserFormPath: devicePath, UserCode: op.UserCodeBase20},
	}, s, op.StaticIssuer(issuer), op.WithAllowInsecure())
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	p := pages{store: s, callback: op.AuthCallbackURL(provider)}
	mux.Handle(loginPath, op.NewIssuerInterceptor(provider.IssuerFromRequest).HandlerFunc(p.login))
	mux.HandleFunc(devicePath, p.device)
	mux.Handle("/", provider)
	return mux, nil
}
