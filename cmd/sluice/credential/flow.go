package credential

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"golang.org/x/oauth2"
)

// patience is the time that a user has to log in.
const patience = 10 * time.Minute

// Flow is a login that is in progress. HTTP, Issuer and Show are required.
type Flow struct {
	// HTTP is the client for the issuer.
	HTTP   *http.Client
	Issuer Issuer
	// CallbackPort is the port of this machine to which the issuer redirects the browser; 0 means any free port.
	CallbackPort uint16
	// Show shows the user the page to open, and the code to type there if it is not empty.
	Show func(page, code string)
}

// callbackPath is the path to which the issuer redirects the browser. The redirect URIs that the issuer accepts for the
// client must include http://127.0.0.1/callback with any port (RFC 8252, section 7.3), or with Flow.CallbackPort.
const callbackPath = "/callback"

// Browser logs in with an authorization code and PKCE (RFC 7636). The issuer redirects the browser to a port of this
// machine (RFC 8252).
func (f Flow) Browser(ctx context.Context) (*Login, error) {
	m, err := discover(ctx, f.HTTP, f.Issuer.URL)
	if err != nil {
		return nil, err
	}
	if m.Authorization == "" {
		return nil, fmt.Errorf("the issuer %s has no page to log in at; try --device", f.Issuer.Name)
	}
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(int(f.CallbackPort)))
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return nil, fmt.Errorf("the browser cannot return to %s: %w", address, err)
	}
	cfg := f.Issuer.config(m)
	cfg.RedirectURL = "http://" + listener.Addr().String() + callbackPath
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	back := callback{issuer: m.Issuer, state: state, result: make(chan loginResult, 1)}
	server := &http.Server{Handler: &back, ReadHeaderTimeout: IssuerTimeout}
	served := make(chan struct{})
	go func() { _ = server.Serve(listener); close(served) }()
	defer func() { stopServer(server); <-served }()

	f.Show(cfg.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier)), "")
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-ctx.Done():
		return nil, f.late(ctx)
	case r := <-back.result:
		if r.err != nil {
			return nil, fmt.Errorf("the issuer %s answered %w", f.Issuer.Name, r.err)
		}
		token, err := cfg.Exchange(
			context.WithValue(ctx, oauth2.HTTPClient, f.HTTP),
			r.code,
			oauth2.VerifierOption(verifier),
		)
		return f.login(token, err)
	}
}

// stopServer stops the server after it has answered the browser.
func stopServer(server *http.Server) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	if server.Shutdown(ctx) != nil {
		_ = server.Close()
	}
}

// late returns the error for the user if the login was not completed before ctx ended.
func (f Flow) late(ctx context.Context) error {
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		return fmt.Errorf("nobody has logged in within %v", patience)
	}
	return ctx.Err()
}

type loginResult struct {
	code string
	err  error
}

// callback handles the request with which the browser returns from the issuer. It accepts only the first one.
type callback struct {
	issuer, state string
	result        chan loginResult
}

func (c *callback) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Content-Security-Policy", "default-src 'none'")
	h.Set("Content-Type", "text/plain; charset=utf-8")
	q := r.URL.Query()
	if r.Method != http.MethodGet || r.URL.Path != callbackPath ||
		subtle.ConstantTimeCompare([]byte(q.Get("state")), []byte(c.state)) != 1 {
		http.Error(w, "This is no answer to the login that waits here.", http.StatusBadRequest)
		return
	}
	var out loginResult
	switch iss := q.Get("iss"); {
	case iss != "" && iss != c.issuer: // RFC 9207
		out.err = fmt.Errorf("as %q, which is another issuer", iss)
	case q.Get("code") != "":
		out.code = q.Get("code")
	case q.Get("error_description") != "":
		out.err = errors.New(q.Get("error") + ": " + q.Get("error_description"))
	default:
		out.err = errors.New(q.Get("error"))
	}
	select {
	case c.result <- out:
	default: // it is not the first request
	}
	if out.err != nil {
		_, _ = fmt.Fprintln(w, "The login has failed. The command line says why.")
		return
	}
	_, _ = fmt.Fprintln(w, "The command line goes on. You can close this page.")
}

// Device logs in with a code that the user types on any device (RFC 8628).
func (f Flow) Device(ctx context.Context) (*Login, error) {
	m, err := discover(ctx, f.HTTP, f.Issuer.URL)
	if err != nil {
		return nil, err
	}
	if m.Device == "" {
		return nil, fmt.Errorf("the issuer %s has no login by device code", f.Issuer.Name)
	}
	cfg := f.Issuer.config(m)
	ctx, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, f.HTTP), patience)
	defer cancel()
	device, err := cfg.DeviceAuth(ctx)
	if err != nil {
		return nil, f.Issuer.explain(err)
	}
	f.Show(device.VerificationURI, device.UserCode)
	token, err := cfg.DeviceAccessToken(ctx, device)
	if ctx.Err() != nil {
		return nil, f.late(ctx)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return nil, errors.New("nobody has logged in before the code expired")
	}
	return f.login(token, err)
}

func (f Flow) login(token *oauth2.Token, err error) (*Login, error) {
	if err != nil {
		return nil, f.Issuer.explain(err)
	}
	return f.Issuer.loginOf(token)
}

// Revoke asks the issuer to revoke a login (RFC 7009). If the issuer does not support that, the login remains valid
// until it expires.
func Revoke(ctx context.Context, c *http.Client, l Login) error {
	m, err := discover(ctx, c, l.Issuer.URL)
	if err != nil || m.Revocation == "" || l.RefreshToken == "" {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, IssuerTimeout)
	defer cancel()
	form := url.Values{
		"client_id":       {l.Issuer.ClientID},
		"token":           {l.RefreshToken},
		"token_type_hint": {"refresh_token"},
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, m.Revocation, strings.NewReader(form.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	res, err := c.Do(req)
	if err != nil {
		return l.Issuer.explain(err)
	}
	_ = res.Body.Close()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("the issuer %s answered %s", l.Issuer.Name, res.Status)
	}
	return nil
}
