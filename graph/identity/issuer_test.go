package identity_test

import (
	"context"
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/identity"
	"github.com/sluicegw/sluice/internal/redistest"
)

// issuer is an issuer with one key.
type issuer struct {
	t       testing.TB
	url     string
	down    atomic.Bool
	fetches atomic.Int64

	mu  sync.Mutex
	id  string
	key *ecdsa.PrivateKey
}

func newIssuer(t testing.TB) *issuer {
	x := &issuer{t: t}
	x.rotate("k1")
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		x.write(w, map[string]any{"issuer": x.url, "jwks_uri": x.url + "/moved/keys", "authorization_endpoint": x.url + "/auth", "token_endpoint": x.url + "/token", "id_token_signing_alg_values_supported": []string{"ES256"}})
	})
	mux.Handle("/moved/", http.RedirectHandler("/keys", http.StatusFound))
	mux.HandleFunc("/keys", func(w http.ResponseWriter, _ *http.Request) {
		x.fetches.Add(1)
		x.mu.Lock()
		defer x.mu.Unlock()
		x.write(w, jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: x.key.Public(), KeyID: x.id, Algorithm: "ES256", Use: "sig"}}})
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	x.url = s.URL
	return x
}

func (x *issuer) write(w http.ResponseWriter, v any) {
	if x.down.Load() {
		panic(http.ErrAbortHandler)
	}
	w.Header().Set("Content-Type", "application/json")
	if err := json.NewEncoder(w).Encode(v); err != nil {
		x.t.Error(err)
	}
}

// rotate replaces the key.
func (x *issuer) rotate(id string) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		x.t.Fatal(err)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.id, x.key = id, key
}

// token returns a token with claims besides those that every token has.
func (x *issuer) token(more map[string]any) string {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.signed(jose.ES256, x.key, x.id, more)
}

func (x *issuer) signed(alg jose.SignatureAlgorithm, key any, id string, more map[string]any) string {
	all := map[string]any{"iss": x.url, "aud": "sluice", "sub": "alice", "exp": time.Now().Add(time.Hour).Unix(), "iat": time.Now().Unix()}
	for k, v := range more {
		if all[k] = v; v == nil {
			delete(all, k)
		}
	}
	payload, err := json.Marshal(all)
	if err != nil {
		x.t.Fatal(err)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: jose.JSONWebKey{Key: key, KeyID: id}}, nil)
	if err != nil {
		x.t.Fatal(err)
	}
	object, err := signer.Sign(payload)
	if err != nil {
		x.t.Fatal(err)
	}
	text, err := object.CompactSerialize()
	if err != nil {
		x.t.Fatal(err)
	}
	return text
}

// accept returns an authenticator that knows the issuer by a configuration.
func accept(t testing.TB, yaml string, prepare ...func(*identity.Issuers)) *identity.Authenticator {
	t.Helper()
	configs, err := identity.ParseIssuers([]byte(yaml))
	if err != nil {
		t.Fatal(err)
	}
	issuers, err := identity.NewIssuers(configs, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range prepare {
		one(issuers)
	}
	a := &identity.Authenticator{Issuers: issuers}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- a.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; err != nil {
			t.Error(err)
		}
		http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	})
	return a
}

// identify returns who a token belongs to, or the error, once the issuer is known.
func identify(t testing.TB, a *identity.Authenticator, token string) string {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); ; {
		id, err := a.Authorization(t.Context(), "Bearer "+token)
		var known *failure.Error
		switch {
		case err == nil:
			return strings.Join(append([]string{id.Name}, id.Groups...), " ")
		case !errors.As(err, &known):
			t.Fatalf("an error without a code: %v", err)
		case known.Code != failure.CodeUnavailable || time.Now().After(deadline):
			return err.Error()
		}
	}
}

