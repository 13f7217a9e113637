package e2e_test

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
)

// meanwhile is the address of a way to the gateway on which something happens once, before
// the first request that has the text.
func (g *gateway) meanwhile(text string, happens func()) string {
	g.t.Helper()
	to, err := url.Parse(g.address)
	if err != nil {
		g.t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	var once sync.Once
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			g.t.Error(err)
		}
		if bytes.Contains(body, []byte(text)) {
			once.Do(happens)
		}
		r.Body, r.Host = io.NopCloser(bytes.NewReader(body)), to.Host
		proxy.ServeHTTP(w, r)
	}))
	g.t.Cleanup(srv.Close)
	return srv.URL
}

func TestWhatLosesTheLabelsMeanwhileIsNotDeleted(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	dir := folder(t, map[string]string{"a.yaml": network("net-a", "web", 1500)})
	for name, args := range map[string][]string{
		"delete": {"delete", "networks", "-l", "team=web"},
		"prune":  {"apply", "-f", dir, "--prune", "-l", "team=web", "--yes"},
	} {
		t.Run(name, func(t *testing.T) {
			for _, name := range []string{"net-a", "net-b", "net-c", "net-d"} {
				g.cli(network(name, "web", 1500), "apply", "-f", "-")
			}
			server := g.meanwhile("mutation Delete", func() {
				g.cli("", "label", "network", "net-b", "team=db", "--overwrite")
				g.cli("", "patch", "network", "net-c", "-p", "spec: {resource: {mtu: 9000}}")
				g.cli("", "delete", "network", "net-d")
			})
			out, errOut, code := sluice(t, "", append(args, "--server", server)...)
			if code != 0 || strings.Contains(errOut, "sluice:") {
				t.Errorf("exit %d\n%s%s", code, out, errOut)
			}
			if strings.Contains(out, "net-b") || !strings.Contains(out, "Network default/net-c DELETED") || strings.Contains(out, "net-d") {
				t.Errorf("net-b lost the label, net-c was changed otherwise, net-d is gone:\n%s", out)
			}
			if !strings.Contains(g.stored("net-b"), "team: db") {
				t.Error(g.stored("net-b"))
			}
		})
	}
}

func TestAChangeIsMadeAgainOnWhatIsStoredThen(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	g.cli(network("net-a", "web", 1500), "apply", "-f", "-")
	server := g.meanwhile("mutation PatchMetadata", func() { g.cli("", "label", "network", "net-a", "theirs=1") })
	if out, errOut, code := sluice(t, "", "label", "network", "net-a", "mine=1", "--server", server); code != 0 {
		t.Errorf("exit %d\n%s%s", code, out, errOut)
	}
	if got := g.stored("net-a"); !strings.Contains(got, "mine: \"1\"") || !strings.Contains(got, "theirs: \"1\"") {
		t.Error(got)
	}
	server = g.meanwhile("mutation Apply", func() { g.cli("", "delete", "network", "net-a") })
	if _, errOut, code := sluice(t, "", "patch", "network", "net-a", "-p", "spec: {resource: {mtu: 9000}}", "--server", server); code != 3 || !strings.Contains(errOut, "does not exist") {
		t.Errorf("it was deleted meanwhile: exit %d\n%s", code, errOut)
	}
}
