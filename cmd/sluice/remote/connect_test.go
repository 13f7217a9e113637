package remote_test

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestFlagsTakePrecedenceOverTheEnvironmentAndThatOverTheContext(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	g, other := commandtest.StartGateway(t), commandtest.StartGateway(t)
	one, two, three := commandtest.WriteFile(t, folder, "one", "one\n"), commandtest.WriteFile(t, folder, "two", "two\n"), commandtest.WriteFile(t, folder, "three", "three\n")
	commandtest.Must(t, newRoot, "context", "set", "a", "--server", g.URL, "--token-file", one)
	commandtest.Must(t, newRoot, "context", "set", "b", "--server", g.URL, "--", "echo", "by-command")
	if got := g.Authorization(t, newRoot); got != "Bearer one" {
		t.Errorf("the current context: %s", got)
	}
	if got := g.Authorization(t, newRoot, "--context", "b"); got != "Bearer by-command" {
		t.Errorf("another context: %s", got)
	}
	t.Setenv("SLUICE_CONTEXT", "b")
	if got := g.Authorization(t, newRoot); got != "Bearer by-command" {
		t.Errorf("the context of the environment: %s", got)
	}
	t.Setenv("SLUICE_TOKEN", "of-the-environment")
	if got := g.Authorization(t, newRoot); got != "Bearer of-the-environment" {
		t.Errorf("SLUICE_TOKEN: %s", got)
	}
	t.Setenv("SLUICE_TOKEN_FILE", two)
	if got := g.Authorization(t, newRoot); got != "Bearer two" {
		t.Errorf("SLUICE_TOKEN_FILE: %s", got)
	}
	if got := g.Authorization(t, newRoot, "--token-file", three); got != "Bearer three" {
		t.Errorf("--token-file: %s", got)
	}
	if got := g.Authorization(t, newRoot, "--token-file", ""); got != "" {
		t.Errorf("no token is wanted: %s", got)
	}
	for _, name := range []string{"SLUICE_CONTEXT", "SLUICE_TOKEN", "SLUICE_TOKEN_FILE"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := other.Authorization(t, newRoot, "--server", other.URL); got != "" {
		t.Errorf("a token went to a server that it is not for: %s", got)
	}
	if got := other.Authorization(t, newRoot, "--server", other.URL, "--context", "a"); got != "Bearer one" {
		t.Errorf("a context that is named with a server: %s", got)
	}
	t.Setenv("SLUICE_SERVER", other.URL)
	if got := other.Authorization(t, newRoot, "--context", "a"); got != "" {
		t.Errorf("a token went to the server of the environment: %s", got)
	}
	if err := os.Unsetenv("SLUICE_SERVER"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_CONTEXT", "a")
	if got := other.Authorization(t, newRoot, "--server", other.URL); got != "" {
		t.Errorf("a token of the environment's context went elsewhere: %s", got)
	}
	if err := os.Unsetenv("SLUICE_CONTEXT"); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "api-resources", "--context", "c"); code != 2 || !strings.Contains(errOut, "known: a, b") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestWhoIsNotKnownIsToldWhatToDo(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	g := commandtest.StartGateway(t)
	g.Accepts = "good"
	_, errOut, code := commandtest.Run(t, newRoot, "api-resources", "--server", g.URL, "--token-file", commandtest.WriteFile(t, folder, "bad", "bad"))
	if code != 1 || errOut != "sluice: the credential is not valid (UNAUTHENTICATED; sluice login, or name a token with --token-file)\n" {
		t.Errorf("exit %d %s", code, errOut)
	}
	_, errOut, code = commandtest.Run(t, newRoot, "get", "networks", "--server", "http://gateway.example.com", "--token-file", commandtest.WriteFile(t, folder, "good", "good"))
	if code != 2 || !strings.Contains(errOut, "a token is sent by https only") || strings.Contains(errOut, "good") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestAContextHasTheAuthorityAndTheCertificate(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	g := &commandtest.Gateway{}
	g.Server = httptest.NewUnstartedServer(g)
	g.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	g.StartTLS()
	defer g.Close()
	pair := g.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := commandtest.WriteFile(t, folder, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	keyFile := commandtest.WriteFile(t, folder, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	commandtest.Must(t, newRoot, "context", "set", "tls", "--server", g.URL, "--ca", cert, "--client-cert", cert, "--client-key", keyFile)
	g.Authorization(t, newRoot)
	if _, errOut, code := commandtest.Run(t, newRoot, "api-resources", "--ca", keyFile); code != 2 || !strings.Contains(errOut, "there is no certificate (PEM) in it") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "api-resources", "--server", "http://127.0.0.1:1", "--ca", cert); code != 2 || !strings.Contains(errOut, "no effect without https") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := commandtest.Run(t, newRoot, "api-resources"); code != 2 || !strings.Contains(errOut, "client-cert, client-key: ") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestConnect_WarnsOnceOfADeprecatedVersion(t *testing.T) {
	commandtest.FreshContexts(t)
	g := commandtest.StartGateway(t)
	g.Deprecation, g.Sunset = "@1769817600", "Fri, 31 Jul 2026 00:00:00 GMT"
	args := []string{"api-resources", "--api", "v1.0", "--server", g.URL}
	out, errOut, code := commandtest.Run(t, newRoot, args...)
	want := "sluice: warning: version v1.0 of the API is deprecated from 2026-01-31 on, and may be withdrawn after 2026-07-31; " +
		"see " + g.URL + "/versions\n"
	if code != 0 || errOut != want || strings.Contains(out, "deprecated") {
		t.Errorf("exit %d %s%s", code, out, errOut)
	}
	out, errOut, code = commandtest.Run(t, newRoot, append([]string{"__complete"}, append(args, "")...)...)
	if code != 0 || strings.Contains(out+errOut, "deprecated") {
		t.Errorf("a completion: exit %d %s%s", code, out, errOut)
	}
}