func TestIssuer_ATokenOfAnIssuerNamesUserAndGroups(t *testing.T) {
	x := newIssuer(t)
	const notValid = "the token is not valid: its signature, issuer, audience or times are not as they must be"
	for name, c := range map[string]struct {
		config string
		claims map[string]any
		want   string
	}{
		"the defaults":                       {"", map[string]any{"groups": []string{"dev", "ops"}}, "oidc:corp:alice oidc:corp:dev oidc:corp:ops"},
		"no groups":                          {"", nil, "oidc:corp:alice"},
		"one group as a text":                {"", map[string]any{"groups": "dev"}, "oidc:corp:alice oidc:corp:dev"},
		"nested groups":                      {"groups: realm.roles", map[string]any{"realm": map[string]any{"roles": []string{"a"}}}, "oidc:corp:alice oidc:corp:a"},
		"a claim named by a URL":             {"groups: https://example.com/groups", map[string]any{"https://example.com/groups": []string{"a"}}, "oidc:corp:alice oidc:corp:a"},
		"expressions":                        {"userExpression: claims.name + '@corp'\n    groupsExpression: claims.roles.map(r, 'x-' + r)", map[string]any{"name": "al", "roles": []string{"a", "b"}}, "oidc:corp:al@corp oidc:corp:x-a oidc:corp:x-b"},
		"an expression of what is not there": {"userExpression: claims.nothing", nil, "the name of the user cannot be read from the claims of the token"},
		"a user that is no text":             {"user: uid", map[string]any{"uid": 7}, "the token has no claim with the name of the user, or it is no text"},
		"an e-mail address":                  {"user: email", map[string]any{"email": "a@example.com", "email_verified": true}, "oidc:corp:a@example.com"},
		"one that is not verified":           {"user: email", map[string]any{"email": "a@example.com", "email_verified": false}, "the e-mail address in the token is not verified"},
		"groups that are numbers":            {"", map[string]any{"groups": []any{"a", 1}}, "a group of the user is no text but of type float64"},
		"groups that are an object":          {"", map[string]any{"groups": map[string]any{}}, "the claim with the groups of the user is no list of texts"},
		"too many groups":                    {"", map[string]any{"groups": make([]string, 257)}, "the user is in more than the 256 groups that are accepted"},
		"a name that is too long":            {"", map[string]any{"sub": strings.Repeat("a", 257)}, "the name of the user is longer than the 256 bytes that are accepted"},
		"an end a moment ago":                {"clockSkew: 30s", map[string]any{"exp": time.Now().Add(-10 * time.Second).Unix()}, "oidc:corp:alice"},
		"an end":                             {"clockSkew: 30s", map[string]any{"exp": time.Now().Add(-40 * time.Second).Unix()}, "the credential has expired"},
		"no end":                             {"", map[string]any{"exp": nil}, "the credential has expired"},
		"a beginning in a moment":            {"clockSkew: 30s", map[string]any{"nbf": time.Now().Add(20 * time.Second).Unix()}, "oidc:corp:alice"},
		"a beginning":                        {"clockSkew: 30s", map[string]any{"nbf": time.Now().Add(40 * time.Second).Unix()}, "the token is not valid yet"},
		"a beginning out of all bounds":      {"", map[string]any{"nbf": 1e300}, "the token is not valid yet"},
		"a beginning that is text":           {"", map[string]any{"nbf": "now"}, notValid},
		"another audience":                   {"", map[string]any{"aud": "other"}, notValid},
		"another issuer":                     {"", map[string]any{"iss": "https://example.com"}, "the token is of no issuer that this gateway knows"},
	} {
		t.Run(name, func(t *testing.T) {
			a := accept(t, fmt.Sprintf("issuers:\n  - name: corp\n    url: %s\n    audience: sluice\n    %s\n", x.url, c.config))
			for range 2 { // the second time it may be remembered
				if got := identify(t, a, x.token(c.claims)); got != c.want {
					t.Errorf("%s, want %s", got, c.want)
				}
			}
		})
	}
}

