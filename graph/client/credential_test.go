package client_test

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/sluicegw/sluice/graph/client"
)

// tokens is a source that returns one token after the other, and notes what was refused.
type tokens struct {
	next    []string
	refused []string
}

func (s *tokens) token(_ context.Context, refused string) (string, error) {
	s.refused = append(s.refused, refused)
	token := s.next[0]
	if len(s.next) > 1 {
		s.next = s.next[1:]
	}
	if token == "unreachable" {
		return "", fmt.Errorf("the issuer is away: %w", client.ErrNoTokenNow)
	}
	return token, nil
}

// guarded answers requests with the token good, and all others as a gateway does.
func guarded(seen *[]string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		*seen = append(*seen, r.Header.Get("Authorization"))
		w.Header().Set("Content-Type", "application/json")
		if r.Header.Get("Authorization") != "Bearer good" {
			w.Header().Set("WWW-Authenticate", `Bearer error="invalid_token"`)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"errors":[{"message":"the credential is not valid","extensions":{"code":"UNAUTHENTICATED"}}]}`)
			return
		}
		_, _ = fmt.Fprint(w, `{"data":{"a":1}}`)
	}
}

func TestCredential_ARefusedTokenIsReplacedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		tokens, sent, refused string
		fails                 bool
	}{
		"the first is good":        {"good", "good", "", false},
		"the next one is good":     {"old good", "old good", ",old", false},
		"there is no other":        {"old", "old", ",old", true},
		"the next is refused, too": {"old older good", "old older", ",old", true},
	} {
		t.Run(name, func(t *testing.T) {
			var seen []string
			srv := httptest.NewServer(guarded(&seen))
			defer srv.Close()
			source := tokens{next: strings.Fields(c.tokens)}
			one, err := client.New(client.Config{Server: srv.URL, Token: source.token})
			if err != nil {
				t.Fatal(err)
			}
			err = one.Do(t.Context(), "mutation { a }", nil, nil)
			var refusal *client.Error
			switch {
			case !c.fails && err != nil:
				t.Errorf("%v", err)
			case c.fails && (!errors.As(err, &refusal) || refusal.Extensions.Code != "UNAUTHENTICATED" || strings.Contains(err.Error(), "old")):
				t.Errorf("%v", err)
			}
			if got, want := strings.Join(seen, " "), "Bearer "+strings.ReplaceAll(c.sent, " ", " Bearer "); got != want {
				t.Errorf("sent %s, want %s", got, want)
			}
			if got := strings.Join(source.refused, ","); got != c.refused {
				t.Errorf("told of refused tokens %q, want %q", got, c.refused)
			}
		})
	}
}

func TestCredential_TheAnswer401OfAProxySaysSo(t *testing.T) {
	for _, contentType := range []string{"text/html", "application/json"} {
		c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			w.WriteHeader(http.StatusUnauthorized)
			_, _ = fmt.Fprint(w, `{"error":"secret"}`)
		})
		var lost *client.UnansweredError
		err := c.Do(t.Context(), "mutation { a }", nil, nil)
		if !errors.As(err, &lost) || lost.Sent || !strings.Contains(err.Error(), "a proxy in front of it wants a separate login") || strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: %v", contentType, err)
		}
		for _, err := range c.Changes(t.Context(), client.ChangesRequest{Kind: client.Kind{Singular: "network"}}) {
			if err == nil || !strings.Contains(err.Error(), "a proxy in front of it") {
				t.Errorf("%s: stream: %v", contentType, err)
			}
		}
	}
}

func TestCredential_ARedirectToAnotherServerIsNotFollowed(t *testing.T) {
	reached := 0
	other := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { reached++ }))
	defer other.Close()
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, other.URL+"/login?state=secret", http.StatusTemporaryRedirect)
	})
	var lost *client.UnansweredError
	err := c.Do(t.Context(), "mutation { a }", nil, nil)
	if !errors.As(err, &lost) || lost.Sent || !strings.Contains(err.Error(), "it redirects to "+other.URL+";") || strings.Contains(err.Error(), "secret") || reached > 0 {
		t.Errorf("%v; the other server was asked %d times", err, reached)
	}
}

func TestCredential_ATokenIsNotSentInTheClear(t *testing.T) {
	source := (&tokens{next: []string{"secret"}}).token
	for server, refused := range map[string]string{
		"http://gateway.example:8080":      "a token is sent by https only",
		"http://192.0.2.1":                 "a token is sent by https only",
		"https://ada:secret@gateway.local": "only one of them",
		"http://127.0.0.1:8080":            "",
		"http://[::1]:8080":                "",
		"http://LOCALHOST":                 "",
		"https://gateway.example":          "",
	} {
		_, err := client.New(client.Config{Server: server, Token: source})
		if refused == "" && err != nil || refused != "" && (err == nil || !strings.Contains(err.Error(), refused) || strings.Contains(err.Error(), "secret")) {
			t.Errorf("%s: %v", server, err)
		}
	}
	if _, err := client.New(client.Config{Server: "http://gateway.example", Token: source, PlaintextToken: true}); err != nil {
		t.Errorf("allowed explicitly: %v", err)
	}
}

func TestCredential_ATextThatIsNoTokenIsNotSent(t *testing.T) {
	var seen []string
	srv := httptest.NewServer(guarded(&seen))
	defer srv.Close()
	for _, token := range []string{"two words", "line\n", "ü"} {
		c, err := client.New(client.Config{Server: srv.URL, Token: (&tokens{next: []string{token}}).token})
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Do(t.Context(), "{ a }", nil, nil); err == nil || strings.Contains(err.Error(), token) || len(seen) > 0 {
			t.Errorf("%q: %v, sent %v", token, err, seen)
		}
	}
}

func TestCredential_AServerAndItsClientKnowEachOtherByCertificates(t *testing.T) {
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !websocket.IsWebSocketUpgrade(r) {
			w.Header().Set("Content-Type", "application/json")
			_, _ = fmt.Fprint(w, `{"data":{}}`)
			return
		}
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		_, _, _ = conn.ReadMessage()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_ack"}`))
		_, _, _ = conn.ReadMessage()
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"id":"1","type":"next","payload":{"data":{"event":{"type":"IN_SYNC"}}}}`))
	}))
	srv.TLS = &tls.Config{ClientAuth: tls.RequireAnyClientCert}
	srv.StartTLS()
	defer srv.Close()
	known := x509.NewCertPool()
	known.AddCert(srv.Certificate())
	c, err := client.New(client.Config{Server: srv.URL, TLS: &tls.Config{RootCAs: known, Certificates: srv.TLS.Certificates}})
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Do(t.Context(), "{ a }", nil, nil); err != nil {
		t.Errorf("request: %v", err)
	}
	for change, err := range c.Changes(t.Context(), client.ChangesRequest{Kind: client.Kind{Singular: "network"}, Lost: func(cause error) { t.Errorf("stream: %v", cause) }}) {
		if err != nil || change.Type != "IN_SYNC" {
			t.Errorf("stream: %v %v", change, err)
		}
		break
	}
	stranger, err := client.New(client.Config{Server: srv.URL})
	if err != nil {
		t.Fatal(err)
	}
	if err := stranger.Do(t.Context(), "{ a }", nil, nil); err == nil || !strings.Contains(err.Error(), "an authority that is not trusted here") {
		t.Errorf("without its authority: %v", err)
	}
}

// connection is what a gateway does on one of them: the token that it accepts, the events that it sends
// then, and the reason with which it closes it as 4403; none drops it.
type connection struct{ token, events, reason string }

// sessions is a gateway whose connections follow the script. It notes the tokens and the cursors.
func sessions(t *testing.T, source client.TokenSource, script []connection) (c *client.Client, seen *[]string) {
	t.Helper()
	seen = new([]string)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := upgrader.Upgrade(w, r, nil)
		if err != nil {
			t.Error(err)
			return
		}
		defer func() { _ = conn.Close() }()
		now := script[0]
		script = script[1:]
		end := func(reason string) {
			_ = conn.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(4403, reason), time.Now().Add(time.Second))
			_, _, _ = conn.ReadMessage()
		}
		var m struct {
			Payload struct {
				Authorization string
				Variables     struct{ After string }
			}
		}
		if err := conn.ReadJSON(&m); err != nil {
			t.Error(err)
			return
		}
		if m.Payload.Authorization != "Bearer "+now.token {
			*seen = append(*seen, m.Payload.Authorization+" refused")
			end("UNAUTHENTICATED: the credential is not valid")
			return
		}
		_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"type":"connection_ack"}`))
		if err := conn.ReadJSON(&m); err != nil {
			t.Error(err)
			return
		}
		*seen = append(*seen, now.token+" after "+m.Payload.Variables.After)
		for e := range strings.FieldsSeq(now.events) {
			kind, cursor, _ := strings.Cut(e, ":")
			event, _ := json.Marshal(map[string]any{"type": kind, "cursor": cursor})
			_ = conn.WriteMessage(websocket.TextMessage, []byte(`{"id":"1","type":"next","payload":{"data":{"event":`+string(event)+`}}}`))
		}
		if now.reason != "" {
			end(now.reason)
		}
	}))
	t.Cleanup(srv.Close)
	c, err := client.New(client.Config{Server: srv.URL, Token: source})
	if err != nil {
		t.Fatal(err)
	}
	return c, seen
}

