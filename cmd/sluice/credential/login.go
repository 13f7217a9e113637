package credential

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v4"
	"golang.org/x/oauth2"

	"github.com/sluicegw/sluice/graph/client"
)

// Login has the tokens of a login.
type Login struct {
	// Server is the gateway to which the tokens are sent. They are sent to no other server.
	Server string `yaml:"server"`
	Issuer Issuer `yaml:"issuer"`
	// IDToken is sent to the gateway. It is valid from Obtained until Expires.
	IDToken  string    `yaml:"id-token,omitempty"`
	Obtained time.Time `yaml:"obtained"`
	Expires  time.Time `yaml:"expires"`
	// RefreshToken is used to request the next ID token; empty if the issuer has not issued one.
	RefreshToken string `yaml:"refresh-token,omitempty"`
	// Sealed has both tokens, encrypted with a key in the keyring. If it is empty, they are not encrypted and are in
	// the fields above.
	Sealed string `yaml:"sealed,omitempty"`
	// Key is the name under which the keyring has the key for Sealed.
	Key string `yaml:"key,omitempty"`
}

// refreshBefore is how long before it expires a token is refreshed. For tokens with a short lifetime it is a quarter of
// the lifetime.
const refreshBefore = time.Minute

// ending reports whether the token should be refreshed now.
func (l *Login) ending(now time.Time) bool {
	return now.After(l.Expires.Add(-min(refreshBefore, l.Expires.Sub(l.Obtained)/4)))
}

// loginOf returns the login in the answer of an issuer.
func (i Issuer) loginOf(token *oauth2.Token) (*Login, error) {
	id, _ := token.Extra("id_token").(string)
	expires, err := expiry(id)
	if err != nil {
		return nil, fmt.Errorf("the issuer %s gave %w; are its scopes without openid?", i.Name, err)
	}
	return &Login{
		Issuer:       i,
		IDToken:      id,
		Obtained:     time.Now().UTC().Truncate(time.Second),
		Expires:      expires,
		RefreshToken: token.RefreshToken,
	}, nil
}

