package e2e_test

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"strings"
	"testing"
)

// discovered are the endpoints of an issuer.
type discovered struct {
	Authorization string `json:"authorization_endpoint"`
	Token         string `json:"token_endpoint"`
	Device        string `json:"device_authorization_endpoint"`
	Keys          string `json:"jwks_uri"`
}

func (i *issuer) discover() (d discovered) {
	i.t.Helper()
	i.get(i.URL+"/.well-known/openid-configuration", &d)
	return d
}

// tokens is the answer of a token endpoint.
type tokens struct {
	ID      string `json:"id_token"`
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	Error   string `json:"error"`
}

// ask posts a form to the token endpoint.
func (i *issuer) ask(form url.Values) (out tokens) {
	i.t.Helper()
	res, err := http.PostForm(i.discover().Token, form)
	if err != nil {
		i.t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	if err := json.NewDecoder(res.Body).Decode(&out); err != nil {
		i.t.Fatal(err)
	}
	return out
}

// verifier is a PKCE code verifier, and challenge what is sent first.
const verifier = "a-verifier-of-forty-three-characters-or-more-"

func challenge() string {
	sum := sha256.Sum256([]byte(verifier))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// redirected logs a user in as a browser does, and returns where it is sent at last.
func (i *issuer) redirected(user string, params url.Values) *url.URL {
	i.t.Helper()
	jar, err := cookiejar.New(nil)
	if err != nil {
		i.t.Fatal(err)
	}
	var last *url.URL
	browser := http.Client{Jar: jar, CheckRedirect: func(req *http.Request, _ []*http.Request) error {
		last = req.URL
		if !strings.HasPrefix(req.URL.String(), i.URL) {
			return http.ErrUseLastResponse
		}
		return nil
	}}
	page, err := browser.Get(i.discover().Authorization + "?" + params.Encode())
	if err != nil {
		i.t.Fatal(err)
	}
	body, _ := io.ReadAll(page.Body)
	_ = page.Body.Close()
	if last == nil || last.Path != "/login" {
		i.t.Logf("%d %s", page.StatusCode, body)
		return last
	}
	res, err := browser.PostForm(last.String(), url.Values{"user": {user}})
	if err != nil {
		i.t.Fatal(err)
	}
	_ = res.Body.Close()
	return last
}

// claimsOf are the claims of a token, unverified.
func claimsOf(t *testing.T, token string) (claims map[string]any) {
	t.Helper()
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		t.Fatalf("%q is no JWT", token)
	}
	raw, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &claims); err != nil {
		t.Fatal(err)
	}
	return claims
}

func TestTheProviderLogsInByCodeWithPKCE(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	i := startIssuer(t, "-audience", "api")
	params := func(back, method string) url.Values {
		return url.Values{
			"client_id": {"sluice"}, "response_type": {"code"}, "scope": {"openid email offline_access"}, "state": {"s1"}, "nonce": {"n1"},
			"redirect_uri": {back}, "code_challenge": {challenge()}, "code_challenge_method": {method},
		}
	}
	for _, back := range []string{"http://127.0.0.1:3456/callback", "http://localhost:9/", "https://127.0.0.1:8443/login/back"} {
		at := i.redirected("alice", params(back, "S256"))
		if !strings.HasPrefix(at.String(), back) || at.Query().Get("state") != "s1" {
			t.Fatalf("sent to %v", at)
		}
		grant := url.Values{"grant_type": {"authorization_code"}, "client_id": {"sluice"}, "redirect_uri": {back}, "code": {at.Query().Get("code")}}
		if got := i.ask(grant); got.Error == "" {
			t.Error("a code was accepted without the verifier")
		}
		at = i.redirected("alice", params(back, "S256"))
		grant.Set("code", at.Query().Get("code"))
		grant.Set("code_verifier", verifier)
		got := i.ask(grant)
		id := claimsOf(t, got.ID)
		if id["email"] != "alice@example.com" || id["nonce"] != "n1" || id["iss"] != i.URL || id["sub"] != "alice" {
			t.Errorf("%v %+v", id, got)
		}
		if groups, _ := id["realm"].(map[string]any)["groups"].([]any); len(groups) != 2 {
			t.Errorf("%v", id)
		}
		if access := claimsOf(t, got.Access); len(access["aud"].([]any)) != 2 || access["email"] != "alice@example.com" {
			t.Errorf("%v", access)
		}
		again := i.ask(url.Values{"grant_type": {"refresh_token"}, "client_id": {"sluice"}, "refresh_token": {got.Refresh}})
		if again.Refresh == "" || again.Refresh == got.Refresh || claimsOf(t, again.ID)["sub"] != "alice" {
			t.Errorf("%+v", again)
		}
		if twice := i.ask(url.Values{"grant_type": {"refresh_token"}, "client_id": {"sluice"}, "refresh_token": {got.Refresh}}); twice.Error == "" {
			t.Error("a refresh token was accepted twice")
		}
	}
	for name, p := range map[string]url.Values{
		"without S256": params("http://127.0.0.1:1/", "plain"), "to another host": params("http://example.com:1/", "S256"),
	} {
		if at := i.redirected("alice", p); at != nil && (at.Query().Get("code") != "" || at.Host == "example.com:1") {
			t.Errorf("%s: %v", name, at)
		}
	}
}

func TestTheProviderLogsInADevice(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	i := startIssuer(t)
	res, err := http.PostForm(i.discover().Device, url.Values{"client_id": {"sluice"}, "scope": {"openid email offline_access"}})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = res.Body.Close() }()
	var device struct {
		Code string `json:"device_code"`
		User string `json:"user_code"`
		Page string `json:"verification_uri_complete"`
	}
	if err := json.NewDecoder(res.Body).Decode(&device); err != nil {
		t.Fatal(err)
	}
	grant := url.Values{"grant_type": {"urn:ietf:params:oauth:grant-type:device_code"}, "client_id": {"sluice"}, "device_code": {device.Code}}
	if got := i.ask(grant); got.Error != "authorization_pending" {
		t.Errorf("%+v", got)
	}
	page, err := http.PostForm(device.Page, url.Values{"user": {"bob"}})
	if err != nil || page.StatusCode != http.StatusOK {
		t.Fatalf("%v %v", page, err)
	}
	_ = page.Body.Close()
	got := i.ask(grant)
	if got.Refresh == "" || claimsOf(t, got.ID)["sub"] != "bob" {
		t.Errorf("%+v", got)
	}
}

func TestTheProviderDoesWhatTestsAskFor(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	i := startIssuer(t, "-lifetime", "1m")
	claims := claimsOf(t, i.mint(order{User: "carol", Lifetime: "90s", Claims: map[string]any{"groups": 7, "nbf": nil}}))
	if _, ok := claims["nbf"]; ok || claims["groups"] != 7.0 || claims["exp"].(float64)-claims["iat"].(float64) != 90 || claims["aud"] != "sluice" {
		t.Errorf("%v", claims)
	}
	count := func() int {
		var set struct{ Keys []any }
		i.get(i.discover().Keys, &set)
		return len(set.Keys)
	}
	i.rotate(true, "ES256")
	if n := count(); n != 2 {
		t.Errorf("%d keys, want the old and the new", n)
	}
	i.rotate(false, "")
	if n := count(); n != 1 || i.keyFetches() != 2 {
		t.Errorf("%d keys after %d fetches", n, i.keyFetches())
	}
	before := i.discover()
	i.down()
	if _, err := http.Get(i.URL); err == nil {
		t.Error("a provider that is down answers")
	}
	i.up()
	if i.discover() != before || count() != 1 {
		t.Error("it came back as another")
	}
}
