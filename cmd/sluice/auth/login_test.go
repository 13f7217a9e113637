package auth

import (
	"errors"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/credential/credentialtest"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// person reads what a command prints, and opens the page that it names.
type person struct {
	strings.Builder
	browser sync.WaitGroup
}

var page = regexp.MustCompile(`(?m)^http://\S+/authorize\S+$`)

func (p *person) Write(text []byte) (int, error) {
	if at := page.Find(text); at != nil {
		p.browser.Go(func() {
			if res, err := (&http.Client{Transport: &http.Transport{DisableKeepAlives: true}}).Get(string(at)); err == nil {
				_ = res.Body.Close()
			}
		})
	}
	return p.Builder.Write(text)
}

// logIn is sluice login with a person before it.
func logIn(t *testing.T, args ...string) (out, errOut string, code int) {
	t.Helper()
	var o strings.Builder
	p := &person{}
	code = command.Run(t.Context(), newRoot, append([]string{"login"}, args...), terminal.Streams{In: strings.NewReader(""), Out: &o, Err: p})
	p.browser.Wait()
	return o.String(), p.String(), code
}

func TestALoginIsKeptUsedRefreshedAndForgotten(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	issuer := credentialtest.Start(t)
	g, other := commandtest.StartGateway(t), commandtest.StartGateway(t)
	g.Accepts, g.Issuers = "*", []credential.Issuer{issuer.Issuer()}
	commandtest.Must(t, newRoot, "context", "set", "prod", "--server", g.URL)
	if _, errOut, code := commandtest.Run(t, newRoot, "auth", "whoami"); code != 1 || !strings.Contains(errOut, "UNAUTHENTICATED; sluice login") {
		t.Errorf("before: exit %d %s", code, errOut)
	}
	out, errOut, code := logIn(t)
	if code != 0 || out != "logged in to prod as oidc:corp:ada\n" || !strings.Contains(errOut, "To log in at corp, open this page") {
		t.Fatalf("exit %d %s %s", code, out, errOut)
	}
	path := filepath.Join(folder, "contexts.logins.yaml")
	if note := "The tokens are kept in " + path + ", which nobody else can read: the keyring of this system cannot be used ("; strings.Count(errOut, note) != 1 {
		t.Errorf("%s\nwant %s", errOut, note)
	}
	if _, errOut, _ := logIn(t, "--no-keyring"); strings.Contains(errOut, "keyring") {
		t.Errorf("%s", errOut)
	}
	if out := commandtest.Must(t, newRoot, "auth", "whoami"); out != "NAME            SOURCE      GROUPS          EXPIRES\noidc:corp:ada   oidc:corp   oidc:corp:dev   never\n" {
		t.Errorf("%s", out)
	}
	if out := commandtest.Must(t, newRoot, "auth", "whoami", "-o", "json"); !strings.Contains(out, `"name": "oidc:corp:ada"`) || !strings.Contains(out, `"expiresAt": null`) {
		t.Errorf("%s", out)
	}
	if out := commandtest.Must(t, newRoot, "context", "list"); !strings.HasSuffix(out, "login\n") {
		t.Errorf("%s", out)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
	if got := other.Authorization(t, newRoot, "--server", other.URL); got != "" {
		t.Errorf("the login went to a server that it is not for: %s", got)
	}
	if got := other.Authorization(t, newRoot, "--server", other.URL, "--context", "prod"); got != "" {
		t.Errorf("the login went to a server that it is not for: %s", got)
	}

	l, _, err := credential.FindLogin(path, "prod")
	if err != nil {
		t.Fatal(err)
	}
	l.Expires = time.Now().Add(-time.Second)
	if err := credential.KeepLogin(t.Context(), path, "prod", &l); err != nil {
		t.Fatal(err)
	}
	if got := g.Authorization(t, newRoot); got == "" || strings.Contains(got, l.IDToken) || issuer.Issued() != 3 {
		t.Errorf("after its end: %s", got)
	}
	if out := commandtest.Must(t, newRoot, "logout"); out != "logged out of prod\n" || len(issuer.Revoked()) != 1 {
		t.Errorf("%s %v", out, issuer.Revoked())
	}
	if _, _, code := commandtest.Run(t, newRoot, "auth", "whoami"); code != 1 {
		t.Errorf("after the logout: exit %d", code)
	}
	if out := commandtest.Must(t, newRoot, "logout"); out != "prod has no login\n" {
		t.Errorf("%s", out)
	}
}

func TestALoginThatCannotBeSaysWhy(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	issuer := credentialtest.Start(t)
	g := commandtest.StartGateway(t)
	if _, errOut, code := logIn(t); code != 2 || !strings.Contains(errOut, "there is no current context; sluice context set") {
		t.Errorf("no context: exit %d %s", code, errOut)
	}
	commandtest.Must(t, newRoot, "context", "set", "a", "--server", g.URL)
	if _, errOut, code := logIn(t); code != 2 || !strings.Contains(errOut, "no issuer to log in at") {
		t.Errorf("no issuer: exit %d %s", code, errOut)
	}
	g.Issuers = []credential.Issuer{issuer.Issuer(), {Name: "lab"}}
	if _, errOut, code := logIn(t); code != 2 || !strings.Contains(errOut, "choose one with --issuer: corp, lab") {
		t.Errorf("two issuers: exit %d %s", code, errOut)
	}
	issuer.Deny = "access_denied"
	if _, errOut, code := logIn(t, "--issuer", "corp"); code != 1 || !strings.Contains(errOut, "the issuer corp answered access_denied: not today") {
		t.Errorf("refused: exit %d %s", code, errOut)
	}
	if _, errOut, code := logIn(t, "--issuer", "corp", "--device"); code != 1 || !strings.Contains(errOut, "type the code WDJB-MJHT") || !strings.Contains(errOut, "access_denied") {
		t.Errorf("device: exit %d %s", code, errOut)
	}
	commandtest.Must(t, newRoot, "context", "set", "b", "--server", "http://gateway.example.com")
	if _, errOut, code := logIn(t, "--context", "b"); code != 2 || !strings.Contains(errOut, "a token is sent by https only") {
		t.Errorf("plaintext: exit %d %s", code, errOut)
	}
	commandtest.Must(t, newRoot, "context", "set", "c", "--server", g.URL, "--token-file", commandtest.WriteFile(t, folder, "token", "t"))
	if _, errOut, code := logIn(t, "--context", "c"); code != 2 || !strings.Contains(errOut, "the context c has a token") {
		t.Errorf("a token: exit %d %s", code, errOut)
	}
	g.Close()
	if _, errOut, code := logIn(t, "--context", "a"); code != 1 || !strings.Contains(errOut, "is a gateway there?") {
		t.Errorf("nobody there: exit %d %s", code, errOut)
	}
}

func TestLogin_ReturnsToThePortThatIsNamed(t *testing.T) {
	commandtest.FreshContexts(t)
	issuer := credentialtest.Start(t)
	g := commandtest.StartGateway(t)
	g.Accepts, g.Issuers = "*", []credential.Issuer{issuer.Issuer()}
	commandtest.Must(t, newRoot, "context", "set", "prod", "--server", g.URL)
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_, port, err := net.SplitHostPort(taken.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	says := "the browser cannot return to 127.0.0.1:" + port
	if _, errOut, code := logIn(t, "--callback-port", port); code != 1 || !strings.Contains(errOut, says) {
		t.Errorf("a port that is taken: exit %d %s", code, errOut)
	}
	if err := taken.Close(); err != nil {
		t.Fatal(err)
	}
	_, errOut, code := logIn(t, "--callback-port", port)
	if code != 0 || !strings.Contains(errOut, url.QueryEscape("http://127.0.0.1:"+port+"/callback")) {
		t.Errorf("exit %d %s", code, errOut)
	}
	t.Setenv("SLUICE_CALLBACK_PORT", "1")
	issuer.Deny = "access_denied"
	if _, errOut, code := logIn(t, "--device"); code != 1 || !strings.Contains(errOut, "type the code") {
		t.Errorf("a device, where a variable names a port: exit %d %s", code, errOut)
	}
	says = "--callback-port has no effect with --device"
	if _, errOut, code := logIn(t, "--device", "--callback-port", "1"); code != 2 || !strings.Contains(errOut, says) {
		t.Errorf("a port for a device: exit %d %s", code, errOut)
	}
}

func TestAContextThatIsDeletedLosesItsLogin(t *testing.T) {
	folder := commandtest.FreshContexts(t)
	commandtest.Must(t, newRoot, "context", "set", "a", "--server", "http://127.0.0.1:1")
	path := filepath.Join(folder, "contexts.logins.yaml")
	if err := credential.KeepLogin(t.Context(), path, "a", &credential.Login{IDToken: "x"}); err != nil {
		t.Fatal(err)
	}
	commandtest.Must(t, newRoot, "context", "delete", "a")
	if _, found, err := credential.FindLogin(path, "a"); found || err != nil {
		t.Errorf("%v %v", found, err)
	}
}

func TestLogin_HasItsKeyInTheKeyring(t *testing.T) {
	keyring.MockInit()
	t.Cleanup(func() { keyring.MockInitWithError(errors.New("there is none")) })
	folder := commandtest.FreshContexts(t)
	issuer := credentialtest.Start(t)
	g := commandtest.StartGateway(t)
	g.Accepts = "*"
	g.Issuers = []credential.Issuer{issuer.Issuer()}
	path := filepath.Join(folder, "contexts.logins.yaml")
	commandtest.Must(t, newRoot, "context", "set", "prod", "--server", g.URL)
	var keys []string
	for range 2 {
		if out, errOut, code := logIn(t); code != 0 || strings.Contains(errOut, "cannot be used") {
			t.Fatalf("exit %d %s %s", code, out, errOut)
		}
		l, _, err := credential.FindLogin(path, "prod")
		if err != nil || l.IDToken != "" || l.RefreshToken != "" || l.Sealed == "" {
			t.Errorf("%v: the tokens are not encrypted", err)
		}
		keys = append(keys, l.Key)
		commandtest.Must(t, newRoot, "auth", "whoami")
	}
	has := func(key string) bool {
		_, err := credential.SystemKeyring().Get(key)
		return err == nil
	}
	if has(keys[0]) || !has(keys[1]) {
		t.Errorf("the keyring has the key of the first login: %t, of the second one: %t", has(keys[0]), has(keys[1]))
	}
	if out := commandtest.Must(t, newRoot, "logout"); out != "logged out of prod\n" || len(issuer.Revoked()) != 1 || has(keys[1]) {
		t.Errorf("%s %v %t", out, issuer.Revoked(), has(keys[1]))
	}
	if _, errOut, code := logIn(t); code != 0 {
		t.Fatalf("exit %d %s", code, errOut)
	}
	l, _, err := credential.FindLogin(path, "prod")
	if err != nil {
		t.Fatal(err)
	}
	if commandtest.Must(t, newRoot, "context", "delete", "prod"); has(l.Key) {
		t.Error("the key of a deleted context is still in the keyring")
	}
}
