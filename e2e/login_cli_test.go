package e2e_test

import (
	"bufio"
	"crypto"
	"crypto/rand"
	"crypto/rsa"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math/big"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// loginService is an OpenID Connect issuer that logs ada in at once. Its refresh tokens can be used once.
type loginService struct {
	*httptest.Server
	key       *rsa.PrivateKey
	lifetime  time.Duration
	challenge string
	// refreshed gets a value for each refresh.
	refreshed chan bool
	issued    int
}

func startLoginService(t *testing.T, cert, key string, lifetime time.Duration) *loginService {
	t.Helper()
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	s := &loginService{lifetime: lifetime, refreshed: make(chan bool, 100)}
	if s.key, err = rsa.GenerateKey(rand.Reader, 2048); err != nil {
		t.Fatal(err)
	}
	mux := http.NewServeMux()
	s.Server = httptest.NewUnstartedServer(mux)
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}}
	s.StartTLS()
	t.Cleanup(s.Close)
	mux.HandleFunc("GET /.well-known/openid-configuration", func(w http.ResponseWriter, _ *http.Request) {
		asJSON(w, map[string]any{
			"issuer": s.URL, "authorization_endpoint": s.URL + "/authorize", "token_endpoint": s.URL + "/token", "jwks_uri": s.URL + "/keys",
			"id_token_signing_alg_values_supported": []string{"RS256"}, "scopes_supported": []string{"openid", "offline_access"},
		})
	})
	mux.HandleFunc("GET /keys", func(w http.ResponseWriter, _ *http.Request) {
		public := map[string]string{"kty": "RSA", "kid": "k", "use": "sig", "alg": "RS256", "n": base64URL(s.key.N.Bytes()), "e": base64URL(big.NewInt(int64(s.key.E)).Bytes())}
		asJSON(w, map[string]any{"keys": []any{public}})
	})
	mux.HandleFunc("GET /authorize", func(w http.ResponseWriter, r *http.Request) {
		q := r.URL.Query()
		s.challenge = q.Get("code_challenge")
		http.Redirect(w, r, q.Get("redirect_uri")+"?"+url.Values{"code": {"c"}, "state": {q.Get("state")}}.Encode(), http.StatusFound)
	})
	mux.HandleFunc("POST /token", func(w http.ResponseWriter, r *http.Request) { s.token(t, w, r) })
	return s
}

func (s *loginService) token(t *testing.T, w http.ResponseWriter, r *http.Request) {
	verifier := sha256.Sum256([]byte(r.PostFormValue("code_verifier")))
	byCode := r.PostFormValue("code") == "c" && base64URL(verifier[:]) == s.challenge
	byRefresh := s.issued > 0 && r.PostFormValue("refresh_token") == fmt.Sprintf("r%d", s.issued)
	if !byCode && !byRefresh {
		t.Errorf("a request for a token has neither the code nor the last refresh token: %v", r.PostForm)
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	s.issued++
	now := time.Now()
	claims, err := json.Marshal(map[string]any{
		"iss": s.URL, "aud": "sluice", "sub": "ada", "groups": []string{"dev"}, "iat": now.Unix(), "exp": now.Add(s.lifetime).Unix(), "n": s.issued,
	})
	if err != nil {
		t.Error(err)
	}
	signed := base64URL([]byte(`{"alg":"RS256","kid":"k"}`)) + "." + base64URL(claims)
	sum := sha256.Sum256([]byte(signed))
	signature, err := rsa.SignPKCS1v15(rand.Reader, s.key, crypto.SHA256, sum[:])
	if err != nil {
		t.Error(err)
	}
	asJSON(w, map[string]any{"access_token": "a", "token_type": "Bearer", "id_token": signed + "." + base64URL(signature), "refresh_token": fmt.Sprintf("r%d", s.issued)})
	if byRefresh {
		s.refreshed <- true
	}
}

func base64URL(b []byte) string { return base64.RawURLEncoding.EncodeToString(b) }

func asJSON(w http.ResponseWriter, body any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(body)
}

// logInByBrowser runs sluice login, and opens the page that it names.
func logInByBrowser(t *testing.T, authority *x509.CertPool) string {
	t.Helper()
	path, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "login")
	var out strings.Builder
	cmd.Stdout = &out
	said, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop()
	browser := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: authority}, DisableKeepAlives: true}}
	all := ""
	for lines := bufio.NewScanner(said); lines.Scan(); {
		all += lines.Text() + "\n"
		if !strings.HasPrefix(lines.Text(), "https://") {
			continue
		}
		res, err := browser.Get(lines.Text())
		if err != nil {
			t.Fatal(err)
		}
		_ = res.Body.Close()
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("login: %v %s", err, all)
	}
	return out.String()
}

func TestALoginLastsLongerThanItsToken(t *testing.T) {
	sameOnEachStore(t)
	dir := ownContexts(t)
	ca, cert, key, _, _ := certificates(t, dir)
	const lifetime = 4 * time.Second
	issuer := startLoginService(t, cert, key, lifetime)
	oidc := filepath.Join(dir, "oidc.yaml")
	put(t, oidc, fmt.Sprintf("issuers:\n  - {name: corp, url: %q, audience: sluice, ca: %q, clockSkew: 1s}\n", issuer.URL, ca))
	g := start(t, "", "--tls-cert", cert, "--tls-key", key, "--oidc", oidc)
	done(t, "context", "set", "prod", "--server", g.address, "--ca", ca)

	authority := x509.NewCertPool()
	pem, err := os.ReadFile(ca)
	if err != nil || !authority.AppendCertsFromPEM(pem) {
		t.Fatal(err)
	}
	if out := logInByBrowser(t, authority); out != "logged in to prod as oidc:corp:ada\n" {
		t.Errorf("%s", out)
	}
	if out := done(t, "auth", "whoami"); !strings.Contains(out, "oidc:corp:ada   oidc:corp   oidc:corp:dev   2") {
		t.Errorf("%s", out)
	}
	watch := g.run("watch", "networks", "-o", "json")
	watch.until("IN_SYNC")
	for len(issuer.refreshed) > 0 {
		<-issuer.refreshed
	}
	select {
	case <-issuer.refreshed: // by the watch, whose token has ended; nobody else runs
	case <-time.After(patience):
		t.Fatal("the watch has not refreshed its token")
	}
	if _, errOut, code := sluice(t, network("net-a", "web", 1500), "apply", "-f", "-"); code != 0 {
		t.Errorf("exit %d %s", code, errOut)
	}
	watch.until("ADDED", `"net-a"`)
	done(t, "logout")
	if _, errOut, code := sluice(t, "", "auth", "whoami"); code != 1 || !strings.Contains(errOut, "UNAUTHENTICATED; sluice login") {
		t.Errorf("after the logout: exit %d %s", code, errOut)
	}
}
