package server_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
	"github.com/sluicegw/sluice/graph/server"
)

// newGuardedEdge is a server that judges its callers; those of the group may do everything.
func newGuardedEdge(t *testing.T, adminGroup string, cfg server.Config) edge {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	svc, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store, Access: access.Config{Enabled: true, AdminGroup: adminGroup}})
	if err != nil {
		t.Fatal(err)
	}
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- svc.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = store.Close()
	})
	if err := svc.Index().Filled(ctx); err != nil {
		t.Fatal(err)
	}
	core, log := observer.New(zap.InfoLevel)
	cfg.Logger, cfg.AccessLog, cfg.Catalogue = zap.New(core), true, server.Single(svc, kindstest.API(t))
	s, err := server.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return edge{Handler: s.Handler(), log: log}
}

// TestACatalogueIsReplacedByCallersWhoMay and by nobody else.
func TestACatalogueIsReplacedByCallersWhoMay(t *testing.T) {
	text, identities := token(t)
	credential := http.Header{"Authorization": {"Bearer " + text}}
	with := func(name, value string) http.Header {
		h := credential.Clone()
		h.Set(name, value)
		return h
	}
	for name, c := range map[string]struct {
		group, method string
		header        http.Header
		status        int
		says          string
	}{
		"an administrator":           {"token:ops", "POST", credential, 200, `{"data":"of token:ci"}`},
		"with a charset":             {"token:ops", "POST", with("Content-Type", "application/json; charset=utf-8"), 200, `of token:ci`},
		"no credential":              {"token:ops", "POST", nil, 401, `"code":"UNAUTHENTICATED"`},
		"no rights":                  {"token:others", "POST", credential, 403, "you do not have the verb CATALOGUE; an administrator can give it"},
		"a form":                     {"token:ops", "POST", with("Content-Type", "text/plain"), 415, "application/json"},
		"no type":                    {"token:ops", "POST", with("Content-Type", ""), 415, "application/json"},
		"another page":               {"token:ops", "POST", with("Sec-Fetch-Site", "cross-site"), 403, `"code":"FORBIDDEN"`},
		"GET":                        {"token:ops", "GET", credential, 405, "use POST"},
		"PUT":                        {"token:ops", "PUT", credential, 405, "use POST"},
		"the upgrade to a WebSocket": {"token:ops", "POST", http.Header{"Upgrade": {"websocket"}}, 401, `"code":"UNAUTHENTICATED"`},
	} {
		t.Run(name, func(t *testing.T) {
			var refused []failure.Code
			calls := 0
			e := newGuardedEdge(t, c.group, server.Config{
				Identities: identities,
				Refused:    func(_ context.Context, err *failure.Error) { refused = append(refused, err.Code) },
				Reload: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					calls++
					_, _ = fmt.Fprintf(w, `{"data":"of %s"}`, access.CallerFrom(r.Context()).Identity)
				}),
			})
			w := e.from("203.0.113.9:1", c.method, "/catalogue", c.header, "{}")
			if w.Code != c.status || !strings.Contains(w.Body.String(), c.says) {
				t.Errorf("%d %s", w.Code, w.Body)
			}
			if (w.Code == 200) != (calls == 1) {
				t.Errorf("asked %d times", calls)
			}
			if allow := w.Header().Get("Allow"); (w.Code == 405) != (allow == "POST") {
				t.Errorf("Allow: %q", allow)
			}
			if denied := c.says != `"code":"FORBIDDEN"` && (w.Code == 401 || w.Code == 403); denied != (len(refused) == 1) {
				t.Errorf("refused %v", refused)
			}
			if lines := e.log.FilterMessage("access").Len(); (w.Code == 401 || w.Code == 403) != (lines == 1) {
				t.Errorf("%d lines in the access log", lines)
			}
		})
	}
}

func TestWithoutIdentitiesACatalogueIsReplacedOverTheAdminSocketOnly(t *testing.T) {
	called := false
	e := newEdge(t, plain, server.Config{Reload: http.HandlerFunc(func(http.ResponseWriter, *http.Request) { called = true })})
	w := e.from("127.0.0.1:1", "POST", "/catalogue", nil, "{}")
	if w.Code != 403 || !strings.Contains(w.Body.String(), "over its admin socket only") || !strings.Contains(w.Body.String(), `"code":"FORBIDDEN"`) || called {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	e = newEdge(t, plain, server.Config{})
	if w := e.from("127.0.0.1:1", "POST", "/catalogue", nil, "{}"); w.Code != 404 {
		t.Errorf("nobody answers, and it is %d %s", w.Code, w.Body)
	}
}

func TestAReplacementDoesNotHoldUpAStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		text, identities := token(t)
		g := run(t, plain, server.Config{Identities: identities, Reload: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			<-r.Context().Done()
			_, _ = io.WriteString(w, "it was told")
		})})
		c := g.dial()
		_, _ = fmt.Fprintf(c, "POST /catalogue HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nAuthorization: Bearer %s\r\nContent-Length: 2\r\n\r\n{}", text)
		synctest.Wait()
		heard := make(chan string)
		go func() {
			text, _ := io.ReadAll(c)
			heard <- string(text)
		}()
		if took := g.stopped(t); took > 2*time.Second {
			t.Errorf("it took %v", took)
		}
		if text := <-heard; !strings.Contains(text, "it was told") {
			t.Errorf("the client heard %s", text)
		}
		_ = c.Close()
	})
}
