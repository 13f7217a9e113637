package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/sluicegw/sluice/internal/redistest"
)

// forged signs claims as an attacker would, with any header.
func forged(t *testing.T, alg jose.SignatureAlgorithm, key any, header, claims map[string]any) string {
	t.Helper()
	options := &jose.SignerOptions{}
	for name, value := range header {
		options = options.WithHeader(jose.HeaderKey(name), value)
	}
	signer, err := jose.NewSigner(jose.SigningKey{Algorithm: alg, Key: key}, options)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signer.Sign(raw(t, claims))
	if err != nil {
		t.Fatal(err)
	}
	text, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// unsigned is a token whose parts are what they are.
func unsigned(t *testing.T, header, claims map[string]any, signature string) string {
	t.Helper()
	encode := base64.RawURLEncoding.EncodeToString
	return encode(raw(t, header)) + "." + encode(raw(t, claims)) + "." + signature
}

func raw(t *testing.T, v any) []byte {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// key is the first key that an issuer has published.
func (i *issuer) key() jose.JSONWebKey {
	i.t.Helper()
	var set jose.JSONWebKeySet
	i.get(i.discover().Keys, &set)
	return set.Keys[0]
}

func TestForgedTokensAreRefused(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	corp, lab := startIssuer(t), startIssuer(t)
	g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", nil), lab.entry("lab", nil)))
	g.caller(nil).with(corp.token("alice")).becomes(aliceOfCorp)
	g.caller(nil).with(lab.token("bob")).becomes("oidc:lab oidc:lab:bob [oidc:lab:audit]")

	own, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	curve, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	key := corp.key()
	der, err := x509.MarshalPKIXPublicKey(key.Key)
	if err != nil {
		t.Fatal(err)
	}
	public := pem.EncodeToMemory(&pem.Block{Type: "PUBLIC KEY", Bytes: der})
	pkcs1 := pem.EncodeToMemory(&pem.Block{Type: "RSA PUBLIC KEY", Bytes: x509.MarshalPKCS1PublicKey(key.Key.(*rsa.PublicKey))})
	valid := corp.token("alice")
	claims := claimsOf(t, valid)
	other := func(changes map[string]any) map[string]any {
		out := maps.Clone(claims)
		maps.Copy(out, changes)
		return out
	}
	parts := strings.Split(valid, ".")
	var fetched atomic.Int64
	attacker := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		fetched.Add(1)
		_ = json.NewEncoder(w).Encode(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: own.Public(), KeyID: "mine", Algorithm: "RS256"}}})
	}))
	t.Cleanup(attacker.Close)
	ahead, behind := time.Now().Add(time.Hour).Unix(), time.Now().Add(-time.Hour).Unix()
	kid := map[string]any{"kid": key.KeyID, "typ": "JWT"}
	for name, token := range map[string]string{
		"alg none":                            unsigned(t, map[string]any{"alg": "none"}, claims, ""),
		"alg None":                            unsigned(t, map[string]any{"alg": "None", "kid": key.KeyID}, claims, ""),
		"alg none with the old signature":     unsigned(t, map[string]any{"alg": "none", "kid": key.KeyID}, claims, parts[2]),
		"no alg":                              unsigned(t, map[string]any{"kid": key.KeyID}, claims, parts[2]),
		"no signature":                        parts[0] + "." + parts[1] + ".",
		"another signature":                   parts[0] + "." + parts[1] + "." + strings.Split(corp.token("bob"), ".")[2],
		"HS256 with the public key (PEM)":     forged(t, jose.HS256, public, kid, claims),
		"HS256 with the public key (PKCS 1)":  forged(t, jose.HS256, pkcs1, kid, claims),
		"HS256 with the public key (DER)":     forged(t, jose.HS256, der, kid, claims),
		"HS256 with the modulus":              forged(t, jose.HS256, key.Key.(*rsa.PublicKey).N.Bytes(), kid, claims),
		"a key of somebody else":              forged(t, jose.RS256, own, kid, claims),
		"a key of another curve":              forged(t, jose.ES256, curve, kid, claims),
		"a key in the header":                 forged(t, jose.RS256, own, map[string]any{"kid": "mine", "jwk": jose.JSONWebKey{Key: own.Public(), KeyID: "mine"}}, claims),
		"a key at the attacker's address":     forged(t, jose.RS256, own, map[string]any{"kid": "mine", "jku": attacker.URL, "x5u": attacker.URL}, claims),
		"a critical header that is not known": forged(t, jose.RS256, own, map[string]any{"kid": key.KeyID, "crit": []string{"b64"}, "b64": false}, claims),
		"the attacker's issuer":               forged(t, jose.RS256, own, map[string]any{"kid": "mine"}, other(map[string]any{"iss": attacker.URL})),
		"the wrong issuer":                    corp.mint(order{User: "alice", Claims: map[string]any{"iss": "https://login.example.com"}}),
		"another issuer that is known":        corp.mint(order{User: "alice", Claims: map[string]any{"iss": lab.URL}}),
		"two issuers":                         corp.mint(order{User: "alice", Claims: map[string]any{"iss": []string{corp.URL, lab.URL}}}),
		"an issuer with a slash more":         corp.mint(order{User: "alice", Claims: map[string]any{"iss": corp.URL + "/"}}),
		"no issuer":                           corp.mint(order{User: "alice", Claims: map[string]any{"iss": nil}}),
		"the wrong audience":                  corp.mint(order{User: "alice", Audience: "sluice-console"}),
		"an audience that begins alike":       corp.mint(order{User: "alice", Audience: "sluice.example.com"}),
		"no audience":                         corp.mint(order{User: "alice", Claims: map[string]any{"aud": nil}}),
		"an empty audience":                   corp.mint(order{User: "alice", Claims: map[string]any{"aud": []string{}}}),
		"an audience that is an object":       corp.mint(order{User: "alice", Claims: map[string]any{"aud": map[string]any{"sluice": true}}}),
		"an expired token":                    corp.mint(order{User: "alice", Claims: map[string]any{"exp": behind}}),
		"no expiry":                           corp.mint(order{User: "alice", Claims: map[string]any{"exp": nil}}),
		"an expiry that is text":              corp.mint(order{User: "alice", Claims: map[string]any{"exp": "tomorrow"}}),
		"an expiry out of all bounds":         corp.mint(order{User: "alice", Claims: map[string]any{"exp": -1e300}}),
		"a token that is not valid yet":       corp.mint(order{User: "alice", Claims: map[string]any{"nbf": ahead}}),
		"four parts":                          valid + ".x",
		"two parts":                           parts[0] + "." + parts[1],
		"five parts, as encrypted":            valid + ".x.y",
		"JSON instead of the compact form":    fmt.Sprintf(`{"payload":%q,"protected":%q,"signature":%q}`, parts[1], parts[0], parts[2]),
		"a blank in it":                       parts[0] + ". " + parts[1] + "." + parts[2],
		"a key id that is a path":             forged(t, jose.RS256, own, map[string]any{"kid": "../../../../dev/null"}, claims),
		"a key id that is no text":            unsigned(t, map[string]any{"alg": "RS256", "kid": []int{1}}, claims, parts[2]),
		"16 KiB and a byte":                   corp.mint(order{User: "alice", Claims: map[string]any{"padding": strings.Repeat("x", 16<<10)}}),
		"17 KiB of no token":                  strings.Repeat("a.", 9<<10),
	} {
		t.Run(name, func(t *testing.T) {
			asks := g.of(t).caller(nil).with(token)
			for transport := range transports {
				if got := asks.known(transport); got != "UNAUTHENTICATED" {
					t.Errorf("%s: taken for %q", transport, got)
				}
			}
			if strings.Contains(g.log.String(), token) {
				t.Error("the credential is in the log")
			}
		})
	}
	if fetched.Load() > 0 {
		t.Error("the attacker's keys were fetched")
	}
	if got := g.caller(nil).with(valid).known("HTTP"); got != aliceOfCorp {
		t.Errorf("the valid token is taken for %q afterwards", got)
	}
}

