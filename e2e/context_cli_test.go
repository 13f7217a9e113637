package e2e_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// done runs a command line that must succeed.
func done(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := sluice(t, "", args...)
	if code != 0 {
		t.Fatalf("sluice %v: exit %d %s", args, code, errOut)
	}
	return out
}

// ownContexts gives a test its own file of contexts, and returns its folder.
func ownContexts(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	t.Setenv("SLUICE_CONTEXTS", filepath.Join(dir, "contexts.yaml"))
	t.Setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path="+filepath.Join(dir, "no-bus")) // there is no keyring
	return dir
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// knows waits until the gateway of the context has read in its file whether a token is valid.
func knows(t *testing.T, token string, valid bool) {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		_, errOut, code := sluice(t, "", "auth", "whoami", "--token-file", token)
		if (code == 0) == valid {
			return
		}
		if time.Now().After(end) {
			t.Fatalf("exit %d %s", code, errOut)
		}
	}
}

// TestACommandLineThatFollowsOutlivesItsToken: its file has another one by the time the gateway revokes the first.
func TestACommandLineThatFollowsOutlivesItsToken(t *testing.T) {
	sameOnEachStore(t)
	dir := ownContexts(t)
	tokens, mine, old := filepath.Join(dir, "tokens"), filepath.Join(dir, "mine"), filepath.Join(dir, "old")
	first := done(t, "token", "create", "first", "--group", "ops", "--ttl", "1h", "--tokens", tokens)
	put(t, mine, first)
	put(t, old, first)
	g := start(t, "", "--tokens", tokens)
	done(t, "context", "set", "prod", "--server", g.address, "--token-file", mine)
	if out := done(t, "auth", "whoami"); !strings.Contains(out, "token:first   token    token:ops   2") {
		t.Errorf("%s", out)
	}
	if out, errOut, code := sluice(t, network("net-a", "web", 1500), "apply", "-f", "-"); code != 0 {
		t.Fatalf("exit %d %s %s", code, out, errOut)
	}
	watch := g.run("watch", "networks", "-o", "json")
	watch.until(`"net-a"`)
	watch.until(`IN_SYNC`)

	put(t, mine, done(t, "token", "create", "second", "--tokens", tokens))
	knows(t, mine, true)
	done(t, "token", "revoke", "first", "--tokens", tokens)
	knows(t, old, false)
	if _, errOut, code := sluice(t, network("net-b", "web", 1500), "apply", "-f", "-"); code != 0 {
		t.Fatalf("exit %d %s", code, errOut)
	}
	watch.until("ADDED", `"net-b"`)
	if out := done(t, "auth", "whoami"); !strings.Contains(out, "token:second   token    -        never") {
		t.Errorf("%s", out)
	}

	done(t, "token", "revoke", "second", "--tokens", tokens)
	watch.until("the credential was revoked (UNAUTHENTICATED; sluice login, or name a token with --token-file)")
	if _, errOut, code := sluice(t, network("net-d", "web", 1500)+"---\n"+network("net-e", "web", 1500), "apply", "-f", "-"); code != 1 || strings.Count(errOut, "UNAUTHENTICATED") != 1 {
		t.Errorf("exit %d %s", code, errOut)
	}
	if strings.Contains(g.log.String(), "sluice_") {
		t.Errorf("a token is in the log:\n%s", g.log)
	}
}

func TestTheShellCompletesWithTheCredentialOfTheContext(t *testing.T) {
	dir := ownContexts(t)
	tokens, mine := filepath.Join(dir, "tokens"), filepath.Join(dir, "mine")
	put(t, mine, done(t, "token", "create", "me", "--tokens", tokens))
	g := start(t, "", "--tokens", tokens)
	done(t, "context", "set", "prod", "--server", g.address, "--", "cat", mine)
	if out := done(t, "__complete", "get", "netw"); !strings.Contains(out, "\nnetworks\n") {
		t.Errorf("%q", out)
	}
	done(t, "context", "set", "prod", "--", "sh", "-c", "echo complaint >&2; exit 1")
	if out, errOut, code := sluice(t, "", "__complete", "get", "netw"); code != 0 || out != ":4\n" || strings.Contains(errOut, "complaint") {
		t.Errorf("exit %d %q %q", code, out, errOut)
	}
}

// certificates makes an authority, and certificates of a gateway on loopback and of a client, as PEM files.
func certificates(t *testing.T, dir string) (ca, cert, key, clientCert, clientKey string) {
	t.Helper()
	serial := int64(0)
	var authority *x509.Certificate
	var signer *ecdsa.PrivateKey
	make := func(name string, template x509.Certificate) (certFile, keyFile string) {
		own, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
		if err != nil {
			t.Fatal(err)
		}
		serial++
		template.SerialNumber, template.NotBefore, template.NotAfter = big.NewInt(serial), time.Now().Add(-time.Hour), time.Now().Add(time.Hour)
		if authority == nil {
			authority, signer = &template, own
		}
		der, err := x509.CreateCertificate(rand.Reader, &template, authority, &own.PublicKey, signer)
		if err != nil {
			t.Fatal(err)
		}
		secret, err := x509.MarshalPKCS8PrivateKey(own)
		if err != nil {
			t.Fatal(err)
		}
		certFile, keyFile = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
		put(t, certFile, string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
		put(t, keyFile, string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})))
		return certFile, keyFile
	}
	ca, _ = make("ca", x509.Certificate{Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign})
	cert, key = make("gateway", x509.Certificate{IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}})
	clientCert, clientKey = make("client", x509.Certificate{Subject: pkix.Name{CommonName: "ada", Organization: []string{"ops"}}, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}})
	return ca, cert, key, clientCert, clientKey
}

func TestAContextWithACertificateReachesAGatewayByTLS(t *testing.T) {
	dir := ownContexts(t)
	ca, cert, key, clientCert, clientKey := certificates(t, dir)
	g := start(t, "", "--tls-cert", cert, "--tls-key", key, "--tls-client-ca", ca)
	done(t, "context", "set", "prod", "--server", g.address, "--ca", ca, "--client-cert", clientCert, "--client-key", clientKey)
	if out := done(t, "auth", "whoami"); !strings.Contains(out, "cert:ada   cert     cert:ops") {
		t.Errorf("%s", out)
	}
	watch := g.run("watch", "networks", "-o", "json")
	watch.until("IN_SYNC")
	if _, errOut, code := g.cli("", "auth", "whoami", "--client-cert", "", "--client-key", ""); code != 1 || !strings.Contains(errOut, "UNAUTHENTICATED") {
		t.Errorf("without a certificate: exit %d %s", code, errOut)
	}
	if _, errOut, code := g.cli("", "auth", "whoami", "--ca", ""); code != 1 || !strings.Contains(errOut, "an authority that is not trusted here") {
		t.Errorf("without the authority: exit %d %s", code, errOut)
	}
}
