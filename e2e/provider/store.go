package main

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// store has the state of the provider in memory. It implements [op.Storage].
type store struct {
	client, audience string
	keys             *keyring

	mu       sync.Mutex // guards what is below
	lifetime time.Duration
	clock    time.Duration // how far this provider's clock is ahead
	logins   map[string]*login
	codes    map[string]*login
	refresh  map[string]*session
	devices  map[string]*device
}

var (
	_ op.Storage                    = (*store)(nil)
	_ op.DeviceAuthorizationStorage = (*store)(nil)
)

func newStore(c config, keys *keyring) *store {
	return &store{
		client: c.client, audience: c.audience, keys: keys, lifetime: c.lifetime,
		logins: map[string]*login{}, codes: map[string]*login{}, refresh: map[string]*session{}, devices: map[string]*device{},
	}
}

var (
	errNoPKCE   = errors.New("a public client sends code_challenge with S256")
	errNoLogin  = errors.New("no such login")
	errNoClient = errors.New("no such client")
)

// login is a login in progress. user is empty until the user has logged in.
type login struct {
	id, user         string
	client, audience string
	request          oidc.AuthRequest
	at               time.Time
}

var _ op.AuthRequest = (*login)(nil)

func (l *login) GetID() string { return l.id }

func (l *login) GetACR() string { return "" }

func (l *login) GetAMR() []string { return nil }

func (l *login) GetAuthTime() time.Time { return l.at }

func (l *login) GetClientID() string { return l.client }

func (l *login) GetNonce() string { return l.request.Nonce }

func (l *login) GetRedirectURI() string { return l.request.RedirectURI }

func (l *login) GetResponseType() oidc.ResponseType { return l.request.ResponseType }

func (l *login) GetResponseMode() oidc.ResponseMode { return l.request.ResponseMode }

func (l *login) GetScopes() []string { return l.request.Scopes }

func (l *login) GetState() string { return l.request.State }

func (l *login) GetSubject() string { return l.user }

func (l *login) Done() bool { return l.user != "" }

func (l *login) GetAudience() []string { return audiences(l.client, l.audience) }

func (l *login) GetCodeChallenge() *oidc.CodeChallenge {
	return &oidc.CodeChallenge{Challenge: l.request.CodeChallenge, Method: l.request.CodeChallengeMethod}
}

func audiences(client, more string) []string {
	if more == "" || more == client {
		return []string{client}
	}
	return []string{client, more}
}

func (s *store) CreateAuthRequest(_ context.Context, request *oidc.AuthRequest, _ string) (op.AuthRequest, error) {
	if request.CodeChallenge == "" || request.CodeChallengeMethod != oidc.CodeChallengeMethodS256 {
		return nil, oidc.ErrInvalidRequest().WithDescription("%v", errNoPKCE)
	}
	l := &login{id: rand.Text(), client: request.ClientID, audience: s.audience, request: *request}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.logins[l.id] = l
	return l, nil
}

// finish records that a user has completed the login with an id.
func (s *store) finish(id, user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	l := s.logins[id]
	if l == nil {
		return errNoLogin
	}
	l.user, l.at = user, time.Now()
	return nil
}

func (s *store) AuthRequestByID(_ context.Context, id string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.logins[id]; l != nil {
		return l, nil
	}
	return nil, errNoLogin
}

func (s *store) AuthRequestByCode(_ context.Context, code string) (op.AuthRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.codes[code]; l != nil {
		return l, nil
	}
	return nil, errNoLogin
}

func (s *store) SaveAuthCode(_ context.Context, id, code string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.codes[code] = s.logins[id]
	return nil
}

func (s *store) DeleteAuthRequest(_ context.Context, id string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for code, l := range s.codes {
		if l.id == id {
			delete(s.codes, code)
		}
	}
	delete(s.logins, id)
	return nil
}

func (s *store) CreateAccessToken(context.Context, op.TokenRequest) (string, time.Time, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return rand.Text(), time.Now().Add(s.clock + s.lifetime), nil
}

// CreateAccessAndRefreshTokens issues a refresh token that can be used only once, as
// OAuth 2.1 requires for public clients. used is the refresh token that it replaces.
func (s *store) CreateAccessAndRefreshTokens(ctx context.Context, request op.TokenRequest, used string) (id, token string, expires time.Time, err error) {
	next := &session{user: request.GetSubject(), client: s.client, audience: request.GetAudience(), scopes: request.GetScopes()}
	if r, ok := request.(op.IDTokenRequest); ok {
		next.at = r.GetAuthTime()
	}
	token = rand.Text()
	s.mu.Lock()
	delete(s.refresh, used)
	s.refresh[token] = next
	s.mu.Unlock()
	id, expires, err = s.CreateAccessToken(ctx, request)
	return id, token, expires, err
}

func (s *store) TokenRequestByRefreshToken(_ context.Context, token string) (op.RefreshTokenRequest, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil {
		return r, nil
	}
	return nil, op.ErrInvalidRefreshToken
}

func (s *store) GetRefreshTokenInfo(_ context.Context, _, token string) (user, id string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if r := s.refresh[token]; r != nil {
		return r.user, token, nil
	}
	return "", "", op.ErrInvalidRefreshToken
}

func (s *store) RevokeToken(_ context.Context, token, _, _ string) *oidc.Error {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.refresh, token)
	return nil
}

func (s *store) TerminateSession(_ context.Context, user, _ string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for token, r := range s.refresh {
		if r.user == user {
			delete(s.refresh, token)
		}
	}
	return nil
}

func (s *store) SigningKey(context.Context) (op.SigningKey, error) { return s.keys.current(), nil }

func (s *store) SignatureAlgorithms(context.Context) ([]jose.SignatureAlgorithm, error) {
	return []jose.SignatureAlgorithm{jose.RS256, jose.ES256}, nil
}

func (s *store) KeySet(context.Context) ([]op.Key, error) { return s.keys.published(), nil }

func (s *store) GetClientByClientID(_ context.Context, id string) (op.Client, error) {
	if id != s.client {
		return nil, errNoClient
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return client{id: id, lifetime: s.lifetime, clock: s.clock}, nil
}

// AuthorizeClientIDSecret always returns an error, because a public client has no
// secret.
func (s *store) AuthorizeClientIDSecret(context.Context, string, string) error { return errNoClient }

func (s *store) SetUserinfoFromScopes(_ context.Context, info *oidc.UserInfo, user, _ string, _ []string) error {
	fill(info, user)
	return nil
}

func (s *store) SetUserinfoFromToken(_ context.Context, info *oidc.UserInfo, _, user, _ string) error {
	fill(info, user)
	return nil
}

func (s *store) SetIntrospectionFromToken(context.Context, *oidc.IntrospectionResponse, string, string, string) error {
	return errNoClient
}

func (s *store) GetPrivateClaimsFromScopes(_ context.Context, user, _ string, _ []string) (map[string]any, error) {
	return claims(user), nil
}

func (s *store) GetKeyByIDAndClientID(context.Context, string, string) (*jose.JSONWebKey, error) {
	return nil, errNoClient
}

func (s *store) ValidateJWTProfileScopes(_ context.Context, _ string, scopes []string) ([]string, error) {
	return slices.Clone(scopes), nil
}

func (s *store) Health(context.Context) error { return nil }
