package arch_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestWhatIsReducedUnderTheRaceDetectorAlsoRunsInFull: a package whose tests ask
// whether the race detector is there is one of those that make test-all runs without it.
func TestWhatIsReducedUnderTheRaceDetectorAlsoRunsInFull(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "Makefile"))
	if err != nil {
		t.Fatal(err)
	}
	makefile := string(text)
	_, rest, _ := strings.Cut(makefile, "\nREDUCED := ")
	line, _, _ := strings.Cut(rest, "\n")
	runs := strings.Fields(line)
	if !strings.Contains(makefile, "$(if $(RACE),$(GO) test -vet=off -shuffle=on -timeout 9m $(REDUCED))") {
		t.Error("make test-all does not run the packages in REDUCED without the race detector")
	}
	reduced := map[string]bool{}
	for _, s := range sources(t) {
		for _, g := range s.file.Comments {
			if g.Pos() < s.file.Package && strings.HasPrefix(g.List[0].Text, "//go:build race") {
				reduced["./"+s.folder] = true
			}
		}
	}
	for folder := range reduced {
		if !slices.Contains(runs, folder) {
			t.Errorf("%s has tests that are smaller under the race detector: add it to REDUCED in the Makefile, so that they also run in full", folder)
		}
	}
	if len(reduced) == 0 {
		t.Error("no file is built for the race detector alone; REDUCED in the Makefile has no use then")
	}
}
