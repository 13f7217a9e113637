package e2e_test

import (
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// trusting is a client that trusts an authority, and has a certificate or none.
func (g *gateway) trusting(pool *x509.CertPool, cert *tls.Certificate) *caller {
	config := &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return g.caller(config)
}

// stale waits until the metric of a file of credentials has a value.
func (c *caller) stale(setting string, value int) {
	c.t.Helper()
	want := fmt.Sprintf("sluice_credentials_stale{setting=%q} %d", setting, value)
	redistest.Await(c.t, want, func() error {
		req, err := http.NewRequestWithContext(c.t.Context(), http.MethodGet, c.address+"/metrics", nil)
		if err != nil {
			return err
		}
		req.Header.Set("Authorization", "Bearer "+c.bearer)
		res, err := c.requests.Do(req)
		if err != nil {
			return err
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil || !strings.Contains(string(body), want) {
			return fmt.Errorf("%d %v", res.StatusCode, err)
		}
		return nil
	})
}

// replace writes a file as renewals do, whole.
func replace(t *testing.T, path string, data []byte) {
	t.Helper()
	if err := os.WriteFile(path+".new", data, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestCertificatesAreRenewedUnderConnectedClients(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	before, after, tokens := newAuthority(t), newAuthority(t), newTokenFile(t)
	ci := tokens.add("ci", "-", time.Time{})
	cert, key := before.files()
	clients := filepath.Join(t.TempDir(), "clients.crt")
	replace(t, clients, read(t, before.File))
	g := start(t, "", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", clients, "--tokens", tokens.path)
	worker, successor := before.issue(named{user: "worker"}), after.issue(named{user: "worker"})
	old := g.trusting(before.Pool, worker)
	old.becomes("cert cert:worker []")
	program := g.trusting(before.Pool, nil).with(ci)
	open := program.follows()

	// A key without its certificate: the old pair counts.
	newCert, newKey := after.files()
	replace(t, key, read(t, newKey))
	program.stale("tls-cert", 1)
	if got := g.trusting(before.Pool, nil).with(ci).known("HTTP"); got != "token token:ci []" {
		t.Errorf("with half of a renewal: %q", got)
	}
	replace(t, cert, read(t, newCert))
	replace(t, clients, read(t, after.File))
	program.stale("tls-cert", 0)
	g.trusting(after.Pool, successor).becomes("cert cert:worker []")
	if got := g.trusting(after.Pool, nil).with(ci).known("WebSocket by header"); got != "token token:ci []" {
		t.Errorf("after the renewal: %q", got)
	}
	for name, c := range map[string]*caller{"the old certificate of the gateway": g.trusting(before.Pool, nil), "the old authority of clients": g.trusting(after.Pool, worker)} {
		if res, err := c.requests.Get(c.address + "/healthz"); err == nil {
			_ = res.Body.Close()
			t.Errorf("%s is still good", name)
		}
	}
	program.expectEvents(open, "renewed")
	past := g.caller(&tls.Config{RootCAs: after.Pool, MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11})
	if res, err := past.requests.Get(g.address + "/healthz"); err == nil {
		_ = res.Body.Close()
		t.Error("TLS 1.1 is accepted")
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}

func TestAFileOfTokensThatCannotBeReadEndsNobody(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	tokens := newTokenFile(t)
	ci, ops := tokens.add("ci", "-", time.Time{}), tokens.add("ops", "-", time.Time{})
	g := start(t, "", "--tokens", tokens.path)
	program := g.caller(nil).with(ci)
	open := program.follows()
	good := read(t, tokens.path)

	if err := os.Chmod(tokens.path, 0o644); err != nil {
		t.Fatal(err)
	}
	program.stale("tokens", 1)
	if err := os.Remove(tokens.path); err != nil {
		t.Fatal(err)
	}
	program.expectEvents(open, "without-a-file")
	replace(t, tokens.path, good)
	program.stale("tokens", 0)

	// A damaged line takes no other with it.
	lines := strings.Split(string(good), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "ops ") {
			lines[i] = strings.Replace(line, "sha256:", "md5:", 1)
		}
	}
	replace(t, tokens.path, []byte(strings.Join(lines, "\n")))
	g.caller(nil).with(ops).becomes("UNAUTHENTICATED")
	program.expectEvents(open, "beside-a-damaged-line")
	if !g.log.await("a token is passed over") {
		t.Error("the log does not tell the damaged line")
	}
	for _, secret := range []string{ci, ops} {
		if strings.Contains(g.log.String(), secret) {
			t.Error("a token is in the log")
		}
	}
}
