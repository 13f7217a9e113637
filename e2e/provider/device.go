package main

import (
	"context"
	"time"

	"github.com/zitadel/oidc/v3/pkg/op"
)

// device is a login with a code that the user types on another machine.
type device struct {
	userCode string
	state    op.DeviceAuthorizationState
}

func (s *store) StoreDeviceAuthorization(_ context.Context, client, code, userCode string, expires time.Time, scopes []string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.devices[code] = &device{userCode: userCode, state: op.DeviceAuthorizationState{
		ClientID: client, Audience: audiences(client, s.audience), Scopes: scopes, Expires: expires,
	}}
	return nil
}

func (s *store) GetDeviceAuthorizatonState(_ context.Context, client, code string) (*op.DeviceAuthorizationState, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.devices[code]
	if d == nil || d.state.ClientID != client {
		return nil, errNoLogin
	}
	state := d.state
	if state.Done {
		delete(s.devices, code)
	}
	return &state, nil
}

// confirm completes the login on the device that shows userCode.
func (s *store) confirm(userCode, user string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.devices {
		if d.userCode == userCode {
			d.state.Done, d.state.Subject, d.state.AuthTime = true, user, time.Now()
			return nil
		}
	}
	return errNoLogin
}
