package kindstest

import (
	"os"
	"path/filepath"
	"testing"
)

// Published is the folder of the schemas (crds) and manifests (samples, examples)
// that others published for the kinds of the product. It lies beside the
// repository and is no part of it; where it is not at hand the test is skipped.
func Published(t testing.TB) string {
	t.Helper()
	root, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(root, "go.mod")); err == nil {
			break
		}
		if root == filepath.Dir(root) {
			t.Fatal("no go.mod above the test")
		}
		root = filepath.Dir(root)
	}
	folder := filepath.Join(root, "..", "shared", "data", "orc")
	if _, err := os.Stat(folder); err != nil {
		t.Skipf("the published schemas and manifests are not at hand: %v", err)
	}
	return folder
}