func TestIssuer_AForgedTokenIsRefused(t *testing.T) {
	x := newIssuer(t)
	a := accept(t, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]")
	good := x.token(nil)
	if got := identify(t, a, good); got != "oidc:corp:alice" {
		t.Fatal(got)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	public, err := json.Marshal(jose.JSONWebKey{Key: x.key.Public()})
	if err != nil {
		t.Fatal(err)
	}
	parts := strings.Split(good, ".")
	for name, token := range map[string]string{
		"no signature":                 "eyJhbGciOiJub25lIn0." + parts[1] + ".",
		"the public key as a secret":   x.signed(jose.HS256, []byte(public), "k1", nil),
		"another key of the same name": x.signed(jose.ES256, crypto.PrivateKey(other), "k1", nil),
		"another key":                  x.signed(jose.ES256, crypto.PrivateKey(other), "k9", nil),
		"a changed payload":            parts[0] + "." + parts[1][:len(parts[1])-2] + "QQ." + parts[2],
		"a blank in the signature":     good[:len(good)-2] + " " + good[len(good)-2:],
		"a line break in it":           good[:len(good)-2] + "\n" + good[len(good)-2:],
		"half of a token":              good[:len(good)/2] + "..",
		"dots":                         "..",
	} {
		if id, err := a.Authorization(t.Context(), "Bearer "+token); err == nil {
			t.Errorf("%s: accepted as %v", name, id)
		}
	}
	if _, err := a.Authorization(t.Context(), "Bearer "+strings.Repeat("a", identity.MaxBearer+1)); err == nil || !strings.Contains(err.Error(), "16384") {
		t.Errorf("a long bearer: %v", err)
	}
}

func TestIssuer_KeysAreFetchedWhenTheyAreNewAndNoOftener(t *testing.T) {
	x := newIssuer(t)
	a := accept(t, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]")
	old := x.token(nil)
	if got := identify(t, a, old); got != "oidc:corp:alice" {
		t.Fatal(got)
	}
	x.rotate("k2")
	// go-oidc lets a verification join a fetch that ended a moment ago, before the rotation.
	redistest.Await(t, "after the rotation", func() error {
		if got := identify(t, a, x.token(nil)); got != "oidc:corp:alice" {
			return errors.New(got)
		}
		return nil
	})
	if got := identify(t, a, old); got != "oidc:corp:alice" {
		t.Errorf("a token that was verified before: %s", got)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for i := range 1000 {
		if id, err := a.Authorization(t.Context(), "Bearer "+x.signed(jose.ES256, other, fmt.Sprint("k", i+10), nil)); err == nil {
			t.Fatalf("accepted as %v", id)
		}
	}
	if n := x.fetches.Load(); n > 5 {
		t.Errorf("the keys were fetched %d times", n)
	}
}

// TestIssuer_TheKeysOfAnIssuerAreForgottenNowAndThen also while somebody sends tokens of unknown keys.
func TestIssuer_TheKeysOfAnIssuerAreForgottenNowAndThen(t *testing.T) {
	x := newIssuer(t)
	a := accept(t, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]", func(all *identity.Issuers) { all.RelearnEvery(50 * time.Millisecond) })
	if got := identify(t, a, x.token(nil)); got != "oidc:corp:alice" {
		t.Fatal(got)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	for n, before := 0, x.fetches.Load(); x.fetches.Load() < before+10; n++ {
		if id, err := a.Authorization(t.Context(), "Bearer "+x.signed(jose.ES256, other, "k9", nil)); err == nil {
			t.Fatalf("accepted as %v", id)
		}
		name := fmt.Sprint("user", n)
		if got := identify(t, a, x.token(map[string]any{"sub": name})); got != "oidc:corp:"+name {
			t.Fatal(got)
		}
	}
}

func TestIssuer_AnIssuerThatIsDownAtTheStartIsAskedAgain(t *testing.T) {
	x := newIssuer(t)
	x.down.Store(true)
	a := accept(t, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]")
	token := x.token(nil)
	var known *failure.Error
	if _, err := a.Authorization(t.Context(), "Bearer "+token); !errors.As(err, &known) || known.Code != failure.CodeUnavailable || known.RetryAfter == 0 {
		t.Errorf("while it is down: %v", err)
	}
	x.down.Store(false)
	if got := identify(t, a, token); got != "oidc:corp:alice" {
		t.Error(got)
	}
}

// TestIssuer_ATokenWhoseKeyCannotBeFetchedIsNotCalledWrong asks more often than keys are fetched.
func TestIssuer_ATokenWhoseKeyCannotBeFetchedIsNotCalledWrong(t *testing.T) {
	x := newIssuer(t)
	a := accept(t, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]")
	if got := identify(t, a, x.token(nil)); got != "oidc:corp:alice" {
		t.Fatal(got)
	}
	known := x.token(map[string]any{"sub": "bob"})
	x.down.Store(true)
	x.rotate("k2")
	var refused *failure.Error
	unavailable := func() bool {
		_, err := a.Authorization(t.Context(), "Bearer "+x.token(nil))
		return errors.As(err, &refused) && refused.Code == failure.CodeUnavailable
	}
	// Whoever asks in the moment in which a fetch ends is given its keys; it was the one before the issuer went down.
	for deadline := time.Now().Add(20 * time.Second); !unavailable() && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	for n := range 10 {
		if !unavailable() {
			t.Errorf("request %d: %v", n, refused)
		}
	}
	if got := identify(t, a, known); got != "oidc:corp:bob" {
		t.Errorf("a token with a key that is known: %s", got)
	}
	x.down.Store(false)
	if got := identify(t, a, x.token(nil)); got != "oidc:corp:alice" {
		t.Errorf("when the issuer is back: %s", got)
	}
}

func TestIssuer_AFileOfIssuersIsRefusedWithAllThatIsWrong(t *testing.T) {
	_, err := identity.ParseIssuers([]byte("issuers:\n- {name: Corp, url: http://example.com, user: a, userExpression: b, clockSkew: 1h}\n- {name: a, url: https://a.example.com, audience: x}\n- {name: a, url: https://a.example.com, audience: x}\n"))
	want := []string{
		`issuers[0]: name: "Corp"; a DNS label is accepted, like corp`,
		"url: an https URL is accepted, without a query, like https://login.example.com",
		"audience: missing; it is what the aud of tokens must have",
		"user, userExpression: choose one",
		"clockSkew: 0s to 5m is accepted",
		"issuers[2]: name: another issuer has it",
		"url: another issuer has it",
	}
	if err == nil {
		t.Fatal("accepted")
	}
	if diff := cmp.Diff(want, strings.Split(err.Error(), "\n")); diff != "" {
		t.Error(diff)
	}
	for _, text := range []string{"", "issuers: []", "issuers: [{nme: x}]", "a: [", "issuers: 7"} {
		if _, err := identity.ParseIssuers([]byte(text)); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	broken := []identity.IssuerConfig{{Login: identity.Login{Name: "a"}, UserExpression: "claims."}}
	if _, err := identity.NewIssuers(broken, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "issuers[0]: userExpression: ") {
		t.Error(err)
	}
}

// BenchmarkRefusal refuses credentials that anybody can make up. docs/security.md has the times.
func BenchmarkRefusal(b *testing.B) {
	x := newIssuer(b)
	a := accept(b, "issuers: [{name: corp, url: '"+x.url+"', audience: sluice}]")
	if got := identify(b, a, x.token(nil)); got != "oidc:corp:alice" {
		b.Fatal(got)
	}
	path := filepath.Join(b.TempDir(), "tokens")
	writeFile(b, path, "", 0o600)
	var err error
	if a.Tokens, err = identity.OpenTokens(b.Context(), path, zap.NewNop()); err != nil {
		b.Fatal(err)
	}
	other, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	unknown, _, err := identity.NewToken(rand.Reader)
	if err != nil {
		b.Fatal(err)
	}
	for name, token := range map[string]string{
		"static token": unknown,
		"signature":    x.signed(jose.ES256, other, "k1", nil),
		"key":          x.signed(jose.ES256, other, "k2", nil),
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if _, err := a.Authorization(b.Context(), "Bearer "+token); err == nil {
					b.Fatal("it is accepted")
				}
			}
		})
	}
}
