package credential

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// maxAnswer is the maximum size of an answer of a gateway or an issuer, in bytes.
const maxAnswer = 1 << 20

// IssuerTimeout is the time limit of a call to an issuer.
const IssuerTimeout = 10 * time.Second

// Issuer is an OpenID Connect issuer that a gateway trusts, with the parameters for a login.
type Issuer struct {
	Name     string   `json:"name" yaml:"name"`
	URL      string   `json:"url" yaml:"url"`
	ClientID string   `json:"clientId" yaml:"client-id"`
	Scopes   []string `json:"scopes" yaml:"scopes,flow"`
}

// Issuers requests the list of issuers that a gateway trusts.
func Issuers(ctx context.Context, c *http.Client, server string) ([]Issuer, error) {
	at, err := url.Parse(server)
	if err != nil {
		return nil, fmt.Errorf("server: %q is not a URL", server)
	}
	at = at.JoinPath("login")
	var answer struct {
		Issuers []Issuer `json:"issuers"`
	}
	if err := get(ctx, c, at, &answer); err != nil {
		return nil, fmt.Errorf("%w; is a gateway there?", err)
	}
	return answer.Issuers, nil
}

// Choose returns the issuer with a name. If the name is empty, there must be only one issuer.
func Choose(issuers []Issuer, name string) (Issuer, error) {
	var names []string
	for _, i := range issuers {
		if i.Name == name || name == "" && len(issuers) == 1 {
			return i, nil
		}
		names = append(names, i.Name)
	}
	switch {
	case len(issuers) == 0:
		return Issuer{}, errors.New("the gateway has no issuer to log in at; a context can have a token instead, see sluice context set --help")
	case name == "":
		return Issuer{}, fmt.Errorf("issuer: the gateway has several; choose one with --issuer: %s",
			strings.Join(names, ", "))
	}
	return Issuer{}, fmt.Errorf("issuer: the gateway has none that is named %q; accepted: %s",
		name, strings.Join(names, ", "))
}

// metadata is the discovery document of an issuer (OpenID Connect Discovery 1.0, section 3).
type metadata struct {
	Issuer        string   `json:"issuer"`
	Authorization string   `json:"authorization_endpoint"`
	Token         string   `json:"token_endpoint"`
	Device        string   `json:"device_authorization_endpoint"`
	Revocation    string   `json:"revocation_endpoint"`
	Scopes        []string `json:"scopes_supported"`
}

// discover requests the endpoints of an issuer. They must be https, except on this machine.
func discover(ctx context.Context, c *http.Client, issuer string) (metadata, error) {
	var m metadata
	at, err := secure(issuer)
	if err != nil {
		return m, err
	}
	if err := get(ctx, c, at.JoinPath(".well-known", "openid-configuration"), &m); err != nil {
		return m, err
	}
	if m.Issuer != issuer {
		return m, fmt.Errorf("%s says that it is the issuer %q; the gateway must name it so", issuer, m.Issuer)
	}
	for _, endpoint := range []string{m.Authorization, m.Token, m.Device, m.Revocation} {
		if endpoint == "" {
			continue
		}
		if _, err := secure(endpoint); err != nil {
			return m, err
		}
	}
	return m, nil
}

// secure parses the URL of an issuer or endpoint. It must be https, except on this machine.
func secure(text string) (*url.URL, error) {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" {
		return nil, fmt.Errorf("issuer: %q is not a URL", text)
	}
	if u.Scheme != "https" && (u.Scheme != "http" || !config.Loopback(u.Hostname())) {
		return nil, fmt.Errorf("issuer: %s does not begin with https", u.Redacted())
	}
	return u, nil
}

// get requests a JSON document.
func get(ctx context.Context, c *http.Client, at *url.URL, to any) error {
	ctx, cancel := context.WithTimeout(ctx, IssuerTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, at.String(), nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	res, err := c.Do(req)
	if err != nil {
		return unreached(at, err)
	}
	defer func() { _ = res.Body.Close() }()
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answered %s", at.Redacted(), res.Status)
	}
	if json.NewDecoder(io.LimitReader(res.Body, maxAnswer)).Decode(to) != nil {
		return fmt.Errorf("%s answered no JSON", at.Redacted())
	}
	return nil
}

// errUnreached means that an issuer does not answer.
var errUnreached = errors.New("no answer")

func unreached(at *url.URL, err error) error {
	var wrapped *url.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err // without the query of the URL
	}
	return fmt.Errorf("%w from %s://%s: %w", errUnreached, at.Scheme, at.Host, err)
}

// offline is the scope with which a client asks for a refresh token (OpenID Connect Core, section 11).
const offline = "offline_access"

// config returns the configuration for requesting tokens. The client has no secret: it is a public client.
func (i Issuer) config(m metadata) *oauth2.Config {
	scopes := i.Scopes
	if slices.Contains(m.Scopes, offline) && !slices.Contains(scopes, offline) {
		scopes = append(slices.Clone(scopes), offline)
	}
	return &oauth2.Config{
		ClientID: i.ClientID, Scopes: scopes,
		Endpoint: oauth2.Endpoint{
			AuthURL:       m.Authorization,
			TokenURL:      m.Token,
			DeviceAuthURL: m.Device,
			AuthStyle:     oauth2.AuthStyleInParams,
		},
	}
}

// refusedError is an error that an issuer has returned in its answer.
type refusedError struct{ text string }

func (e *refusedError) Error() string { return e.text }

// explain returns an error of one line about a failed request for tokens. The error does not contain the body of the
// answer, which may have tokens.
func (i Issuer) explain(err error) error {
	var answer *oauth2.RetrieveError
	if errors.As(err, &answer) {
		text := "the issuer " + i.Name + " answered "
		switch {
		case answer.ErrorCode == "":
			text += answer.Response.Status
		case answer.ErrorDescription == "":
			text += answer.ErrorCode
		default:
			text += answer.ErrorCode + ": " + answer.ErrorDescription
		}
		if answer.Response.StatusCode >= 500 || answer.Response.StatusCode == http.StatusTooManyRequests {
			return fmt.Errorf("%w: %s", errUnreached, text)
		}
		return &refusedError{text}
	}
	var lost *url.Error
	if errors.As(err, &lost) {
		if at, failed := url.Parse(lost.URL); failed == nil {
			return unreached(at, lost)
		}
	}
	return fmt.Errorf("the issuer %s: %w", i.Name, err)
}
