package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/redistest"
)

// becomes waits until a credential is taken for somebody.
func (c *caller) becomes(want string) {
	c.t.Helper()
	redistest.Await(c.t, "to be "+want, func() error {
		if got := c.known("HTTP"); got != want {
			return fmt.Errorf("taken for %q", got)
		}
		return nil
	})
}

const aliceOfCorp = "oidc:corp oidc:corp:alice [oidc:corp:dev oidc:corp:ops]"

// follows opens streams of a user by all transports that stay open.
func (c *caller) follows() map[string]*stream {
	c.t.Helper()
	open := map[string]*stream{}
	for _, transport := range streaming() {
		open[transport] = transports[transport](c, watchNetworks)
		open[transport].next()
	}
	return open
}

// expectEvents creates a network and checks that each stream gets the event.
func (c *caller) expectEvents(open map[string]*stream, name string) {
	c.t.Helper()
	create := `mutation { createNetwork(input: {name: "` + name + `", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, managementPolicy: MANAGED, resource: {}}}) { network { id } } }`
	if a := c.http(create).next(); a.codes() != "" {
		c.t.Fatalf("%+v", a)
	}
	for transport, s := range open {
		a := s.next()
		for a.get("networkChanges", "type") == "BOOKMARK" {
			a = s.next()
		}
		if a.get("networkChanges", "network", "metadata", "name") != name {
			c.t.Errorf("%s: got %+v", transport, a)
		}
	}
}

func TestKeysAreRotatedUnderConnectedClients(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	corp := startIssuer(t)
	begin := time.Now()
	g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", nil)))
	first := g.caller(nil).with(corp.token("alice"))
	first.becomes(aliceOfCorp)
	open := first.follows()
	for round, rotation := range []struct {
		keep bool
		alg  string
	}{{true, "RS256"}, {false, "ES256"}, {false, "RS256"}} {
		corp.rotate(rotation.keep, rotation.alg)
		next := g.caller(nil).with(corp.token("alice"))
		next.becomes(aliceOfCorp)
		next.expectEvents(open, fmt.Sprint("n", round))
		for transport := range transports {
			if got := next.known(transport); got != aliceOfCorp {
				t.Errorf("round %d, %s: taken for %q", round, transport, got)
			}
		}
	}
	fetches := corp.keyFetches()
	took := time.Since(begin)
	if most := 20 + int(took/time.Second); fetches > most {
		t.Errorf("the keys were fetched %d times for 4 keys in %v, want at most %d", fetches, took, most)
	}
}

func TestTheClockOfAnIssuerIsOff(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	for _, c := range []struct {
		ahead    time.Duration
		lifetime string
		skew     string
		want     string
	}{
		{5 * time.Minute, "1h", "0s", "UNAUTHENTICATED"},
		{5 * time.Minute, "1h", "30s", "UNAUTHENTICATED"},
		{5 * time.Minute, "1h", "5m", aliceOfCorp},
		{-5 * time.Minute, "1h", "0s", aliceOfCorp},
		{-5 * time.Minute, "290s", "0s", "UNAUTHENTICATED"},
		{-5 * time.Minute, "290s", "30s", aliceOfCorp},
		{-5 * time.Minute, "1m", "30s", "UNAUTHENTICATED"},
		{-5 * time.Minute, "1m", "5m", aliceOfCorp},
	} {
		t.Run(fmt.Sprintf("by %v, tokens of %s, %s allowed", c.ahead, c.lifetime, c.skew), func(t *testing.T) {
			t.Parallel()
			corp := startIssuer(t)
			corp.clock(c.ahead)
			g := start(t, "", "--oidc", issuerFile(t, corp.entry("corp", map[string]string{"clockSkew": c.skew})))
			asks := g.caller(nil).with(corp.mint(order{User: "alice", Lifetime: c.lifetime}))
			g.knowsIssuer(corp)
			for transport := range transports {
				if got := asks.known(transport); got != c.want {
					t.Errorf("%s: taken for %q, want %q", transport, got, c.want)
				}
			}
		})
	}
}

// knowsIssuer waits until the gateway has discovered an issuer.
func (g *gateway) knowsIssuer(i *issuer) {
	g.t.Helper()
	redistest.Await(g.t, "the issuer to be known", func() error {
		if a := g.caller(nil).with(i.token("bob")).http(viewer).next(); a.codes() == "UNAVAILABLE" {
			return fmt.Errorf("%+v", a)
		}
		return nil
	})
}

// unavailable checks what is said of a credential whose issuer does not answer.
func (c *caller) unavailable() {
	c.t.Helper()
	a := c.http(viewer).next()
	if a.codes() != "UNAVAILABLE" || a.Status != http.StatusServiceUnavailable {
		c.t.Errorf("%+v", a)
		return
	}
	if e := a.Errors[0].Extensions; e["retryable"] != true || e["retryAfter"] == nil {
		c.t.Errorf("%+v", a)
	}
}