func TestClaimsThatNameNobodyAreRefused(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	corp := startIssuer(t)
	g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", map[string]string{"user": "realm.user", "groups": "realm.groups"})))
	many := make([]string, 257)
	for n := range many {
		many[n] = fmt.Sprint("g", n)
	}
	long := strings.Repeat("x", 257)
	token := func(user, groups any) string {
		return corp.mint(order{User: "alice", Claims: map[string]any{"realm": map[string]any{"user": user, "groups": groups}}})
	}
	g.caller(nil).with(token("alice", "dev")).becomes("oidc:corp oidc:corp:alice [oidc:corp:dev]")
	for name, bearer := range map[string]string{
		"256 groups": token("alice", many[:256]), "a name of 256 bytes": token(long[:256], nil), "a group of 256 bytes": token("alice", []string{long[:256]}), "no groups": token("alice", nil),
	} {
		if got := g.caller(nil).with(bearer).known("HTTP"); !strings.HasPrefix(got, "oidc:corp oidc:corp:") {
			t.Errorf("%s: %q", name, got)
		}
	}
	for name, bearer := range map[string]string{
		"257 groups":                  token("alice", many),
		"a name of 257 bytes":         token(long, nil),
		"a group of 257 bytes":        token("alice", []string{long}),
		"an empty name":               token("", nil),
		"an empty group":              token("alice", []string{"dev", ""}),
		"no name":                     token(nil, nil),
		"a number as name":            token(7, nil),
		"true as name":                token(true, nil),
		"a list as name":              token([]string{"alice"}, nil),
		"an object as name":           token(map[string]any{"alice": 1}, nil),
		"a line break in the name":    token("alice\nroot", nil),
		"a zero byte in the name":     token("alice\x00", nil),
		"an override of direction":    token("alice\u202e", nil),
		"a line break in a group":     token("alice", []string{"dev\r\nops"}),
		"a number as groups":          token("alice", 7),
		"an object as groups":         token("alice", map[string]any{"dev": true}),
		"a number among groups":       token("alice", []any{"dev", 7}),
		"null among groups":           token("alice", []any{"dev", nil}),
		"a list among groups":         token("alice", []any{[]string{"dev"}}),
		"a path that is no object":    corp.mint(order{User: "alice", Claims: map[string]any{"realm": "alice"}}),
		"a path that is not there":    corp.mint(order{User: "alice", Claims: map[string]any{"realm": nil}}),
		"a list where an object goes": corp.mint(order{User: "alice", Claims: map[string]any{"realm": []any{map[string]any{"user": "alice"}}}}),
	} {
		t.Run(name, func(t *testing.T) {
			for transport := range transports {
				if got := g.of(t).caller(nil).with(bearer).known(transport); got != "UNAUTHENTICATED" {
					t.Errorf("%s: taken for %q", transport, got)
				}
			}
		})
	}
}

