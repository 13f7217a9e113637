//go:build clients

package e2e_test

import (
	"net"
	"os/exec"
	"path/filepath"
	"testing"
)

// browserSuites are those that need Chromium: the page, one that is reloaded
// while it listens, pages of other origins, the React example, and pages with
// the caches of other people's clients.
var browserSuites = []string{"browser", "reload", "foreign", "example", "caches"}

func TestBrowser(t *testing.T) {
	needClients(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make browser` installs it", err)
	}
	for _, name := range browserSuites {
		s := suite{file: filepath.Join(clients, name+".test.mjs"), env: []string{"SLUICE_CHROMIUM=" + chromium}}
		if name == "foreign" || name == "example" {
			port := freePort(t)
			s.env = append(s.env, "SLUICE_PAGES="+port)
			s.args = []string{"--allowed-hosts", "gateway.test", "--allowed-origins", "http://friend.test:" + port + ",http://127.0.0.1:" + port}
		}
		if name == "caches" {
			s.args = []string{"--catalogue", filepath.Join(clients, name)}
		}
		t.Run(name, s.run)
	}
}

// freePort is a port of this machine on which nobody listens.
func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = l.Close() }()
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return port
}
