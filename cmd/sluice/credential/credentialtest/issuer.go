// Package credentialtest has an OpenID Connect issuer for tests of logins. Each login succeeds without any action of a
// user.
package credentialtest

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

// ClientID is the only client that the issuer knows.
const ClientID = "cli"

// Issuer is a running issuer. Its fields may be set before the first request.
type Issuer struct {
	*httptest.Server
	// Lifetime is the lifetime of ID tokens. Default: an hour.
	Lifetime time.Duration
	// Deny is the error with which logins and refreshes are refused; empty for none.
	Deny string
	// Metadata has values that replace the fields with the same names in the discovery document.
	Metadata map[string]string
	// Answer has query parameters that are set in the redirects to the client.
	Answer url.Values

	mu        sync.Mutex // guards what follows
	issued    int
	challenge string
	polls     int
	refresh   string // the one refresh token that is valid
	revoked   []string
}

// Start runs an issuer until the test ends.
func Start(t *testing.T) *Issuer {
	t.Helper()
	i := &Issuer{Lifetime: time.Hour}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /.well-known/openid-configuration", i.discovery)
	mux.HandleFunc("GET /authorize", i.authorize)
	mux.HandleFunc("POST /token", i.token)
	mux.HandleFunc("POST /device", i.device)
	mux.HandleFunc("POST /revoke", i.revoke)
	i.Server = httptest.NewServer(mux)
	t.Cleanup(i.Close)
	return i
}

// Issuer returns the issuer in the form in which a gateway announces it.
func (i *Issuer) Issuer() credential.Issuer {
	return credential.Issuer{Name: "corp", URL: i.URL, ClientID: ClientID, Scopes: []string{"openid"}}
}

// Revoked returns the refresh tokens that were revoked.
func (i *Issuer) Revoked() []string {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.revoked
}

// Issued returns the number of ID tokens that were issued. The n-th refresh token is refresh-n.
func (i *Issuer) Issued() int {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.issued
}

// Token returns an ID token with the claims n and exp. Its signature is invalid.
func Token(n int, expires time.Time) string {
	claims := fmt.Sprintf(`{"n":%d,"exp":%d}`, n, expires.Unix())
	return "e30." + base64.RawURLEncoding.EncodeToString([]byte(claims)) + ".c2ln"
}

func answer(w http.ResponseWriter, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(body)
}

func (i *Issuer) discovery(w http.ResponseWriter, _ *http.Request) {
	m := map[string]any{
		"scopes_supported": []string{"openid", "offline_access"},
		"issuer":           i.URL, "authorization_endpoint": i.URL + "/authorize", "token_endpoint": i.URL + "/token",
		"device_authorization_endpoint": i.URL + "/device", "revocation_endpoint": i.URL + "/revoke",
	}
	for name, value := range i.Metadata {
		m[name] = value
	}
	answer(w, http.StatusOK, m)
}

func (i *Issuer) authorize(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := r.URL.Query()
	back, err := url.Parse(q.Get("redirect_uri"))
	if err != nil || back.Hostname() != "127.0.0.1" || back.Path != "/callback" || q.Get("client_id") != ClientID ||
		q.Get("response_type") != "code" ||
		q.Get("scope") != "openid offline_access" ||
		q.Get("code_challenge_method") != "S256" {
		http.Error(w, "not a request of the command line", http.StatusBadRequest)
		return
	}
	i.challenge = q.Get("code_challenge")
	out := url.Values{"state": {q.Get("state")}}
	if i.Deny != "" {
		out.Set("error", i.Deny)
		out.Set("error_description", "not today")
	} else {
		out.Set("code", "the-code")
	}
	for name, values := range i.Answer {
		out[name] = values
	}
	back.RawQuery = out.Encode()
	http.Redirect(w, r, back.String(), http.StatusFound)
}

func (i *Issuer) token(w http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	code, status := i.refusal(r), http.StatusBadRequest
	if code == "temporarily_unavailable" {
		status = http.StatusServiceUnavailable
	}
	if code != "" {
		answer(w, status, map[string]string{"error": code})
		return
	}
	i.issued++
	i.refresh = fmt.Sprintf("refresh-%d", i.issued)
	answer(w, http.StatusOK, map[string]any{
		"access_token": "access", "token_type": "Bearer", "refresh_token": i.refresh,
		"id_token": Token(i.issued, time.Now().Add(i.Lifetime)),
	})
}

// refusal returns the error code for a request for tokens; empty if the request is accepted.
func (i *Issuer) refusal(r *http.Request) string {
	if r.PostFormValue("client_id") != ClientID {
		return "invalid_client"
	}
	switch r.PostFormValue("grant_type") {
	case "authorization_code":
		sum := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
		if r.PostFormValue("code") != "the-code" || base64.RawURLEncoding.EncodeToString(sum[:]) != i.challenge {
			return "invalid_grant"
		}
	case "refresh_token":
		if i.Deny != "" {
			return i.Deny
		}
		if r.PostFormValue("refresh_token") != i.refresh {
			return "invalid_grant"
		}
	case "urn:ietf:params:oauth:grant-type:device_code":
		switch i.polls++; {
		case i.Deny != "":
			return i.Deny
		case i.polls == 1:
			return "authorization_pending"
		}
	default:
		return "unsupported_grant_type"
	}
	return ""
}

func (i *Issuer) device(w http.ResponseWriter, _ *http.Request) {
	answer(w, http.StatusOK, map[string]any{
		"device_code": "device", "user_code": "WDJB-MJHT", "verification_uri": i.URL + "/type-it-here", "expires_in": 60, "interval": 1,
	})
}

func (i *Issuer) revoke(_ http.ResponseWriter, r *http.Request) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.revoked = append(i.revoked, r.PostFormValue("token"))
}
