package e2e_test

import (
	"strings"
	"testing"
	"time"
)

// ending is how soon a stream ends after its credential, slack what a starved
// machine may add.
const (
	ending = 2 * time.Second
	slack  = 28 * time.Second
)

// ends follows changes with a credential by all transports that stay open, ends it
// and looks how the streams end. The credential's end is at, or at once if that is zero.
func ends(t *testing.T, g *gateway, bearer string, at time.Time, end func(), reason string) {
	t.Helper()
	open := map[string]*stream{}
	for _, transport := range streaming() {
		s := transports[transport](g.caller(nil).with(bearer), watchNetworks)
		if first := s.next(); first.get("networkChanges", "type") != "IN_SYNC" {
			t.Fatalf("%s: %+v", transport, first)
		}
		open[transport] = s
	}
	if at.IsZero() {
		at = time.Now()
	}
	if end != nil {
		end()
	}
	for transport, s := range open {
		how := s.endWithin(time.Until(at) + patience)
		took := time.Since(at)
		want := "4403 UNAUTHENTICATED: " + reason
		if transport == "server-sent events" {
			want = "complete"
			var last answer
			for len(s.results) > 0 {
				last = <-s.results
			}
			if last.codes() != "UNAUTHENTICATED" || !strings.Contains(last.Errors[0].Message, reason) {
				t.Errorf("%s: the last event is %+v", transport, last)
			}
		}
		if how != want {
			t.Errorf("%s: ended with %q, want %q", transport, how, want)
		}
		t.Logf("%s: ended %v after the credential", transport, took.Round(time.Millisecond))
		if took > ending+slack {
			t.Errorf("%s: ended %v after the credential, want %v", transport, took, ending)
		}
		if took < -100*time.Millisecond {
			t.Errorf("%s: ended %v before the credential", transport, -took)
		}
	}
	for transport := range transports {
		if got := g.caller(nil).with(bearer).known(transport); got != "UNAUTHENTICATED" {
			t.Errorf("%s: an ended credential is taken for %q", transport, got)
		}
	}
}

// soon is when a credential ends that a test waits for; a whole second, as its forms have it.
// Until then a starved machine must have opened all streams.
func soon() time.Time { return time.Now().Add(20 * time.Second).Truncate(time.Second) }

func TestStreamsEndWithTheirCredential(t *testing.T) {
	t.Parallel()
	sameOnEachStore(t)
	tokens, corp := newTokenFile(t), startIssuer(t)
	kept := tokens.add("kept", "-", time.Time{})
	g := start(t, "", "--tokens", tokens.path, "--oidc", issuerFile(t, corp.entry("corp", nil)))
	stays := g.caller(nil).with(kept).socket(watchNetworks, true)
	stays.next()
	token := func(t *testing.T, name string, at time.Time) string {
		bearer := tokens.add(name, "-", at)
		g.of(t).caller(nil).with(bearer).becomes("token token:" + name + " []")
		return bearer
	}

	t.Run("a token that expires", func(t *testing.T) {
		at := soon()
		ends(t, g.of(t), token(t, "temporary", at), at, nil, "the credential has expired")
	})
	t.Run("a login that expires", func(t *testing.T) {
		g.of(t).knowsIssuer(corp)
		at := soon()
		bearer := corp.mint(order{User: "alice", Claims: map[string]any{"exp": at.Unix()}})
		ends(t, g.of(t), bearer, at, nil, "the credential has expired")
	})
	t.Run("a revoked token", func(t *testing.T) {
		bearer := token(t, "revoked", time.Time{})
		revoke := func() { tokens.revoke("revoked") }
		ends(t, g.of(t), bearer, time.Time{}, revoke, "the credential was revoked")
	})
	t.Run("a token that is another one now", func(t *testing.T) {
		bearer := token(t, "changed", time.Time{})
		change := func() {
			tokens.revoke("changed")
			tokens.add("changed", "ops", time.Time{})
		}
		ends(t, g.of(t), bearer, time.Time{}, change, "the credential was revoked")
	})
	c := g.caller(nil).with(kept)
	if a := c.http(`mutation { createNetwork(input: {name: "a", spec: {cloudCredentialsRef: {secretName: "s", cloudName: "c"}, managementPolicy: MANAGED, resource: {}}}) { network { id } } }`).next(); a.codes() != "" {
		t.Fatalf("%+v", a)
	}
	a := stays.next()
	for a.get("networkChanges", "type") == "BOOKMARK" {
		a = stays.next()
	}
	if a.get("networkChanges", "type") != "ADDED" {
		t.Errorf("a stream whose credential is good was told %+v", a)
	}
}

// of is the same gateway in another test.
func (g *gateway) of(t *testing.T) *gateway {
	other := *g
	other.t = t
	return &other
}
