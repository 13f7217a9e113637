package main

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

// command runs a command line and returns what it printed.
func command(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o, e strings.Builder
	code = run(t.Context(), args, streams{in: strings.NewReader(""), out: &o, err: &e})
	return o.String(), e.String(), code
}

// must runs one that succeeds.
func must(t *testing.T, args ...string) string {
	t.Helper()
	out, errOut, code := command(t, args...)
	if code != 0 {
		t.Fatalf("sluice %v: exit %d %s", args, code, errOut)
	}
	return out
}

// fresh gives a test its own file of contexts, and returns its folder.
func fresh(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	t.Setenv(contextsVariable, filepath.Join(folder, "contexts.yaml"))
	return folder
}

// aGateway has one kind. It notes what it is asked with.
type aGateway struct {
	*httptest.Server
	authorization []string
	// accepts is the only token that is accepted; empty accepts everybody, and * everybody with one.
	accepts string
	issuers []credential.Issuer
}

func (g *aGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if r.URL.Path == "/login" {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuers": g.issuers})
		return
	}
	token := r.Header.Get("Authorization")
	g.authorization = append(g.authorization, token)
	if g.accepts == "*" && token == "" || g.accepts != "*" && g.accepts != "" && token != "Bearer "+g.accepts {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(w, `{"errors":[{"message":"the credential is not valid","extensions":{"code":"UNAUTHENTICATED"}}]}`)
		return
	}
	_, _ = fmt.Fprint(w, `{"data":{"viewer":{"name":"oidc:corp:ada","source":"oidc:corp","groups":["oidc:corp:dev"],"expiresAt":null},"kinds":[{"name":"Network","plural":"networks","singular":"network"}]}}`)
}

func startGateway(t *testing.T) *aGateway {
	t.Helper()
	g := &aGateway{}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// asked is what the gateway was sent by a command, which must reach it.
func (g *aGateway) asked(t *testing.T, args ...string) string {
	t.Helper()
	g.authorization = nil
	must(t, append([]string{"api-resources"}, args...)...)
	return strings.Join(g.authorization, ", ")
}

func file(t *testing.T, folder, name, text string) string {
	t.Helper()
	path := filepath.Join(folder, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestContextsAreKeptAndListed(t *testing.T) {
	folder := fresh(t)
	if out := must(t, "context", "set", "prod", "--server", "https://ada:secret@prod.example.com", "-n", "web", "--ca", "ca.pem"); out != "context prod is set, and is the current one\n" {
		t.Errorf("%q", out)
	}
	must(t, "context", "set", "test", "--server", "http://127.0.0.1:1", "--", "print-token", "-x")
	must(t, "context", "set", "prod", "--token-file", "token")
	if out := must(t, "context", "list"); out != "CURRENT   NAME   SERVER                               NAMESPACE   CREDENTIAL\n"+
		"*         prod   https://ada:xxxxx@prod.example.com   web         token file\n"+
		"          test   http://127.0.0.1:1                   -           command\n" || strings.Contains(out, "secret") {
		t.Errorf("%s", out)
	}
	must(t, "context", "use", "test")
	if out := must(t, "context", "list", "-o", "yaml"); !strings.Contains(out, "- name: test\n  current: true\n  server: http://127.0.0.1:1\n") {
		t.Errorf("%s", out)
	}
	working, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	raw, err := os.ReadFile(filepath.Join(folder, "contexts.yaml"))
	if err != nil || !strings.Contains(string(raw), "ca: "+working+"/ca.pem\n") || !strings.Contains(string(raw), "token-command: [print-token, -x]\n") {
		t.Errorf("%s %v", raw, err)
	}
	must(t, "context", "set", "test", "--token-file", "")
	must(t, "context", "delete", "test")
	if out := must(t, "context", "list", "-o", "json"); strings.Contains(out, "test") || strings.Contains(out, `"current": true`) {
		t.Errorf("%s", out)
	}
	for _, c := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"use", "none"}, 3, `no such context as "none"; known: prod`},
		{[]string{"delete", "none"}, 3, "known: prod"},
		{[]string{"set", "a/b"}, 2, "is no name"},
		{[]string{"set", "x", "--server", "nowhere"}, 2, "is not a URL"},
		{[]string{"set", "x", "--client-cert", "c"}, 2, "each needs the other"},
		{[]string{"set", "x", "--token-file", "c", "--", "program"}, 2, "only one of them"},
		{[]string{"set", "x", "y"}, 2, "one name is wanted"},
		{[]string{"list", "-o", "xml"}, 2, "accepted are table, json, yaml"},
	} {
		if _, errOut, code := command(t, append([]string{"context"}, c.args...)...); code != c.code || !strings.Contains(errOut, c.says) || strings.Count(errOut, "\n") != 1 {
			t.Errorf("%v: exit %d %s", c.args, code, errOut)
		}
	}
}

