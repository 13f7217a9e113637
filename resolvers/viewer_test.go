package resolvers_test

import (
	"slices"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/service/access"
)

func TestViewer_IsAnonymousWithoutAnIdentity(t *testing.T) {
	got, err := setup(t).Query().Viewer(t.Context())
	if err != nil || got.Name != access.Anonymous || got.Source != access.Anonymous || got.Groups == nil || len(got.Groups) != 0 {
		t.Errorf("%+v %v", got, err)
	}
}

func TestViewer_HasTheIdentityOfTheCaller(t *testing.T) {
	until := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, expires := range []time.Time{{}, until} {
		id := &access.Identity{Name: "oidc:corp:ada", Source: "oidc:corp", Groups: []string{"dev"}, ExpiresAt: expires}
		got, err := setup(t).Query().Viewer(access.WithCaller(t.Context(), access.Caller{Identity: id}))
		if err != nil || got.Name != id.Name || got.Source != id.Source || !slices.Equal(got.Groups, id.Groups) {
			t.Errorf("%+v %v", got, err)
		}
		if (got.ExpiresAt == nil) != expires.IsZero() || got.ExpiresAt != nil && !got.ExpiresAt.Equal(expires) {
			t.Errorf("it expires at %v, want %v", got.ExpiresAt, expires)
		}
	}
}
