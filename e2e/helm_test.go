package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// TestHelm_WhatIsKeptWasRenderedByThisChart compares the chart, and what it was rendered to, with the checksums that the
// last check by Helm itself has left. It takes a minute to compile Helm, so that check is a command of its own.
func TestHelm_WhatIsKeptWasRenderedByThisChart(t *testing.T) {
	kept, err := os.ReadFile("../deploy/helm/testdata/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	var sums bytes.Buffer
	for _, folder := range []string{"sluice", "testdata"} {
		err := filepath.WalkDir("../deploy/helm/"+folder, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || entry.Name() == "SHA256SUMS" {
				return err
			}
			text, err := os.ReadFile(path)
			name := strings.TrimPrefix(filepath.ToSlash(path), "../deploy/helm/")
			_, _ = fmt.Fprintf(&sums, "%x  ../%s\n", sha256.Sum256(text), name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if sums.String() != string(kept) {
		t.Error("the chart, the values of its tests or the alerts have changed: `make helm-update` renders and checks it again")
	}
}

// TestHelm_TheSettingsAreThoseOfTheGateway reads the settings that the chart writes as the gateway does.
func TestHelm_TheSettingsAreThoseOfTheGateway(t *testing.T) {
	files, err := filepath.Glob("../deploy/helm/testdata/*/rendered.yaml")
	if err != nil || len(files) < 3 {
		t.Fatalf("%v %v", files, err)
	}
	for _, path := range files {
		settings := chartSettings(t, path)
		if settings == "" {
			t.Errorf("%s has no settings", path)
			continue
		}
		dir := folder(t, map[string]string{"sluice.yaml": settings})
		if out, err := runLine(t, "sluice config print --config sluice.yaml", dir); err != nil || !bytes.Contains(out, []byte("0.0.0.0:8080")) {
			t.Errorf("%s: %v\n%s\n%s", path, err, out, settings)
		}
	}
}

// chartSettings returns the text of sluice.yaml in the ConfigMap of a file.
func chartSettings(t *testing.T, path string) string {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	objects := yaml.NewDecoder(file)
	for {
		var object struct {
			Kind string
			Data map[string]string
		}
		err := objects.Decode(&object)
		switch {
		case err == io.EOF:
			return ""
		case err != nil:
			t.Fatal(err)
		case object.Kind == "ConfigMap":
			return object.Data["sluice.yaml"]
		}
	}
}
