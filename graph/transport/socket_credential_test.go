package transport_test

import (
	"context"
	"encoding/json"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/transport"
)

// soon is a caller whose credential ends in three seconds, or when it is revoked.
func soon(revoked context.Context) access.Caller {
	return access.Caller{Identity: &access.Identity{Name: "token:ci", Source: "token", Until: time.Now().Add(3 * time.Second), Revoked: revoked}}
}

func TestSocket_ASocketWhoseCredentialEndsIsClosedWith4403(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		revoked, revoke := context.WithCancel(t.Context())
		defer revoke()
		g := serveInMemory(t, transport.Config{Init: func(ctx context.Context, payload json.RawMessage) (context.Context, error) {
			switch string(payload) {
			case `{"as":"nobody"}`:
				return ctx, failure.Unauthenticated(access.ErrNoCredential)
			case `{"as":"later"}`:
				return ctx, &failure.Error{Code: failure.CodeUnavailable, Message: "the issuer does not answer", RetryAfter: 2}
			case `{"as":"expiring"}`:
				return access.WithCaller(ctx, soon(t.Context())), nil
			}
			caller := soon(revoked)
			caller.Identity.Until = time.Time{}
			return access.WithCaller(ctx, caller), nil
		}})
		defer g.stop()
		for _, c := range []struct {
			as     string
			ends   func()
			took   time.Duration
			code   int
			reason string
		}{
			{"nobody", nil, 0, 4403, "UNAUTHENTICATED: a credential is needed"},
			{"later", nil, 0, 1013, "UNAVAILABLE: the issuer does not answer"},
			{"expiring", func() {}, 3 * time.Second, 4403, "UNAUTHENTICATED: the credential has expired"},
			{"revoked", revoke, 0, 4403, "UNAUTHENTICATED: the credential was revoked"},
			{"revoked before", nil, 0, 4403, "UNAUTHENTICATED: the credential was revoked"},
		} {
			p := g.connect("graphql-transport-ws")
			begin := time.Now()
			p.say(`{"type":"connection_init","payload":{"as":"` + c.as + `"}}`)
			if c.ends != nil {
				p.hear(`{"type":"connection_ack"}`)
				p.subscribe("1", "subscription{feed}")
				<-g.fed
				c.ends()
			}
			code, reason := p.closed()
			if took := time.Since(begin); code != c.code || reason != c.reason || took != c.took {
				t.Errorf("%s: closed with %d %q after %v", c.as, code, reason, took)
			}
		}
	})
}

// TestSocket_AStreamThatAlwaysHasAnEventEndsWithItsCredential has a client that reads for as long as there is something.
func TestSocket_AStreamThatAlwaysHasAnEventEndsWithItsCredential(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := serveInMemory(t, transport.Config{Queue: 2})
		defer g.stop()
		caller := access.Caller{Identity: &access.Identity{Name: "token:ci", Source: "token", Until: time.Now().Add(100 * time.Millisecond)}}
		g.server.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			g.ServeHTTP(w, r.WithContext(access.WithCaller(r.Context(), caller)))
		})
		s := g.listen(http.MethodGet, "/?query=subscription{count(to:1000000000)}", nil, "")
		defer func() { _ = s.conn.Close() }()
		begin, before := time.Now(), sent{}
		for time.Since(begin) < time.Second {
			e, ok := s.read()
			if !ok {
				t.Fatal("the stream was cut off")
			}
			if e.name == "complete" {
				if !strings.Contains(before.data, "the credential has expired") {
					t.Errorf("before the end came %+v", before)
				}
				return
			}
			before = e
		}
		t.Errorf("a second later there still was an event: %+v", before)
	})
}

func TestSocket_ACallerIsRefusedWhatItMayNotHave(t *testing.T) {
	open := map[transport.Use]int{}
	var mu sync.Mutex
	limit := func(_ context.Context, use transport.Use) (func(), error) {
		mu.Lock()
		defer mu.Unlock()
		if open[use] == 1 {
			return nil, &failure.Error{Code: failure.CodeLimitExceeded, Message: "too much", Retryable: true, RetryAfter: 7}
		}
		open[use]++
		return func() {
			mu.Lock()
			defer mu.Unlock()
			open[use]--
		}, nil
	}
	g := serve(t, transport.Config{Admit: limit})
	p := g.open()
	for range 3 { // each gives its place back
		p.subscribe("q", "{hello}")
		p.hear(`{"id":"q","type":"next","payload":{"data":{"hello":"world"}}}`)
		p.hear(`{"id":"q","type":"complete"}`)
	}
	p.subscribe("1", "subscription{feed}")
	<-g.fed
	p.subscribe("2", "subscription{feed}")
	if got := p.read(); !strings.Contains(got, "too much") {
		t.Error(got)
	}
	second := g.connect("graphql-transport-ws")
	second.say(`{"type":"connection_init"}`)
	if code, reason := second.closed(); code != 1013 || reason != "LIMIT_EXCEEDED: too much" {
		t.Errorf("a second socket is closed with %d %q", code, reason)
	}
	if got := g.ask(http.MethodGet, "/?query={hello}", map[string]string{"Accept": "application/json"}, ""); got.res.StatusCode != http.StatusOK {
		t.Errorf("a query: %s", got.res.Status)
	}
	if got := g.ask(http.MethodGet, "/?query=subscription{feed}", nil, ""); got.res.StatusCode != http.StatusTooManyRequests || got.res.Header.Get("Retry-After") != "7" {
		t.Errorf("an event stream: %s, %v", got.res.Status, got.res.Header)
	}
	p.subscribe("3", "panic")
	if code, reason := p.closed(); code != 1011 {
		t.Errorf("a panic closes with %d %q", code, reason)
	}
	g.stop()
	left := func() int {
		mu.Lock()
		defer mu.Unlock()
		return open[transport.UseRequest] + open[transport.UseSubscription] + open[transport.UseSocket]
	}
	for deadline := time.Now().Add(patience); left() > 0 && time.Now().Before(deadline); {
		runtime.Gosched()
	}
	mu.Lock()
	defer mu.Unlock()
	if open[transport.UseRequest]+open[transport.UseSubscription]+open[transport.UseSocket] != 0 {
		t.Errorf("not given back: %v", open)
	}
}
