package commandtest

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// Gateway is a gateway for tests. It has one kind and records the Authorization headers of requests.
type Gateway struct {
	*httptest.Server
	authorization []string
	// Accepts is the only accepted token. Empty accepts all requests, and * all requests with a token.
	Accepts string
	// Issuers are the issuers with which callers can log in.
	Issuers []credential.Issuer
	// Deprecation and Sunset are headers of answers; empty for none.
	Deprecation, Sunset string
}

// ServeHTTP implements [http.Handler].
func (g *Gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	for name, value := range map[string]string{"Deprecation": g.Deprecation, "Sunset": g.Sunset} {
		if value != "" {
			w.Header().Set(name, value)
		}
	}
	if r.URL.Path == "/login" {
		_ = json.NewEncoder(w).Encode(map[string]any{"issuers": g.Issuers})
		return
	}
	token := r.Header.Get("Authorization")
	g.authorization = append(g.authorization, token)
	if g.Accepts == "*" && token == "" || g.Accepts != "*" && g.Accepts != "" && token != "Bearer "+g.Accepts {
		w.WriteHeader(http.StatusUnauthorized)
		_, _ = fmt.Fprint(
			w,
			`{"errors":[{"message":"the credential is not valid","extensions":{"code":"UNAUTHENTICATED"}}]}`,
		)
		return
	}
	_, _ = fmt.Fprint(
		w,
		`{"data":{"viewer":{"name":"oidc:corp:ada","source":"oidc:corp","groups":["oidc:corp:dev"],"expiresAt":null},"kinds":[{"name":"Network","plural":"networks","singular":"network"}],"updateKind":{"kind":{"name":"Network","controlled":true}}}}`,
	)
}

// StartGateway starts a gateway for a test.
func StartGateway(t *testing.T) *Gateway {
	t.Helper()
	g := &Gateway{}
	g.Server = httptest.NewServer(g)
	t.Cleanup(g.Close)
	return g
}

// Authorization runs the command api-resources and returns the Authorization headers that the gateway received from it.
func (g *Gateway) Authorization(t *testing.T, newRoot func(terminal.Streams) *cobra.Command, args ...string) string {
	t.Helper()
	g.authorization = nil
	Must(t, newRoot, append([]string{"api-resources"}, args...)...)
	return strings.Join(g.authorization, ", ")
}
