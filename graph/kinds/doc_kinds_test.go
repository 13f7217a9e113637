package kinds_test

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// TestTheDocsListTheKindsOfTheBinary holds the table of kinds against the
// catalogue; -update writes it.
func TestTheDocsListTheKindsOfTheBinary(t *testing.T) {
	const file, begin, end = "../../docs/embedded-kinds.md", "<!-- kinds -->\n", "<!-- end -->"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, ok := strings.Cut(string(raw), begin)
	got, after, ok2 := strings.Cut(rest, end)
	if !ok || !ok2 {
		t.Fatalf("%s has no table of kinds", file)
	}
	want := "| kind | short name | guarded references to | other references to |\n|---|---|---|---|\n"
	for _, k := range kindstest.Kinds(t) {
		to := map[bool][]string{}
		for _, r := range k.References {
			if credentials := r.Path == "spec.cloudCredentialsRef.secretName"; credentials || strings.HasPrefix(r.Path, "spec.import.") || slices.Contains(to[r.Guarded], r.Kind) {
				continue
			}
			to[r.Guarded] = append(to[r.Guarded], r.Kind)
		}
		want += fmt.Sprintf("| %s | %s | %s | %s |\n", k.Name, strings.Join(k.ShortNames, ", "), strings.Join(to[true], ", "), strings.Join(to[false], ", "))
	}
	if *update {
		if err := os.WriteFile(file, []byte(before+begin+want+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("%s (-want +got):\n%s", file, diff)
	}
}
