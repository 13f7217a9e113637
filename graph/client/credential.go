package client

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strings"
)

// TokenSource returns the bearer token for a request or a connection; "" for no token. It is called for each of them
// and from many goroutines. Therefore a source that gets tokens from an issuer should keep them.
//
// refused is empty, or a token that cannot be used any more: the gateway has just refused it, or it has expired or was
// revoked during a stream. The source should then return another one. If it returns the same token, or if the gateway
// refuses the new one too, the caller gets the error UNAUTHENTICATED of the gateway.
//
// The errors of the source are returned to the caller and must not contain the token.
type TokenSource func(ctx context.Context, refused string) (string, error)

// FixedToken returns a source that always returns one token, for example from the variable SLUICE_TOKEN. It returns nil
// if text is empty.
func FixedToken(text string) TokenSource {
	if text == "" {
		return nil
	}
	return func(context.Context, string) (string, error) { return text, nil }
}

// ErrNoTokenNow is wrapped by errors of a [TokenSource] that has no token at the moment, for example because its issuer
// cannot be reached. Streams try again later. Requests fail.
var ErrNoTokenNow = errors.New("no token can be had now")

// codeUnauthenticated is the code of errors about a missing or invalid credential.
const codeUnauthenticated = "UNAUTHENTICATED"

// closeForbidden is the close code of a WebSocket whose credential is missing or no longer valid.
const closeForbidden = 4403

// errRedirects means that the answer was a redirect, which is not followed. The request was not executed.
var errRedirects = errors.New("it redirects")

// errProxy means that a 401 answer does not come from the gateway.
var errProxy = errors.New("a proxy in front of it wants a separate login; log in to the proxy, or use a server address that does not pass it")

// checkToken returns an error if the token must not be sent to server.
func (cfg *Config) checkToken(server *url.URL) error {
	switch {
	case cfg.Token == nil:
		return nil
	case server.User != nil:
		return errors.New("server: a URL with a user or a password, and a token; only one of them can be sent")
	case server.Scheme == "http" && !cfg.PlaintextToken && !loopback(server.Hostname()):
		return fmt.Errorf("server: %s: a token is sent by https only; over http everybody on the way could read it", server.Redacted())
	}
	return nil
}

// loopback reports whether host is this machine.
func loopback(host string) bool {
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback() || strings.EqualFold(host, "localhost")
}

// transport returns a copy of [http.DefaultTransport] that uses cfg, or [http.DefaultTransport] itself if cfg is nil.
func transport(cfg *tls.Config) http.RoundTripper {
	if cfg == nil {
		return http.DefaultTransport
	}
	own := &http.Transport{Proxy: http.ProxyFromEnvironment}
	if usual, ok := http.DefaultTransport.(*http.Transport); ok {
		own = usual.Clone()
	}
	own.TLSClientConfig = cfg.Clone()
	return own
}

// sameServerOnly refuses redirects to another server, which must not get the request and its token.
func sameServerOnly(req *http.Request, via []*http.Request) error {
	first := via[0].URL
	if req.URL.Scheme != first.Scheme || req.URL.Host != first.Host {
		return fmt.Errorf("%w to %s://%s; if that is the gateway, use it as the server, else a proxy in front of the gateway wants a separate login", errRedirects, req.URL.Scheme, req.URL.Host)
	}
	if len(via) >= 10 {
		return fmt.Errorf("%w again and again", errRedirects)
	}
	return nil
}

// bearer returns a token from the source. refused is the token that was refused; empty if there is none.
func (c *Client) bearer(ctx context.Context, refused string) (string, error) {
	if c.cfg.Token == nil {
		return "", nil
	}
	token, err := c.cfg.Token(ctx, refused)
	switch {
	case err != nil && ctx.Err() != nil:
		return "", ctx.Err()
	case err != nil:
		return "", fmt.Errorf("token: %w", err)
	case strings.ContainsFunc(token, func(r rune) bool { return r <= ' ' || r >= 0x7f }):
		return "", errors.New("token: it has a blank or another character that no token has")
	}
	return token, nil
}

// unauthenticated reports whether an error means that the credential was not accepted.
func unauthenticated(err error) bool {
	var all Errors
	return errors.As(err, &all) && len(all) > 0 && all[0].Extensions.Code == codeUnauthenticated ||
		errors.Is(err, errProxy)
}

// refusal returns the error for a connection that was closed with [closeForbidden]. reason is the text of the close
// message, such as "UNAUTHENTICATED: the credential has expired".
func refusal(reason string) error {
	e := &Error{Message: "the gateway refused the connection: " + reason}
	e.Extensions.Code = "FORBIDDEN"
	if code, message, found := strings.Cut(reason, ": "); found && code == codeUnauthenticated {
		e.Extensions.Code, e.Message = code, message
	}
	return Errors{e}
}

// proxyError returns the error for a 401 answer that does not come from a gateway.
func (a address) proxyError() error {
	return &UnansweredError{
		err: fmt.Errorf("%s answered 401 Unauthorized, and not as a gateway does: %w", a.shown, errProxy),
	}
}
