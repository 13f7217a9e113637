package server_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/graph/server"
)

func TestReady_ReadyzSaysWhetherTheStoreAnswers(t *testing.T) {
	e := newEdge(t, plain, server.Config{Ready: func(context.Context) error { return errors.New("secret reason") }})
	w := httptest.NewRecorder()
	e.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "http://localhost/readyz", nil))
	if w.Code != http.StatusServiceUnavailable || strings.Contains(w.Body.String(), "secret") {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	filling := func() []string { return []string{"Network: waits"} }
	e = newEdge(t, plain, server.Config{Ready: func(context.Context) error { return &server.NotReadyError{Why: "1 of 2"} }, Filling: filling})
	if w := e.at(http.MethodGet, "/readyz?verbose"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "1 of 2\nNetwork: waits\n" {
		t.Errorf("while a kind is read: %d %s", w.Code, w.Body)
	}
	e = newEdge(t, plain, server.Config{Filling: filling})
	if w := e.at(http.MethodGet, "/readyz?verbose"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "ok\nNetwork: waits\ncatalogue ") {
		t.Errorf("while a kind is read again: %d %s", w.Code, w.Body)
	}
	dead := func() []string { return []string{"service crm UNAVAILABLE"} }
	e = newEdge(t, plain, server.Config{Services: dead})
	if w := e.at(http.MethodGet, "/readyz?verbose"); w.Code != http.StatusOK || !strings.HasPrefix(w.Body.String(), "ok\nservice crm UNAVAILABLE\ncatalogue ") {
		t.Errorf("while a service is dead: %d %s", w.Code, w.Body)
	}
	e = newEdge(t, plain, server.Config{ReadOnly: true})
	if w := e.at(http.MethodGet, "/readyz"); w.Code != http.StatusOK || w.Body.String() != "ok\nread-only: changes are refused\n" {
		t.Errorf("read-only: %d %s", w.Code, w.Body)
	}
	e = newEdge(t, plain, server.Config{Ready: func(context.Context) error { return fmt.Errorf("%w: secret", backend.ErrNoSpace) }})
	if w := e.at(http.MethodGet, "/readyz"); w.Code != http.StatusServiceUnavailable || w.Body.String() != "the store has no space left and takes no changes\n" {
		t.Errorf("a full disk: %d %s", w.Code, w.Body)
	}
}

func TestReady_TheMetricIsWhatReadyzAnswers(t *testing.T) {
	for want, reason := range map[string]error{"sluice_ready 1\n": nil, "sluice_ready 0\n": errors.New("the store is away")} {
		synctest.Test(t, func(t *testing.T) { // so that a busy machine does not end the wait of the scrape
			e := newEdge(t, plain, server.Config{Ready: func(context.Context) error { return reason }})
			if got := e.at("GET", "/metrics").Body.String(); !strings.Contains(got, want) {
				t.Errorf("%v: no line %q", reason, want)
			}
		})
	}
}

// TestReady_AScrapeDoesNotWaitForTheStore since Prometheus gives up on a scrape that takes too long.
func TestReady_AScrapeDoesNotWaitForTheStore(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var hangs atomic.Bool
		e := newEdge(t, plain, server.Config{Ready: func(ctx context.Context) error {
			if !hangs.Load() {
				return nil
			}
			<-ctx.Done()
			return ctx.Err()
		}})
		scrape := func(want string) {
			t.Helper()
			begin := time.Now()
			if got := e.at("GET", "/metrics").Body.String(); !strings.Contains(got, want) {
				t.Errorf("no line %q", want)
			}
			if took := time.Since(begin); took > 200*time.Millisecond {
				t.Errorf("it took %v", took)
			}
		}
		scrape("sluice_ready 1\n")
		hangs.Store(true)
		scrape("sluice_ready 1\n")
		time.Sleep(15 * time.Second)
		scrape("sluice_ready 0\n")
		scrape("sluice_ready 0\n")
		time.Sleep(15 * time.Second)
		hangs.Store(false)
		scrape("sluice_ready 1\n")
	})
}
