//go:build clients

package e2e_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

// browserSuites are those that need Chromium: the page, and one that is
// reloaded while it listens.
var browserSuites = []string{"browser", "reload"}

func TestBrowser(t *testing.T) {
	needClients(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make browser` installs it", err)
	}
	for _, name := range browserSuites {
		t.Run(name, func(t *testing.T) { suite(t, filepath.Join(clients, name+".test.mjs"), "SLUICE_CHROMIUM="+chromium) })
	}
}
