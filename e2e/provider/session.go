package main

import (
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// session has the data for which a refresh token was issued.
type session struct {
	user, client     string
	audience, scopes []string
	at               time.Time
}

var _ op.RefreshTokenRequest = (*session)(nil)

func (s *session) GetAMR() []string { return nil }

func (s *session) GetAudience() []string { return s.audience }

func (s *session) GetAuthTime() time.Time { return s.at }

func (s *session) GetClientID() string { return s.client }

func (s *session) GetScopes() []string { return s.scopes }

func (s *session) GetSubject() string { return s.user }

func (s *session) SetCurrentScopes(scopes []string) { s.scopes = scopes }