// TestAFloodOfKeyIDsAsksTheIssuerSeldom sends tokens of keys that nobody published.
func TestAFloodOfKeyIDsAsksTheIssuerSeldom(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	const flood = 1000
	corp := startIssuer(t)
	g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", nil)))
	alice := g.caller(nil).with(corp.token("alice"))
	alice.becomes(aliceOfCorp)
	own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	claims, before, begin := claimsOf(t, alice.bearer), corp.keyFetches(), time.Now()
	for n := range flood {
		token := forged(t, jose.ES256, own, map[string]any{"kid": fmt.Sprint("k", n)}, claims)
		if got := g.caller(nil).with(token).known("HTTP"); got != "UNAUTHENTICATED" {
			t.Fatalf("taken for %q", got)
		}
	}
	took, fetches := time.Since(begin), corp.keyFetches()-before
	t.Logf("%d tokens in %v: %d fetches of keys", flood, took.Round(time.Millisecond), fetches)
	if most := 5 + int(took/time.Second); fetches > most {
		t.Errorf("%d fetches of keys in %v, want at most %d", fetches, took, most)
	}
	// Who has the new key of a rotation is let in all the same.
	corp.rotate(false, "")
	bob := g.caller(nil).with(corp.token("bob"))
	n := flood
	redistest.Await(t, "the new key to be known in a flood", func() error {
		n++
		g.caller(nil).with(forged(t, jose.ES256, own, map[string]any{"kid": fmt.Sprint("k", n)}, claims)).known("HTTP")
		if got := bob.known("HTTP"); got != "oidc:corp oidc:corp:bob [oidc:corp:audit]" {
			return fmt.Errorf("taken for %q", got)
		}
		return nil
	})
}
