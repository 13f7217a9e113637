package client

import (
	"context"
	"time"
)

// Viewer is the caller as the gateway knows it.
type Viewer struct {
	// Name begins with the source, for example token:ci. Without a credential it is anonymous.
	Name string `json:"name" yaml:"name"`
	// Source is token, oidc:NAME, cert, proxy or anonymous.
	Source string   `json:"source" yaml:"source"`
	Groups []string `json:"groups" yaml:"groups"`
	// ExpiresAt is when the credential expires; nil if it does not.
	ExpiresAt *time.Time `json:"expiresAt" yaml:"expiresAt"`
}

// Viewer returns the caller as the gateway knows it.
func (c *Client) Viewer(ctx context.Context) (Viewer, error) {
	var out struct{ Viewer Viewer }
	err := c.Do(ctx, viewerDocument, nil, &out)
	return out.Viewer, err
}
