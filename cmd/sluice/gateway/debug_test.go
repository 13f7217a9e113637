package gateway

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// debugAnswer asks the debug listener of a gateway for a path.
func (s *shop) debugAnswer(method, path string, header http.Header) *httptest.ResponseRecorder {
	on := shared{store: s.store, changes: s.changes, owners: &owners{}, measures: newMeasures()}
	r := httptest.NewRequestWithContext(s.Context(), method, path, nil)
	r.Host = "127.0.0.1:6060"
	for name, values := range header {
		if name == "Host" {
			r.Host = values[0]
			continue
		}
		r.Header[name] = values
	}
	w := httptest.NewRecorder()
	debugHandler(func() debugState { return s.catalogues.state(on) }).ServeHTTP(w, r)
	return w
}

func TestDebug_ShowsTheStateWithoutValues(t *testing.T) {
	s := openShop(t, shelves)
	s.post(`mutation { createShelf(input: {name: "a", spec: {label: "a value"}}) { shelf { id } } }`)
	w := s.debugAnswer("GET", debugStatePath, nil)
	if w.Code != http.StatusOK || w.Header().Get("Cache-Control") != "no-store" {
		t.Fatal(w.Code, w.Header())
	}
	var state debugState
	if err := json.Unmarshal(w.Body.Bytes(), &state); err != nil {
		t.Fatal(err)
	}
	if state.Index == nil || state.Index.Limit == 0 || state.Server.MemoryLimit == 0 || state.Version == "" {
		t.Errorf("%+v", state)
	}
	if strings.Contains(w.Body.String(), "a value") {
		t.Error(w.Body)
	}
}

// TestDebug_IsForThisMachine: a page in a browser cannot ask, neither by another origin nor by a name that DNS leads here;
// and nobody learns the command line, in which a URL may have a password.
func TestDebug_IsForThisMachine(t *testing.T) {
	s := openShop(t, shelves)
	for name, c := range map[string]struct {
		method, path string
		header       http.Header
		want         int
	}{
		"localhost":            {"GET", debugStatePath, http.Header{"Host": {"localhost:6060"}}, http.StatusOK},
		"IPv6":                 {"GET", debugStatePath, http.Header{"Host": {"[::1]:6060"}}, http.StatusOK},
		"a name":               {"GET", debugStatePath, http.Header{"Host": {"evil.example:6060"}}, http.StatusForbidden},
		"another origin":       {"GET", debugStatePath, http.Header{"Origin": {"https://evil.example"}}, http.StatusForbidden},
		"profiles":             {"GET", "/debug/pprof/goroutine?debug=1", nil, http.StatusOK},
		"profiles of a page":   {"GET", "/debug/pprof/heap", http.Header{"Origin": {"null"}}, http.StatusForbidden},
		"an image of a page":   {"GET", "/debug/pprof/heap?gc=1", http.Header{"Sec-Fetch-Site": {"cross-site"}}, http.StatusForbidden},
		"another port's page":  {"GET", "/debug/pprof/heap?gc=1", http.Header{"Sec-Fetch-Site": {"same-site"}}, http.StatusForbidden},
		"typed into a browser": {"GET", debugStatePath, http.Header{"Sec-Fetch-Site": {"none"}}, http.StatusOK},
		"a link between them":  {"GET", "/debug/pprof/", http.Header{"Sec-Fetch-Site": {"same-origin"}}, http.StatusOK},
		"the command line":     {"GET", "/debug/pprof/cmdline", nil, http.StatusNotFound},
		"another method":       {"POST", debugStatePath, nil, http.StatusMethodNotAllowed},
		"a path that is none":  {"GET", "/metrics", nil, http.StatusNotFound},
	} {
		if w := s.debugAnswer(c.method, c.path, c.header); w.Code != c.want {
			t.Errorf("%s: %d, want %d: %s", name, w.Code, c.want, w.Body)
		}
	}
}

func TestListenDebug_NamesTheSettingIfTheAddressIsTaken(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	s := New(config.NewGateway(), nil)
	if on, err := s.listenDebug(); on != nil || err != nil {
		t.Errorf("without the setting: %v, %v", on, err)
	}
	s.DebugListen = taken.Addr().String()
	if _, err := s.listenDebug(); err == nil || !strings.HasPrefix(err.Error(), "debug-listen: "+s.DebugListen+" is in use") {
		t.Error(err)
	}
}