// expiry returns when an ID token expires. It does not verify the token, because the gateway does.
func expiry(token string) (time.Time, error) {
	parts := strings.Split(token, ".")
	var claims struct {
		Expires float64 `json:"exp"`
	}
	if len(parts) != 3 {
		return time.Time{}, errors.New("no ID token")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil || json.Unmarshal(payload, &claims) != nil || claims.Expires <= 0 {
		return time.Time{}, errors.New("an ID token that cannot be read")
	}
	return time.Unix(int64(claims.Expires), 0).UTC(), nil
}

// LoginsPath returns the path of the file of logins, which is next to the file of contexts.
func LoginsPath(contexts string) string {
	ext := filepath.Ext(contexts)
	return strings.TrimSuffix(contexts, ext) + ".logins" + ext
}

// logins maps the names of contexts to logins.
type logins map[string]Login

func parseLogins(data []byte, path string) (logins, error) {
	all := logins{}
	if yaml.Unmarshal(data, &all) != nil { // its errors could have tokens
		return nil, fmt.Errorf("%s is damaged; remove it and log in again", path)
	}
	return all, nil
}

// FindLogin returns the login of a context, and reports whether there is one.
func FindLogin(path, name string) (Login, bool, error) {
	data, err := ReadPrivate(path)
	if err != nil {
		return Login{}, false, err
	}
	all, err := parseLogins(data, path)
	l, ok := all[name]
	return l, ok, err
}

// KeepLogin stores the login of a context. If l is nil, it removes the login.
func KeepLogin(ctx context.Context, path, name string, l *Login) error {
	_, _, err := replaceLogin(ctx, path, name, l)
	return err
}

// RemoveLogin removes the login of a context from the file. It returns the login and reports whether there was one. The
// key of the login is still in the keyring; see [Login.ForgetKey].
func RemoveLogin(ctx context.Context, path, name string) (Login, bool, error) {
	return replaceLogin(ctx, path, name, nil)
}

// replaceLogin stores the login of a context, or removes it if l is nil. It returns the login that was in the file
// before, and reports whether there was one.
func replaceLogin(ctx context.Context, path, name string, l *Login) (before Login, found bool, err error) {
	err = change(ctx, path, func(all logins) error {
		before, found = all[name]
		if delete(all, name); l != nil {
			all[name] = *l
		}
		return nil
	})
	return before, found, err
}

func change(ctx context.Context, path string, f func(logins) error) error {
	return UpdatePrivate(ctx, path, func(data []byte) ([]byte, error) {
		all, err := parseLogins(data, path)
		if err != nil {
			return nil, err
		}
		if err := f(all); err != nil {
			return nil, err
		}
		if len(all) == 0 && len(data) == 0 {
			return nil, nil // no file is needed
		}
		return yaml.Marshal(all)
	})
}

// Source is a source of tokens from a login.
type Source struct {
	// Path is the path of the file of logins. Context is the name of the context with the login.
	Path, Context string
	// Keyring has the key of the login, if its tokens are encrypted. Default: the keyring of the system.
	Keyring Keyring
	// HTTP is the client for the issuer.
	HTTP *http.Client

	mu   sync.Mutex // guards kept
	kept *Login
}

// maxReplaced is how many times in a row a login may be replaced while its key is read from the keyring.
const maxReplaced = 5

// errReplaced means that another process has replaced the login while this process was opening or refreshing it.
var errReplaced = errors.New("other processes replace the login again and again; try again")

// Token is a [client.TokenSource]. It returns the ID token. If the token was refused or expires soon, it refreshes the
// token and stores it in the file. Other processes then use the token in the file: an issuer may accept a refresh token
// only once.
func (s *Source) Token(ctx context.Context, refused string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept.usable(refused) {
		return s.kept.IDToken, nil
	}
	var found bool
	var err error
	for range maxReplaced {
		found, err = s.renew(ctx, refused)
		if !errors.Is(err, errReplaced) {
			break
		}
	}
	switch {
	case err == nil && !found:
		return "", nil
	case err == nil:
		return s.kept.IDToken, nil
	case ctx.Err() == nil && s.kept != nil && s.kept.IDToken != refused && time.Now().Before(s.kept.Expires):
		return s.kept.IDToken, nil // it has not expired yet
	}
	return "", err
}

// usable reports whether the ID token of a login can be sent. It returns false if the gateway has refused the token or
// the token expires soon.
func (l *Login) usable(refused string) bool {
	return l != nil && l.IDToken != refused && !l.ending(time.Now())
}

// renew sets s.kept to the login in the file. If that login is not usable, renew refreshes it. found reports whether
// there is a login. The error is errReplaced if another process has replaced the login before it was opened or
// refreshed.
func (s *Source) renew(ctx context.Context, refused string) (found bool, err error) {
	l, found, err := FindLogin(s.Path, s.Context)
	if err != nil || !found {
		return false, err
	}
	key, err := s.open(ctx, &l)
	if err != nil {
		// The key of a login that was replaced meanwhile is no longer in the keyring.
		now, _, unreadable := FindLogin(s.Path, s.Context)
		if unreadable == nil && now.Key != l.Key {
			err = errReplaced
		}
		return false, err
	}
	s.kept = &l
	if l.usable(refused) {
		return true, nil
	}
	return s.refresh(ctx, refused, key)
}

// open decrypts the tokens of a login, and returns the key of the login.
func (s *Source) open(ctx context.Context, l *Login) ([]byte, error) {
	ring := s.Keyring
	if ring == nil {
		ring = SystemKeyring()
	}
	key, err := l.key(ctx, ring)
	if err != nil {
		return nil, err
	}
	return key, l.open(key)
}

// refresh refreshes the login in the file, unless another process has done so, and sets s.kept to it. key is the key of
// the login in s.kept. If the login in the file has another key, the error is errReplaced. found reports whether the
// file has a login.
func (s *Source) refresh(ctx context.Context, refused string, key []byte) (found bool, err error) {
	err = change(ctx, s.Path, func(all logins) error {
		l, ok := all[s.Context]
		found = ok
		switch {
		case !ok:
			return nil
		case l.Key != s.kept.Key:
			return errReplaced
		}
		if err := l.open(key); err != nil {
			return err
		}
		s.kept = &l
		if l.usable(refused) {
			return nil
		}
		next, err := l.refresh(ctx, s.HTTP)
		if err != nil {
			return err
		}
		sealed, err := next.seal(key)
		if err != nil {
			return err
		}
		all[s.Context] = *sealed
		s.kept = next
		return nil
	})
	return found, err
}

// laterError is an error that also matches [client.ErrNoTokenNow]. Its message does not mention that.
type laterError struct{ error }

func (e laterError) Unwrap() []error { return []error{e.error, client.ErrNoTokenNow} }

// refresh requests new tokens with the refresh token, and returns a login with them.
func (l *Login) refresh(ctx context.Context, c *http.Client) (*Login, error) {
	const again = "log in again with sluice login"
	if l.RefreshToken == "" {
		return nil, errors.New("the login has expired, and its issuer gave nothing to refresh it with; " + again)
	}
	m, err := discover(ctx, c, l.Issuer.URL)
	if err != nil {
		return nil, fmt.Errorf("the login could not be refreshed: %w", laterError{err})
	}
	limit, cancel := context.WithTimeout(context.WithValue(ctx, oauth2.HTTPClient, c), IssuerTimeout)
	defer cancel()
	token, err := l.Issuer.config(m).TokenSource(limit, &oauth2.Token{RefreshToken: l.RefreshToken}).Token()
	if err != nil {
		err = l.Issuer.explain(err)
		if errors.As(err, new(*refusedError)) {
			return nil, fmt.Errorf("the login has ended (%w); %s", err, again)
		}
		return nil, fmt.Errorf("the login could not be refreshed: %w", laterError{err})
	}
	next, err := l.Issuer.loginOf(token)
	if err != nil {
		return nil, fmt.Errorf("%w; %s", err, again)
	}
	next.Server = l.Server
	next.Key = l.Key
	return next, nil
}