func TestAnIssuerIsDownForAWhile(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	tokens, corp := newTokenFile(t), startIssuer(t)
	static := tokens.add("ci", "-", time.Time{})
	g := start(t, "", "--tokens", tokens.path, "--oidc", issuerFile(t, corp.entry("corp", nil)))
	before := g.caller(nil).with(corp.token("alice"))
	before.becomes(aliceOfCorp)
	open := before.follows()
	fresh := corp.token("alice")
	corp.rotate(true, "")
	unseen := corp.token("bob")
	corp.down()
	before.expectEvents(open, "during")
	for name, bearer := range map[string]string{"a known token": before.bearer, "a new token with a known key": fresh} {
		if got := g.caller(nil).with(bearer).known("HTTP"); got != aliceOfCorp {
			t.Errorf("%s while the issuer is down: taken for %q", name, got)
		}
	}
	if got := g.caller(nil).with(static).known("HTTP"); got != "token token:ci []" {
		t.Errorf("a static token: %q", got)
	}
	// More often than keys are fetched: that a key was not asked for is no proof against a token.
	for range 10 {
		g.caller(nil).with(unseen).unavailable()
	}
	if res, body := g.do("GET", "/readyz", ""); res.StatusCode != http.StatusOK {
		t.Errorf("/readyz: %d %s", res.StatusCode, body)
	}
	corp.up()
	g.caller(nil).with(unseen).becomes("oidc:corp oidc:corp:bob [oidc:corp:audit]")
	before.expectEvents(open, "after")
}

func TestAnIssuerIsDownWhenTheGatewayStarts(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	tokens, corp := newTokenFile(t), startIssuer(t)
	static, alice := tokens.add("ci", "-", time.Time{}), corp.token("alice")
	corp.down()
	g := start(t, "", "--tokens", tokens.path, "--oidc", issuerFile(t, corp.entry("corp", nil)))
	for transport := range transports {
		if got := g.caller(nil).with(static).known(transport); got != "token token:ci []" {
			t.Errorf("a static token by %s: %q", transport, got)
		}
	}
	g.caller(nil).with(alice).unavailable()
	corp.up()
	g.caller(nil).with(alice).becomes(aliceOfCorp)
	if !strings.Contains(g.log.String(), "corp") {
		t.Error("the log does not name the issuer")
	}
}

// TestAnIssuerThatMisbehaves answers too much, or never, and holds up nobody else.
func TestAnIssuerThatMisbehaves(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	const hangs = "nothing, for ever"
	tooMuch := func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"issuer":"http://%s","jwks_uri":"http://%[1]s/keys","padding":"%s","keys":[]}`, r.Host, strings.Repeat("x", 2<<20))
	}
	never := func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }
	failure := func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "no", http.StatusInternalServerError) }
	rubbish := func(w http.ResponseWriter, _ *http.Request) { _, _ = fmt.Fprint(w, "<html>") }
	another := func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprint(w, `{"issuer":"https://other.example.com","jwks_uri":"https://other.example.com/keys"}`)
	}
	for _, c := range []struct {
		name, question string
		answer         http.HandlerFunc
	}{
		{"2 MiB", "discovery", tooMuch}, {"2 MiB", "keys", tooMuch},
		{hangs, "discovery", never}, {hangs, "keys", never},
		{"an error", "discovery", failure}, {"an error", "keys", failure},
		{"rubbish", "discovery", rubbish}, {"rubbish", "keys", rubbish},
		{"another issuer", "discovery", another},
	} {
		t.Run(c.name+" for "+c.question, func(t *testing.T) {
			t.Parallel()
			tokens, corp := newTokenFile(t), startIssuer(t)
			static := tokens.add("ci", "-", time.Time{})
			url, calls := pretend(t, corp, c.question, c.answer)
			g := start(t, "", "--tokens", tokens.path, "--oidc", issuerFile(t, corp.entry("corp", map[string]string{"url": url})))
			alice := g.caller(nil).with(corp.mint(order{User: "alice", Claims: map[string]any{"iss": url}}))
			if c.question == "keys" {
				alice.hasDiscovered()
			}
			redistest.Await(t, "the issuer to be asked", func() error {
				if alice.unavailable(); calls() == 0 {
					return errors.New("not yet")
				}
				return nil
			})
			rounds := 5 // more often than keys are fetched
			if c.name == hangs {
				rounds = 1 // each takes as long as the gateway waits for an issuer, in which another fetch is allowed
			}
			for range rounds {
				begin := time.Now()
				alice.unavailable()
				if took := time.Since(begin); took > patience/2 {
					t.Errorf("the answer took %v", took)
				}
			}
			if got := g.caller(nil).with(static).known("HTTP"); got != "token token:ci []" {
				t.Errorf("a static token: %q", got)
			}
			if code := g.stop(); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

// hasDiscovered waits until the gateway has discovered an issuer whose keys it cannot have.
func (c *caller) hasDiscovered() {
	c.t.Helper()
	redistest.Await(c.t, "the issuer to be discovered", func() error {
		if g := c.log.String(); !strings.Contains(g, "an issuer is known") {
			return fmt.Errorf("%s", g)
		}
		return nil
	})
}

// pretend puts a server before a provider that answers one of the two questions of
// gateways itself. It returns its URL, and how often it answered.
func pretend(t *testing.T, i *issuer, question string, answer http.HandlerFunc) (url string, calls func() int64) {
	t.Helper()
	var count atomic.Int64
	answers := map[string]http.HandlerFunc{
		"discovery": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprintf(w, `{"issuer":"http://%s","jwks_uri":"http://%[1]s/keys"}`, r.Host)
		},
		"keys": http.RedirectHandler(i.discover().Keys, http.StatusFound).ServeHTTP,
	}
	answers[question] = func(w http.ResponseWriter, r *http.Request) {
		count.Add(1)
		answer(w, r)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/.well-known/openid-configuration", answers["discovery"])
	mux.HandleFunc("/keys", answers["keys"])
	s := httptest.NewServer(mux)
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s.URL, count.Load
}
