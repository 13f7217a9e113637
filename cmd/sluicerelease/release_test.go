package main

import (
	"archive/tar"
	"bufio"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestRelease_SaysWhatItDoesNotAccept(t *testing.T) {
	for _, c := range []struct {
		release release
		says    string
	}{
		{release{}, "version: it is empty"},
		{release{version: "a/b"}, "cannot be part of the name of a file"},
		{release{version: "v1", targets: []string{"plan9/amd64"}}, `targets: "plan9/amd64"; accepted are linux/amd64`},
	} {
		if err := c.release.validate(); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%+v: %v", c.release, err)
		}
	}
	there := release{version: "v1", out: t.TempDir(), targets: allTargets()}
	if err := there.build(t.Context()); err == nil || !strings.Contains(err.Error(), "remove it first") {
		t.Errorf("a folder that is there: %v", err)
	}
}

// TestRelease_MakesTheSameFilesTwiceAndTheyServe builds a release for this machine.
func TestRelease_MakesTheSameFilesTwiceAndTheyServe(t *testing.T) {
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	target := runtime.GOOS + "/" + runtime.GOARCH
	if !slices.Contains(allTargets(), target) {
		t.Skip("there are no releases for this system")
	}
	t.Chdir(filepath.Join("..", ".."))
	folder := t.TempDir()
	var sums []string
	for _, name := range []string{"first", "second"} {
		out := filepath.Join(folder, name)
		r := release{version: "v0.0.1-test", out: out, targets: []string{target}}
		if err := r.build(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(out, sumsFile))
		if err != nil {
			t.Fatal(err)
		}
		sums = append(sums, string(text))
	}
	if sums[0] != sums[1] || strings.Count(sums[0], "\n") == 0 {
		t.Errorf("%s\n%s", sums[0], sums[1])
	}
	name := "sluice_v0.0.1-test_" + strings.ReplaceAll(target, "/", "_")
	unpacked := untar(t, filepath.Join(folder, "first", name+".tar.gz"))
	for _, file := range []string{
		"README.md", "LICENSE", "man/man1/sluice-serve.1",
		"completions/sluice.bash", "completions/_sluice", "completions/sluice.fish", "completions/sluice.ps1",
	} {
		if info, err := os.Stat(filepath.Join(unpacked, name, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	serves(t, filepath.Join(unpacked, name, "sluice"))
	deb := filepath.Join(folder, "first", name+".deb")
	if _, err := exec.LookPath("dpkg-deb"); err != nil || runtime.GOOS != "linux" {
		return
	}
	root := t.TempDir()
	if out, err := exec.Command("dpkg-deb", "-x", deb, root).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, file := range []string{
		"usr/lib/systemd/system/sluice.service", "etc/sluice/sluice.yaml", "usr/share/man/man1/sluice.1.gz",
		"usr/share/bash-completion/completions/sluice", "usr/share/doc/sluice/copyright",
	} {
		if info, err := os.Stat(filepath.Join(root, file)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", file, err)
		}
	}
	for _, folder := range []string{"usr/bin", "usr/share/man/man1", "etc/sluice"} {
		if info, err := os.Stat(filepath.Join(root, folder)); err != nil || info.Mode().Perm() != 0o755 {
			t.Errorf("the folder %s: %v %v", folder, info, err)
		}
	}
	about, err := exec.Command("dpkg-deb", "-f", deb, "Package", "Version").Output()
	if err != nil || string(about) != "Package: sluice\nVersion: 0.0.1~test\n" {
		t.Errorf("%q %v", about, err)
	}
	serves(t, filepath.Join(root, "usr/bin/sluice"))
}

// untar unpacks an archive into a new folder.
func untar(t *testing.T, archive string) (folder string) {
	t.Helper()
	folder = t.TempDir()
	file, err := os.Open(archive)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	lines, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	in := tar.NewReader(lines)
	for {
		header, err := in.Next()
		if errors.Is(err, io.EOF) {
			return folder
		}
		if err != nil {
			t.Fatal(err)
		}
		to := filepath.Join(folder, path.Clean(header.Name))
		text, err := io.ReadAll(in)
		if err == nil {
			err = os.MkdirAll(filepath.Dir(to), 0o700)
		}
		if err == nil {
			err = os.WriteFile(to, text, os.FileMode(header.Mode))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// serves runs a binary as a gateway, and asks it.
func serves(t *testing.T, binary string) {
	t.Helper()
	cmd := exec.CommandContext(
		t.Context(), binary, "serve", "--listen", "127.0.0.1:0", "--data", t.TempDir(), "--log-format", "json",
	)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var line struct{ Msg, Address, Version string }
	for line.Address == "" && lines.Scan() {
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			t.Errorf("%s", lines.Text())
		}
	}
	if line.Version != "v0.0.1-test" {
		t.Errorf("it serves as %+v", line)
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Get(line.Address + "/healthz")
	if err != nil {
		t.Error(err)
	} else {
		text, err := io.ReadAll(answer.Body)
		if err != nil || string(text) != "ok\n" {
			t.Errorf("%q %v", text, err)
		}
		_ = answer.Body.Close()
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Error(err)
	}
	for lines.Scan() { // until it has ended
	}
	if err := cmd.Wait(); err != nil {
		t.Errorf("it ends with %v", err)
	}
}
