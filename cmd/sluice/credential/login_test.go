package credential_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/credential/credentialtest"
	"github.com/sluicegw/sluice/graph/client"
)

// plain is a client that leaves no connections behind.
func plain() *http.Client { return &http.Client{Transport: &http.Transport{DisableKeepAlives: true}} }

// browse is a browser: it opens a page, and returns what it shows.
func browse(t *testing.T, page string) string {
	t.Helper()
	res, err := plain().Get(page)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer func() { _ = res.Body.Close() }()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Error(err)
	}
	return string(text)
}

// byBrowser logs in. before is called with the page that the person is shown.
func byBrowser(t *testing.T, i *credentialtest.Issuer, before func(page string)) (l *credential.Login, shown string, err error) {
	t.Helper()
	var browser sync.WaitGroup
	l, err = credential.Flow{HTTP: plain(), Issuer: i.Issuer(), Show: func(page, _ string) {
		browser.Go(func() {
			before(page)
			shown = browse(t, page)
		})
	}}.Browser(t.Context())
	browser.Wait()
	return l, shown, err
}

func TestABrowserLogsIn(t *testing.T) {
	i := credentialtest.Start(t)
	l, shown, err := byBrowser(t, i, func(page string) {
		u, err := url.Parse(page)
		if err != nil {
			t.Error(err)
			return
		}
		// Another page of the browser does not know the state.
		back := u.Query().Get("redirect_uri")
		for _, forged := range []string{"?code=theirs", "?code=theirs&state=x", "/../other?code=theirs&state=" + u.Query().Get("state")} {
			if text := browse(t, back+forged); !strings.Contains(text, "no answer to the login") {
				t.Errorf("%s: %q", forged, text)
			}
		}
	})
	if err != nil || l.RefreshToken != "refresh-1" || !strings.HasPrefix(l.IDToken, "e30.") || time.Until(l.Expires) < 59*time.Minute || !strings.Contains(shown, "You can close this page") {
		t.Errorf("%+v %q %v", l, shown, err)
	}
}

