package e2e_test

import (
	"os/exec"
	"path/filepath"
	"testing"
)

func TestBrowser(t *testing.T) {
	needClients(t)
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		t.Fatalf("%v; `make browser` installs it", err)
	}
	suite(t, filepath.Join(clients, "browser.test.mjs"), "SLUICE_CHROMIUM="+chromium)
}
