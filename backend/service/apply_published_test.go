package service_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestApply_ThePublishedManifestsAreAccepted creates what every published manifest says,
// each document alone: what it refers to may be missing. Those that break
// their own schema are refused by path and rule, and accepted once they are mended.
func TestApply_ThePublishedManifestsAreAccepted(t *testing.T) {
	root := kindstest.Published(t)
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	broken, kinds, docs := kindstest.Mistakes(), map[string]bool{}, map[string]int{}
	for _, pattern := range []string{"samples/*.yaml", "examples/*/*.yaml"} {
		files, err := filepath.Glob(filepath.Join(root, pattern))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %d files, %v", pattern, len(files), err)
		}
		for _, file := range files {
			raw, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			rel, err := filepath.Rel(root, file)
			if err != nil {
				t.Fatal(err)
			}
			namespace := strings.NewReplacer("/", "-", ".yaml", "", "_", "-").Replace(rel)
			for _, part := range manifest.Split(string(raw)) {
				d, err := manifest.Parse(part.Text)
				if err != nil {
					t.Fatalf("%s: %v", rel, err)
				}
				kinds[d.Kind] = true
				docs[strings.Split(rel, "/")[0]]++
				apply := func(text string) (*service.Written, error) {
					return s.Writer.Apply(context.Background(), service.ApplyRequest{Manifest: text, Namespace: &namespace})
				}
				out, err := apply(part.Text)
				name := rel + " " + d.Kind + "/" + d.Metadata.Name
				if b, ok := broken[name]; ok {
					delete(broken, name)
					if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); !strings.Contains(e.Error(), b.Says) {
						t.Errorf("%s: %v; it says nothing of %q", name, err, b.Says)
					}
					out, err = apply(strings.Replace(part.Text, b.Mend, b.By, 1))
				}
				if err != nil || out.Outcome != service.Created {
					t.Errorf("%s: %+v %v", name, out, err)
				}
			}
		}
	}
	for name := range broken {
		t.Errorf("there is no such manifest: %s", name)
	}
	if len(kinds) != 27 || docs["samples"] != 42 || docs["examples"] == 0 {
		t.Errorf("%d kinds, %v documents", len(kinds), docs)
	}
}
