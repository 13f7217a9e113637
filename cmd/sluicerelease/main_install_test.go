package main

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/mod/module"
	"golang.org/x/mod/zip"
)

// TestMain_InstallsFromAModuleProxy puts the commit into a proxy, which is a folder, and has the go command load the
// binary from there as `go install` does: with all files that are embedded, and without a replacement of a module. It
// builds nothing.
func TestMain_InstallsFromAModuleProxy(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	root, err := filepath.Abs(filepath.Join("..", ".."))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(root, ".git")); err != nil {
		t.Skip("this is no checkout")
	}
	version := module.Version{Path: "github.com/sluicegw/sluice", Version: "v0.0.1-test"}
	proxy := t.TempDir()
	publish(t, root, proxy, version)
	out, err := exec.Command("go", "env", "GOMODCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	known := filepath.Join(strings.TrimSpace(string(out)), "cache", "download")
	cache := t.TempDir()
	cmd := exec.CommandContext(t.Context(), "go", "install", "-n", "-modcacherw", version.Path+"/cmd/sluice@"+version.Version)
	cmd.Dir = t.TempDir()
	cmd.Env = append(cmd.Environ(), "GOPROXY=file://"+proxy+",file://"+known, "GONOSUMDB=*", "GOFLAGS=",
		"GOMODCACHE="+cache, "GOBIN="+t.TempDir(), "CGO_ENABLED=0")
	text, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if !strings.Contains(string(text), "/sluice@"+version.Version+"/cmd/sluice/main.go") {
		t.Error("it would not compile the binary from the proxy")
	}
}

// publish puts a commit of a repository into a proxy, as https://go.dev/ref/mod#goproxy-protocol says.
func publish(t *testing.T, root, proxy string, version module.Version) {
	t.Helper()
	folder := filepath.Join(proxy, filepath.FromSlash(version.Path), "@v")
	text, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err == nil {
		err = os.MkdirAll(folder, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("list", version.Version+"\n")
	write(version.Version+".mod", string(text))
	write(version.Version+".info", fmt.Sprintf(`{"Version":%q,"Time":"2026-01-01T00:00:00Z"}`, version.Version))
	file, err := os.Create(filepath.Join(folder, version.Version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	clone := t.TempDir() // package zip does not know the work trees of git
	if out, err := exec.Command("git", "clone", "--quiet", "--no-checkout", root, clone).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if err := errors.Join(zip.CreateFromVCS(file, version, clone, "HEAD", ""), file.Close()); err != nil {
		t.Fatal(err)
	}
}
