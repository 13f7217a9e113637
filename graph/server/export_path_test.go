package server_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/server"
)

// TestExport_IsAnsweredToCallersWhoMay and to nobody else.
func TestExport_IsAnsweredToCallersWhoMay(t *testing.T) {
	text, identities := token(t)
	credential := http.Header{"Authorization": {"Bearer " + text}}
	foreign := credential.Clone()
	foreign.Set("Sec-Fetch-Site", "cross-site")
	for name, c := range map[string]struct {
		group, method string
		header        http.Header
		status        int
		says          string
	}{
		"an administrator": {"token:ops", "GET", credential, 200, "all for token:ci"},
		"no credential":    {"token:ops", "GET", nil, 401, `"code":"UNAUTHENTICATED"`},
		"no rights":        {"token:others", "GET", credential, 403, "you do not have the verb EXPORT; an administrator can give it"},
		"another page":     {"token:ops", "GET", foreign, 403, `"code":"FORBIDDEN"`},
		"POST":             {"token:ops", "POST", credential, 405, "use GET"},
		"HEAD":             {"token:ops", "HEAD", credential, 405, "use GET"},
	} {
		t.Run(name, func(t *testing.T) {
			e := newGuardedEdge(t, c.group, server.Config{
				Identities: identities,
				Export: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					_, _ = fmt.Fprint(w, "all for ", access.CallerFrom(r.Context()).Identity.Name)
				}),
			})
			r := httptest.NewRequest(c.method, "/export", nil)
			r.Host = "localhost"
			for name, values := range c.header {
				r.Header[name] = values
			}
			r.Header.Set("Accept", "*/*")
			w := httptest.NewRecorder()
			e.ServeHTTP(w, r)
			body, _ := io.ReadAll(w.Result().Body)
			if w.Code != c.status || !strings.Contains(string(body), c.says) {
				t.Errorf("%d %s", w.Code, body)
			}
		})
	}
}
