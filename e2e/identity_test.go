package e2e_test

import (
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// tokenFile is a file of static tokens.
type tokenFile struct {
	t     *testing.T
	path  string
	lines []string
}

func newTokenFile(t *testing.T) *tokenFile {
	t.Helper()
	f := &tokenFile{t: t, path: filepath.Join(t.TempDir(), "tokens")}
	f.write()
	return f
}

// add writes a token into the file and returns its text. A zero time is never.
func (f *tokenFile) add(name, groups string, ends time.Time) string {
	f.t.Helper()
	raw := make([]byte, 32)
	_, _ = rand.Read(raw)
	text, end := "sluice_"+base64.RawURLEncoding.EncodeToString(raw), "-"
	if !ends.IsZero() {
		end = ends.UTC().Format(time.RFC3339)
	}
	f.lines = append(f.lines, fmt.Sprintf("%s sha256:%x %s %s", name, sha256.Sum256([]byte(text)), groups, end))
	f.write()
	return text
}

// revoke takes a token out of the file.
func (f *tokenFile) revoke(name string) {
	f.t.Helper()
	f.lines = slices.DeleteFunc(f.lines, func(line string) bool { return strings.HasPrefix(line, name+" ") })
	f.write()
}

// write replaces the file at once.
func (f *tokenFile) write() {
	f.t.Helper()
	text := "# tokens of a test\n\n" + strings.Join(f.lines, "\n") + "\n"
	if err := os.WriteFile(f.path+".new", []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
	if err := os.Rename(f.path+".new", f.path); err != nil {
		f.t.Fatal(err)
	}
}

// issuerFile writes a file of issuers; each entry is the lines of one.
func issuerFile(t *testing.T, entries ...map[string]string) string {
	t.Helper()
	var b strings.Builder
	b.WriteString("issuers:\n")
	for _, entry := range entries {
		mark := "  - "
		for _, key := range slices.Sorted(maps.Keys(entry)) {
			fmt.Fprintf(&b, "%s%s: %s\n", mark, key, entry[key])
			mark = "    "
		}
	}
	path := filepath.Join(t.TempDir(), "oidc.yaml")
	if err := os.WriteFile(path, []byte(b.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// entry is an issuer in such a file, with changes.
func (i *issuer) entry(name string, changes map[string]string) map[string]string {
	out := map[string]string{"name": name, "url": i.URL, "audience": "sluice", "clockSkew": "0s"}
	maps.Copy(out, changes)
	return out
}

// everySource is a gateway with all sources of identities.
type everySource struct {
	*gateway
	authority, stranger *authority
	tokens              *tokenFile
	corp, lab           *issuer
}

func startEverySource(t *testing.T) *everySource {
	t.Helper()
	e := &everySource{authority: newAuthority(t), stranger: newAuthority(t), tokens: newTokenFile(t), corp: startIssuer(t), lab: startIssuer(t)}
	cert, key := e.authority.files()
	e.gateway = start(t, "",
		"--tls-cert", cert, "--tls-key", key, "--tls-client-ca", e.authority.File,
		"--tokens", e.tokens.path, "--trust-proxy", "cert:front",
		"--oidc", issuerFile(t,
			e.corp.entry("corp", map[string]string{"user": "email", "groups": "realm.groups"}),
			e.lab.entry("lab", map[string]string{"userExpression": `claims.sub + "@lab"`, "groupsExpression": `claims.groups.filter(g, g != "ops")`})))
	return e
}

// client is one with a certificate, or none if it is nil.
func (e *everySource) client(cert *tls.Certificate) *caller {
	config := &tls.Config{RootCAs: e.authority.Pool, MinVersion: tls.VersionTLS12}
	if cert != nil {
		config.Certificates = []tls.Certificate{*cert}
	}
	return e.caller(config)
}

func TestWhoAsksIsKnownByEveryTransport(t *testing.T) {
	t.Parallel()
	e := startEverySource(t)
	never, past := time.Time{}, time.Now().Add(-time.Hour)
	ci := e.tokens.add("ci", "ops,dev", never)
	expired := e.tokens.add("old", "ops", past)
	revoked := e.tokens.add("gone", "ops", never)
	plain := e.client(nil)
	redistest.Await(t, "the tokens to be read", func() error {
		if got := plain.with(revoked).known("HTTP"); got != "token token:gone [token:ops]" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	e.tokens.revoke("gone")
	redistest.Await(t, "the token to be revoked", func() error {
		if got := plain.with(revoked).known("HTTP"); got != "UNAUTHENTICATED" {
			return fmt.Errorf("%s", got)
		}
		return nil
	})
	named1 := e.authority.issue(named{user: "worker", groups: []string{"fleet"}})
	front := e.authority.issue(named{user: "front"})
	says := func(c *caller, user string, groups ...string) *caller {
		c.header = http.Header{"X-Forwarded-User": {user}}
		if len(groups) > 0 {
			c.header["X-Forwarded-Groups"] = []string{strings.Join(groups, ",")}
		}
		return c
	}
	const refused = "UNAUTHENTICATED"
	for name, c := range map[string]struct {
		caller *caller
		want   string
	}{
		"nobody":                         {plain, refused},
		"an unknown token":               {plain.with("sluice_" + strings.Repeat("A", 43)), refused},
		"a token cut short":              {plain.with(ci[:len(ci)-1]), refused},
		"no token after all":             {plain.with("hello"), refused},
		"an expired token":               {plain.with(expired), refused},
		"a revoked token":                {plain.with(revoked), refused},
		"a token":                        {plain.with(ci), "token token:ci [token:dev token:ops]"},
		"a user of one issuer":           {plain.with(e.corp.token("alice")), "oidc:corp oidc:corp:alice@example.com [oidc:corp:dev oidc:corp:ops]"},
		"a user of another issuer":       {plain.with(e.lab.token("alice")), "oidc:lab oidc:lab:alice@lab [oidc:lab:dev]"},
		"an expired user":                {plain.with(e.corp.mint(order{User: "alice", Lifetime: "-1s"})), refused},
		"a user for somebody else":       {plain.with(e.corp.mint(order{User: "alice", Audience: "another"})), refused},
		"a certificate":                  {e.client(named1), "cert cert:worker [cert:fleet]"},
		"a workload's certificate":       {e.client(e.authority.issue(named{user: "ignored", uri: "spiffe://example.com/ns/a"})), "cert cert:spiffe://example.com/ns/a []"},
		"a certificate named as a token": {e.client(e.authority.issue(named{user: "ci", groups: []string{"ops"}})), "cert cert:ci [cert:ops]"},
		"a token beside a certificate":   {e.client(named1).with(ci), "token token:ci [token:dev token:ops]"},
		"a wrong token beside one":       {e.client(named1).with("sluice_x"), refused},
		"a proxy that names a user":      {says(e.client(front), "carol", "g1", "g2"), "proxy proxy:carol [proxy:g1 proxy:g2]"},
		"a proxy that names nobody":      {e.client(front), refused},
		"a spoofed proxy":                {says(e.client(nil), "root", "ops"), refused},
		"a spoofed proxy with a token":   {says(e.client(nil), "root", "ops").with(ci), "token token:ci [token:dev token:ops]"},
		"a spoofed proxy by certificate": {says(e.client(named1), "root", "ops"), "cert cert:worker [cert:fleet]"},
	} {
		for transport := range transports {
			t.Run(name+" by "+transport, func(t *testing.T) {
				asks := *c.caller
				asks.t = t
				if got := asks.known(transport); got != c.want {
					t.Errorf("taken for %q, want %q", got, c.want)
				}
			})
		}
	}
	if _, err := e.client(e.stranger.issue(named{user: "worker"})).requests.Get(e.address + "/healthz"); err == nil {
		t.Error("a certificate of another authority was accepted")
	}
}

func TestAProxyIsTrustedByItsAddress(t *testing.T) {
	t.Parallel()
	for by, want := range map[string]string{"127.0.0.0/8": "proxy proxy:carol [proxy:g1]", "10.0.0.0/8,::1": "UNAUTHENTICATED"} {
		g := start(t, "", "--trust-proxy", by)
		c := g.caller(nil)
		c.header = http.Header{"X-Forwarded-User": {"carol"}, "X-Forwarded-Groups": {"g1"}}
		for transport := range transports {
			if got := c.known(transport); got != want {
				t.Errorf("trusting %s, by %s: taken for %q, want %q", by, transport, got, want)
			}
		}
	}
}

func TestWhatIsOpenWithoutACredential(t *testing.T) {
	t.Parallel()
	e := startEverySource(t)
	token := e.tokens.add("ci", "-", time.Time{})
	nobody := e.client(nil)
	get := func(c *caller, path string) (int, string) {
		t.Helper()
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, e.address+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if c.bearer != "" {
			req.Header.Set("Authorization", "Bearer "+c.bearer)
		}
		res, err := c.requests.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = res.Body.Close() }()
		body, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return res.StatusCode, string(body)
	}
	redistest.Await(t, "/readyz for everybody", func() error {
		if code, body := get(nobody, "/readyz"); code != http.StatusOK {
			return fmt.Errorf("%d %s", code, body)
		}
		return nil
	})
	for path, want := range map[string]int{
		"/healthz": 200, "/": 200, "/login": 200,
		"/metrics": 401, "/graphql?query={viewer{name}}": 401, "/v1/graphql?query={viewer{name}}": 401,
		"/graphql?query={viewer{name}}&access_token=" + token: 401,
	} {
		if got, _ := get(nobody, path); got != want {
			t.Errorf("%s answers %d, want %d", path, got, want)
		}
	}
	if _, body := get(nobody, "/readyz?verbose"); strings.Contains(body, "catalogue") {
		t.Errorf("/readyz tells everybody %q", body)
	}
	redistest.Await(t, "/metrics for a token", func() error {
		if code, _ := get(nobody.with(token), "/metrics"); code != http.StatusOK {
			return fmt.Errorf("%d", code)
		}
		return nil
	})
	if _, body := get(nobody.with(token), "/readyz?verbose"); !strings.Contains(body, "catalogue") {
		t.Errorf("/readyz?verbose for a token: %q", body)
	}
	var login struct {
		Issuers []struct{ Name, URL, ClientID string }
	}
	_, body := get(nobody, "/login")
	if err := json.Unmarshal([]byte(body), &login); err != nil || len(login.Issuers) != 2 || login.Issuers[0].URL != e.corp.URL || login.Issuers[0].ClientID != "sluice" {
		t.Errorf("/login: %s", body)
	}
}
