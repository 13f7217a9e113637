package identity_test

import (
	"crypto/rand"
	"encoding/base64"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/identity"
)

// FuzzAuthorization holds that nothing but the one token names somebody, and that all
// else is refused with a code.
func FuzzAuthorization(f *testing.F) {
	text, hash, err := identity.NewToken(rand.Reader)
	if err != nil {
		f.Fatal(err)
	}
	path := filepath.Join(f.TempDir(), "tokens")
	writeFile(f, path, identity.Token{Name: "ci", Hash: hash}.String()+"\n", 0o600)
	tokens, err := identity.OpenTokens(f.Context(), path, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	configs, err := identity.ParseIssuers([]byte("issuers: [{name: corp, url: 'http://127.0.0.1:1', audience: sluice}]"))
	if err != nil {
		f.Fatal(err)
	}
	issuers, err := identity.NewIssuers(configs, zap.NewNop())
	if err != nil {
		f.Fatal(err)
	}
	a := &identity.Authenticator{Tokens: tokens, Issuers: issuers}
	encode := base64.RawURLEncoding.EncodeToString
	for _, header := range []string{
		"", "Bearer", "Bearer ", "bearer " + text, "BEARER  " + text + " ", "Basic " + text, "Bearer\t" + text, text, "Bearer " + text + ".", "Bearer sluice_", "Bearer a.b.c", "Bearer ..",
		"Bearer " + encode([]byte(`{"alg":"none"}`)) + "." + encode([]byte(`{"iss":"http://127.0.0.1:1"}`)) + ".",
		"Bearer x." + encode([]byte(`{"iss":["http://127.0.0.1:1"]}`)) + ".x", "Bearer x." + encode([]byte(`{"iss":1e999}`)) + ".x", "Bearer x." + encode([]byte("\xff{")) + ".x",
		"Bearer " + strings.Repeat("a.", identity.MaxBearer), "Bearer sluice_" + strings.Repeat("x", identity.MaxBearer),
	} {
		f.Add(header)
	}
	f.Fuzz(func(t *testing.T, header string) {
		id, err := a.Authorization(t.Context(), header)
		scheme, bearer, _ := strings.Cut(header, " ")
		if strings.EqualFold(scheme, "bearer") && strings.TrimSpace(bearer) == text {
			if err != nil || id.Name != "token:ci" {
				t.Fatalf("the token is taken for %v: %v", id, err)
			}
			return
		}
		var refused *failure.Error
		switch {
		case id != nil || !errors.As(err, &refused):
			t.Fatalf("%q: %v %v", header, id, err)
		case refused.Code != failure.CodeUnauthenticated && refused.Code != failure.CodeUnavailable:
			t.Fatalf("%q: %v", header, refused.Code)
		case len(bearer) > 8 && strings.Contains(err.Error(), bearer):
			t.Fatalf("%q is in the error %v", header, err)
		}
	})
}