func TestFlagsTakePrecedenceOverTheEnvironmentAndThatOverTheContext(t *testing.T) {
	folder := fresh(t)
	g, other := startGateway(t), startGateway(t)
	one, two, three := file(t, folder, "one", "one\n"), file(t, folder, "two", "two\n"), file(t, folder, "three", "three\n")
	must(t, "context", "set", "a", "--server", g.URL, "--token-file", one)
	must(t, "context", "set", "b", "--server", g.URL, "--", "echo", "by-command")
	if got := g.asked(t); got != "Bearer one" {
		t.Errorf("the current context: %s", got)
	}
	if got := g.asked(t, "--context", "b"); got != "Bearer by-command" {
		t.Errorf("another context: %s", got)
	}
	t.Setenv("SLUICE_CONTEXT", "b")
	if got := g.asked(t); got != "Bearer by-command" {
		t.Errorf("the context of the environment: %s", got)
	}
	t.Setenv("SLUICE_TOKEN", "of-the-environment")
	if got := g.asked(t); got != "Bearer of-the-environment" {
		t.Errorf("SLUICE_TOKEN: %s", got)
	}
	t.Setenv("SLUICE_TOKEN_FILE", two)
	if got := g.asked(t); got != "Bearer two" {
		t.Errorf("SLUICE_TOKEN_FILE: %s", got)
	}
	if got := g.asked(t, "--token-file", three); got != "Bearer three" {
		t.Errorf("--token-file: %s", got)
	}
	if got := g.asked(t, "--token-file", ""); got != "" {
		t.Errorf("no token is wanted: %s", got)
	}
	for _, name := range []string{"SLUICE_CONTEXT", "SLUICE_TOKEN", "SLUICE_TOKEN_FILE"} {
		if err := os.Unsetenv(name); err != nil {
			t.Fatal(err)
		}
	}
	if got := other.asked(t, "--server", other.URL); got != "" {
		t.Errorf("a token went to a server that it is not for: %s", got)
	}
	if got := other.asked(t, "--server", other.URL, "--context", "a"); got != "Bearer one" {
		t.Errorf("a context that is named with a server: %s", got)
	}
	t.Setenv("SLUICE_SERVER", other.URL)
	if got := other.asked(t, "--context", "a"); got != "" {
		t.Errorf("a token went to the server of the environment: %s", got)
	}
	if err := os.Unsetenv("SLUICE_SERVER"); err != nil {
		t.Fatal(err)
	}
	t.Setenv("SLUICE_CONTEXT", "a")
	if got := other.asked(t, "--server", other.URL); got != "" {
		t.Errorf("a token of the environment's context went elsewhere: %s", got)
	}
	if err := os.Unsetenv("SLUICE_CONTEXT"); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := command(t, "api-resources", "--context", "c"); code != 2 || !strings.Contains(errOut, "known: a, b") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestWhoIsNotKnownIsToldWhatToDo(t *testing.T) {
	folder := fresh(t)
	g := startGateway(t)
	g.accepts = "good"
	_, errOut, code := command(t, "api-resources", "--server", g.URL, "--token-file", file(t, folder, "bad", "bad"))
	if code != 1 || errOut != "sluice: the credential is not valid (UNAUTHENTICATED; sluice login, or name a token with --token-file)\n" {
		t.Errorf("exit %d %s", code, errOut)
	}
	_, errOut, code = command(t, "get", "networks", "--server", "http://gateway.example.com", "--token-file", file(t, folder, "good", "good"))
	if code != 2 || !strings.Contains(errOut, "a token is sent by https only") || strings.Contains(errOut, "good") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestAContextHasTheAuthorityAndTheCertificate(t *testing.T) {
	folder := fresh(t)
	g := &aGateway{}
	g.Server = httptest.NewUnstartedServer(g)
	g.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	g.StartTLS()
	defer g.Close()
	pair := g.TLS.Certificates[0]
	key, err := x509.MarshalPKCS8PrivateKey(pair.PrivateKey)
	if err != nil {
		t.Fatal(err)
	}
	cert := file(t, folder, "cert.pem", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: pair.Certificate[0]})))
	keyFile := file(t, folder, "key.pem", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: key})))
	must(t, "context", "set", "tls", "--server", g.URL, "--ca", cert, "--client-cert", cert, "--client-key", keyFile)
	g.asked(t)
	if _, errOut, code := command(t, "api-resources", "--ca", keyFile); code != 2 || !strings.Contains(errOut, "holds no certificate") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if _, errOut, code := command(t, "api-resources", "--server", "http://127.0.0.1:1", "--ca", cert); code != 2 || !strings.Contains(errOut, "no effect without https") {
		t.Errorf("exit %d %s", code, errOut)
	}
	if err := os.Remove(keyFile); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := command(t, "api-resources"); code != 2 || !strings.Contains(errOut, "client-cert, client-key: ") {
		t.Errorf("exit %d %s", code, errOut)
	}
}

func TestContextsAreCompleted(t *testing.T) {
	fresh(t)
	must(t, "context", "set", "prod", "--server", "http://127.0.0.1:1")
	for _, line := range [][]string{{"get", "--context", ""}, {"context", "use", ""}, {"context", "delete", ""}} {
		if out := must(t, append([]string{"__complete"}, line...)...); out != "prod\n:4\n" {
			t.Errorf("%v completes to %q", line, out)
		}
	}
}
