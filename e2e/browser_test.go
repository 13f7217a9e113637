//go:build clients

package e2e_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// browserSuites are those that need Chromium: the page, its logins, one that is reloaded
// while it listens, pages of other origins, the gateway behind a proxy with TLS, the React example, pages with
// the caches of other people's clients, live lists in these pages, and GraphQL Playground and Altair.
var browserSuites = []string{"browser", "login", "reload", "foreign", "example", "caches", "proxy", "pairs", "ides"}

func TestBrowser(t *testing.T) {
	needClients(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make browser` installs it", err)
	}
	for _, name := range browserSuites {
		s := suite{file: filepath.Join(clients, name+".test.mjs"), env: []string{"SLUICE_CHROMIUM=" + chromium}}
		if name == "foreign" || name == "example" || name == "ides" {
			port := freePort(t)
			s.env = append(s.env, "SLUICE_PAGES="+port)
			s.args = []string{"--allowed-hosts", "gateway.test", "--allowed-origins", "http://friend.test:" + port + ",http://127.0.0.1:" + port}
		}
		if name == "proxy" {
			needProxy(t, &s)
		}
		if name == "login" {
			needLogin(t, &s)
		}
		if name == "caches" {
			s.args = []string{"--catalogue", filepath.Join(clients, name)}
		}
		t.Run(name, s.run)
	}
}

// needProxy names Caddy, which ends TLS for the gateway, and two ports for its sites.
func needProxy(t *testing.T, s *suite) {
	t.Helper()
	caddy, err := exec.LookPath("caddy")
	if err != nil {
		t.Fatalf("%v; `make browser` installs it", err)
	}
	s.env = append(s.env, "SLUICE_CADDY="+caddy, "SLUICE_TLS="+freePort(t), "SLUICE_PAGES="+freePort(t))
	s.args = []string{"--allowed-hosts", "gateway.test"}
}

// needLogin makes the gateway of a suite need a credential: a token of a file that the suite may change, a
// login at an issuer, or the headers of a proxy on this machine.
func needLogin(t *testing.T, s *suite) {
	t.Helper()
	i := startIssuer(t)
	dir, token := t.TempDir(), "sluice_"+strings.Repeat("a", 43)
	hash := sha256.Sum256([]byte(token))
	files := map[string]string{
		"tokens": fmt.Sprintf("ci sha256:%x ops,dev 2099-12-24T10:00:00Z\n", hash),
		"oidc":   fmt.Sprintf("issuers:\n  - {name: corp, url: %q, audience: sluice, clockSkew: 0s, scopes: [openid, email, offline_access]}\n", i.URL),
	}
	for name, content := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s.args = []string{"--tokens", filepath.Join(dir, "tokens"), "--oidc", filepath.Join(dir, "oidc"), "--trust-proxy", "127.0.0.1", "--admin-group", "system:authenticated"}
	s.env = append(s.env, "SLUICE_TOKEN="+token, "SLUICE_TOKENS="+filepath.Join(dir, "tokens"), "SLUICE_ISSUER="+i.URL, "SLUICE_ISSUER_CONTROL="+i.Control)
}
