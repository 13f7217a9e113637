package kindstest

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/manifest"
)

// Published returns the folder with the schemas (crds) and manifests (samples, examples) that others have published for
// the kinds of the product. It is beside the repository and not part of it. If it does not exist, the test is skipped.
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

// Mistake is a place where a published manifest violates its own schema.
type Mistake struct {
	// Says is a part of the message with which the manifest is refused.
	Says string
	// Mend is the text in the manifest that must be replaced, and By the text that replaces it.
	Mend, By string
}

// Mistakes returns the mistakes in the published manifests. A key is the file, followed by the kind and the name of the
// resource.
func Mistakes() map[string]Mistake {
	return map[string]Mistake{
		"samples/trunk.yaml Trunk/trunk-sample":                                {`spec.resource.subPorts: is not a field of TrunkResourceSpec; did you mean "subports"?`, "subPorts:", "subports:"},
		"samples/volume.yaml Volume/volume-sample":                             {"spec.resource.metadata: must be a list", "      key1: value1\n      key2: value2", "      - {name: key1, value: value1}\n      - {name: key2, value: value2}"},
		"examples/local-config/external-network.yaml Network/external-network": {"set import: it is required while managementPolicy is unmanaged", "  import:", "  import: {filter: {name: public}}"},
	}
}

// Manifests returns the published manifests in some folders, ordered by folder and file. Mistakes in them are
// corrected, and Secrets are left out.
func Manifests(t testing.TB, folders ...string) (out []string) {
	t.Helper()
	root, mistakes := Published(t), Mistakes()
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.yaml"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", folder, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, part := range manifest.Split(string(raw)) {
				d, err := manifest.Parse(part.Text)
				if err != nil {
					t.Fatal(err)
				}
				text := part.Text
				if m, ok := mistakes[folder+"/"+filepath.Base(file)+" "+d.Kind+"/"+d.Metadata.Name]; ok {
					text = strings.Replace(text, m.Mend, m.By, 1)
				}
				if d.Kind != "Secret" {
					out = append(out, text)
				}
			}
		}
	}
	return out
}

// ReadYAML reads a YAML file into a value that encoding/json can fill.
func ReadYAML(t testing.TB, file string, into any) {
	t.Helper()
	raw, err := os.ReadFile(file)
	if err == nil {
		raw, err = manifest.ToJSON(string(raw))
	}
	if err == nil {
		err = json.Unmarshal(raw, into)
	}
	if err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
