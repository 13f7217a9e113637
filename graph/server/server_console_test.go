package server_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/server"
)

func TestThePageIsOpenAndWhatItShowsNeedsACredential(t *testing.T) {
	text, identities := token(t)
	e := newEdge(t, plain, server.Config{Identities: identities})
	get := func(path string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, nil)
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		w := httptest.NewRecorder()
		e.ServeHTTP(w, r)
		return w
	}
	for _, path := range []string{"/", "/console/plain", "/console/LICENSES.txt", "/login", "/healthz"} {
		if w := get(path); w.Code != http.StatusOK || strings.Contains(w.Body.String(), "networks") {
			t.Errorf("%s: %d %s", path, w.Code, w.Body)
		}
	}
	for _, path := range []string{"/console/data", "/console//data", "/console/%64ata", "/metrics"} {
		for _, header := range [][]string{nil, {"Upgrade", "websocket"}, {"Upgrade", "WebSocket", "Connection", "Upgrade"}, {"Authorization", "Bearer " + text + "x"}} {
			if w := get(path, header...); w.Code == http.StatusOK || strings.Contains(w.Body.String(), "etwork") {
				t.Errorf("%s with %q: %d %.100s", path, header, w.Code, w.Body)
			}
		}
	}
	w := get("/console/data")
	if w.Code != http.StatusUnauthorized || w.Header().Get("WWW-Authenticate") != "Bearer" || !strings.Contains(w.Body.String(), `"UNAUTHENTICATED"`) {
		t.Errorf("%d %v %s", w.Code, w.Header(), w.Body)
	}
	w = get("/console/data", "Authorization", "Bearer "+text)
	if w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"name":"token:ci"`) || !strings.Contains(w.Body.String(), "networks(") {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
}

func TestWithoutASourceOfIdentitiesThePageHasItsDataAtOnce(t *testing.T) {
	e := newEdge(t, plain, server.Config{})
	if w := e.at(http.MethodGet, "/console/data"); w.Code != http.StatusOK || !strings.Contains(w.Body.String(), `"viewer":{"name":"anonymous","groups":[]}`) {
		t.Errorf("%d %.300s", w.Code, w.Body)
	}
	if w := e.at(http.MethodPost, "/console/data"); w.Code != http.StatusMethodNotAllowed || w.Header().Get("Allow") != "GET, HEAD" {
		t.Errorf("POST: %d %v", w.Code, w.Header())
	}
}