func TestCredential_AStreamSurvivesTheEndOfItsCredential(t *testing.T) {
	const expired, revoked = "UNAUTHENTICATED: the credential has expired", "UNAUTHENTICATED: the credential was revoked"
	for name, c := range map[string]struct {
		tokens string
		script []connection
		events string
		seen   []string
		fails  string
		lost   int
	}{
		"it goes on with another": {
			"a b c", []connection{{"a", "IN_SYNC:c1 ADDED:c2", expired}, {"b", "IN_SYNC:c2 ADDED:c3", revoked}, {"c", "IN_SYNC:c3 STOP", ""}},
			"IN_SYNC ADDED IN_SYNC ADDED IN_SYNC STOP", []string{"a after c0", "b after c2", "c after c3"}, "", 0,
		},
		"there is no other": {
			"a", []connection{{"a", "IN_SYNC:c1", expired}}, "IN_SYNC", []string{"a after c0"}, "the credential has expired", 0,
		},
		"the other is refused, too": {
			"a x b", []connection{{"a", "IN_SYNC:c1", revoked}, {"b", "", ""}},
			"IN_SYNC", []string{"a after c0", "Bearer x refused"}, "the credential is not valid", 0,
		},
		"a connection that breaks uses the token again": {
			"a a b", []connection{{"a", "IN_SYNC:c1", ""}, {"a", "IN_SYNC:c1 STOP", ""}}, "IN_SYNC IN_SYNC STOP", []string{"a after c0", "a after c1"}, "", 1,
		},
		"the other cannot be had at once": {
			"a unreachable b", []connection{{"a", "IN_SYNC:c1", expired}, {"b", "IN_SYNC:c1 STOP", ""}},
			"IN_SYNC IN_SYNC STOP", []string{"a after c0", "b after c1"}, "", 1,
		},
		"a refusal that is not about the credential is final": {
			"a b", []connection{{"a", "IN_SYNC:c1", "Forbidden"}}, "IN_SYNC", []string{"a after c0"}, "the gateway refused the connection: Forbidden", 0,
		},
	} {
		t.Run(name, func(t *testing.T) {
			one, seen := sessions(t, (&tokens{next: strings.Fields(c.tokens)}).token, c.script)
			var events []string
			failed, lost := "", 0
			req := client.ChangesRequest{Kind: client.Kind{Singular: "network"}, After: "c0", Lost: func(error) { lost++ }}
			for change, err := range one.Changes(t.Context(), req) {
				if err != nil {
					failed = err.Error()
					continue
				}
				if events = append(events, change.Type); change.Type == "STOP" {
					break
				}
			}
			if got := strings.Join(events, " "); got != c.events {
				t.Errorf("events %s, want %s", got, c.events)
			}
			if !slices.Equal(*seen, c.seen) {
				t.Errorf("connections %q, want %q", *seen, c.seen)
			}
			if failed != c.fails {
				t.Errorf("failed with %q, want %q", failed, c.fails)
			}
			if lost != c.lost {
				t.Errorf("told of %d lost connections, want %d", lost, c.lost)
			}
		})
	}
}