func TestALoginThatIsRefusedSaysWhy(t *testing.T) {
	for says, change := range map[string]func(*credentialtest.Issuer){
		"the issuer corp answered access_denied: not today": func(i *credentialtest.Issuer) { i.Deny = "access_denied" },
		"which is another issuer":                           func(i *credentialtest.Issuer) { i.Answer = url.Values{"iss": {"https://evil.example"}} },
		"the issuer corp answered invalid_grant":            func(i *credentialtest.Issuer) { i.Answer = url.Values{"code": {"another"}} },
	} {
		i := credentialtest.Start(t)
		change(i)
		if _, _, err := byBrowser(t, i, func(string) {}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

func TestAnotherDeviceLogsInByACode(t *testing.T) {
	i := credentialtest.Start(t)
	var page, code string
	l, err := credential.Flow{HTTP: plain(), Issuer: i.Issuer(), Show: func(p, c string) { page, code = p, c }}.Device(t.Context())
	if err != nil || l.RefreshToken != "refresh-1" || page != i.URL+"/type-it-here" || code != "WDJB-MJHT" {
		t.Errorf("%+v %s %s %v", l, page, code, err)
	}
	i.Deny = "access_denied"
	if _, err := (credential.Flow{HTTP: plain(), Issuer: i.Issuer(), Show: func(string, string) {}}).Device(t.Context()); err == nil || !strings.Contains(err.Error(), "access_denied") {
		t.Errorf("%v", err)
	}
}

func TestALoginCanBeStopped(t *testing.T) {
	i := credentialtest.Start(t)
	for name, flow := range map[string]func(credential.Flow, context.Context) (*credential.Login, error){"browser": credential.Flow.Browser, "device": credential.Flow.Device} {
		ctx, stop := context.WithCancel(t.Context())
		if _, err := flow(credential.Flow{HTTP: plain(), Issuer: i.Issuer(), Show: func(string, string) { stop() }}, ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAnIssuerThatIsNotTheOneIsRefused(t *testing.T) {
	for says, metadata := range map[string]map[string]string{
		"says that it is the issuer":  {"issuer": "https://other.example"},
		"does not begin with https":   {"token_endpoint": "http://login.example.com/token"},
		"has no login by device code": {"device_authorization_endpoint": ""},
		"is not a URL":                {"authorization_endpoint": "nowhere"},
	} {
		i := credentialtest.Start(t)
		i.Metadata = metadata
		if _, err := (credential.Flow{HTTP: plain(), Issuer: i.Issuer()}).Device(t.Context()); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%v, want %s", err, says)
		}
	}
	plaintext := credential.Issuer{Name: "corp", URL: "http://login.example.com"}
	if _, err := (credential.Flow{HTTP: plain(), Issuer: plaintext}).Browser(t.Context()); err == nil || !strings.Contains(err.Error(), "does not begin with https") {
		t.Errorf("%v", err)
	}
	away := credential.Issuer{Name: "corp", URL: "http://127.0.0.1:1"}
	if _, err := (credential.Flow{HTTP: plain(), Issuer: away}).Browser(t.Context()); err == nil || !strings.Contains(err.Error(), "no answer from http://127.0.0.1:1") {
		t.Errorf("%v", err)
	}
}

func TestOneOfSeveralIssuersIsChosen(t *testing.T) {
	corp, lab := credential.Issuer{Name: "corp"}, credential.Issuer{Name: "lab"}
	for _, c := range []struct {
		all          []credential.Issuer
		name, chosen string
		says         string
	}{
		{[]credential.Issuer{corp}, "", "corp", ""},
		{[]credential.Issuer{corp, lab}, "lab", "lab", ""},
		{[]credential.Issuer{corp, lab}, "", "", "choose one with --issuer: corp, lab"},
		{[]credential.Issuer{corp, lab}, "x", "", `none that is named "x"; accepted: corp, lab`},
		{nil, "", "", "no issuer to log in at"},
	} {
		got, err := credential.Choose(c.all, c.name)
		if got.Name != c.chosen || (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%v %q: %v %v", c.all, c.name, got, err)
		}
	}
}

// kept is a login of the context a that ends after a while; a negative time has passed.
func kept(t *testing.T, i *credentialtest.Issuer, refresh string, left time.Duration) (path, token string) {
	t.Helper()
	path = filepath.Join(t.TempDir(), "logins.yaml")
	now := time.Now()
	l := credential.Login{Server: "https://g", Issuer: i.Issuer(), IDToken: credentialtest.Token(0, now.Add(left)), Obtained: now.Add(-time.Hour), Expires: now.Add(left), RefreshToken: refresh}
	if err := credential.KeepLogin(t.Context(), path, "a", &l); err != nil {
		t.Fatal(err)
	}
	return path, l.IDToken
}

func TestATokenIsRefreshedNearItsEndAndWhenItIsRefused(t *testing.T) {
	i := credentialtest.Start(t)
	_, _, err := byBrowser(t, i, func(string) {}) // so that refresh-1 is valid
	if err != nil {
		t.Fatal(err)
	}
	path, first := kept(t, i, "refresh-1", 10*time.Minute)
	s := &credential.Source{Path: path, Context: "a", HTTP: plain()}
	if token, err := s.Token(t.Context(), ""); err != nil || token != first {
		t.Errorf("%s %v", token, err)
	}
	second, err := s.Token(t.Context(), first)
	if err != nil || second == first || i.Issued() != 2 {
		t.Errorf("refused: %s %v", second, err)
	}
	l, found, err := credential.FindLogin(path, "a")
	if err != nil || !found || l.IDToken != second || l.RefreshToken != "refresh-2" || l.Server != "https://g" {
		t.Errorf("%+v %v", l, err)
	}
	l.Obtained, l.Expires = time.Now().Add(-time.Hour), time.Now().Add(30*time.Second)
	if err := credential.KeepLogin(t.Context(), path, "a", &l); err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() { // several processes
			s := &credential.Source{Path: path, Context: "a", HTTP: plain()}
			if token, err := s.Token(t.Context(), ""); err != nil || token == second {
				t.Errorf("near its end: %s %v", token, err)
			}
		})
	}
	wg.Wait()
	if i.Issued() != 3 {
		t.Errorf("%d tokens were issued: each process refreshed by itself", i.Issued())
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestARefreshThatFailsSaysWhatToDo(t *testing.T) {
	for name, c := range map[string]struct {
		deny, refresh string
		left          time.Duration
		says          string
		later         bool
	}{
		"the issuer refuses":             {"invalid_grant", "refresh-1", -time.Minute, "the login has ended (the issuer corp answered invalid_grant); log in again", false},
		"there is nothing to refresh by": {"", "", -time.Minute, "the login has expired, and its issuer gave nothing to refresh it with; log in again", false},
		"the issuer is ill":              {"temporarily_unavailable", "refresh-1", -time.Minute, "the login could not be refreshed", true},
		"the issuer is ill in time":      {"temporarily_unavailable", "refresh-1", 30 * time.Second, "", false},
		"the issuer refuses in time":     {"invalid_grant", "refresh-1", 30 * time.Second, "", false},
	} {
		i := credentialtest.Start(t)
		i.Deny = c.deny
		path, token := kept(t, i, c.refresh, c.left)
		got, err := (&credential.Source{Path: path, Context: "a", HTTP: plain()}).Token(t.Context(), "")
		if c.says == "" && (err != nil || got != token) {
			t.Errorf("%s: %v", name, err)
		}
		if c.says != "" && (err == nil || !strings.Contains(err.Error(), c.says) || errors.Is(err, client.ErrNoTokenNow) != c.later || strings.Contains(err.Error(), token)) {
			t.Errorf("%s: %v", name, err)
		}
	}
	i := credentialtest.Start(t)
	path, _ := kept(t, i, "refresh-1", -time.Minute)
	i.Close()
	if _, err := (&credential.Source{Path: path, Context: "a", HTTP: plain()}).Token(t.Context(), ""); !errors.Is(err, client.ErrNoTokenNow) {
		t.Errorf("away: %v", err)
	}
}

func TestWhoHasNoLoginIsAnonymous(t *testing.T) {
	s := &credential.Source{Path: filepath.Join(t.TempDir(), "none"), Context: "a", HTTP: plain()}
	if token, err := s.Token(t.Context(), ""); token != "" || err != nil {
		t.Errorf("%q %v", token, err)
	}
}

func TestADamagedFileIsNotQuoted(t *testing.T) {
	path := filepath.Join(t.TempDir(), "logins.yaml")
	if err := os.WriteFile(path, []byte("a: secret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := credential.FindLogin(path, "a"); err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), "log in again") {
		t.Errorf("%v", err)
	}
}

func TestALoginIsRevoked(t *testing.T) {
	i := credentialtest.Start(t)
	if err := credential.Revoke(t.Context(), plain(), credential.Login{Issuer: i.Issuer(), RefreshToken: "refresh-7"}); err != nil {
		t.Fatal(err)
	}
	if got := i.Revoked(); len(got) != 1 || got[0] != "refresh-7" {
		t.Errorf("%v", got)
	}
}
