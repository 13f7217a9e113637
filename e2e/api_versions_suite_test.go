package e2e_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

// TestAPIVersions_TheCommandLineUsesOne runs tests of the command line by v1.0 of the embedded catalogue, which has all
// that the catalogue has.
func TestAPIVersions_TheCommandLineUsesOne(t *testing.T) {
	sameOnEachStore(t)
	if testing.Short() {
		t.Skip("long: make test-all")
	}
	t.Setenv("SLUICE_API", "v1.0")
	for name, suite := range map[string]func(*testing.T){
		"apply and get":     TestApplyAndGetRoundTrip,
		"create and delete": TestCreateAndDeleteFromTheCommandLine,
		"edit":              TestEditChangesKeepsAndRefuses,
		"conflicts":         TestALostUpdateIsAConflictThatShowsBothSides,
		"prune":             TestPruneDeletesWhatHasTheLabelsAndIsInNoDocument,
		"diff":              TestDiffShowsWhatApplyWouldChange,
		"labels":            TestLabelsAreSetRemovedAndNotOverwrittenUnasked,
		"patch":             TestAPatchMergesIntoTheManifest,
		"get":               TestGetTakesWhatKubectlTakes,
		"describe":          TestDescribeExplainAndAPIResources,
		"tree":              TestATreeShowsReferencesBothWaysWithTheirStates,
		"the manual":        TestTheLinesOfTheManualThatReadRun,
	} {
		t.Run(name, suite)
	}
}

// TestAPIVersions_TheGoClientUsesOne has the Go client write, read and follow by v1.0 what it does by the newest API,
// and compares the answers.
func TestAPIVersions_TheGoClientUsesOne(t *testing.T) {
	t.Parallel()
	g := start(t, "")
	var answers []string
	for _, api := range []string{client.Unreleased, "v1", "v1.0"} {
		answers = append(answers, byGoClient(t, g, api))
		if answers[len(answers)-1] != answers[0] {
			t.Errorf("by %s\n%s\nby %s\n%s", client.Unreleased, answers[0], api, answers[len(answers)-1])
		}
	}
	if strings.Count(answers[0], "net-a") < 3 {
		t.Errorf("the answers are %s", answers[0])
	}
}

// byGoClient uses the Go client by a version of the API, and returns what it answers but for what changes each time.
func byGoClient(t *testing.T, g *gateway, api string) string {
	t.Helper()
	ctx := t.Context()
	c, err := client.New(client.Config{Server: g.address, API: api})
	if err != nil {
		t.Fatal(err)
	}
	kinds, err := c.DescribedKinds(ctx)
	if err != nil {
		t.Fatal(err)
	}
	kind, err := c.Kind(ctx, "Network")
	if err != nil {
		t.Fatal(err)
	}
	position, err := c.Position(ctx, kind, "")
	if err != nil {
		t.Fatal(err)
	}
	applied, err := c.Apply(ctx, client.ApplyRequest{Manifest: network("net-a", "web", 1500)})
	if err != nil {
		t.Fatal(err)
	}
	out := []any{kinds, applied.Outcome}
	for r, err := range c.List(ctx, client.ListRequest{Kind: kind}) {
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, r.Metadata.Name, r.Spec)
	}
	if _, err := c.Delete(ctx, client.DeleteRequest{Kind: kind, Name: "net-a"}); err != nil {
		t.Fatal(err)
	}
	for change, err := range c.Changes(ctx, client.ChangesRequest{Kind: kind, After: position, Format: client.JSON}) {
		if err != nil {
			t.Fatal(err)
		}
		if change.Type == "ADDED" || change.Type == "DELETED" {
			out = append(out, change.Type, change.Resource.Metadata.Name)
		}
		if change.Type == "DELETED" {
			break
		}
	}
	text, err := json.Marshal(out)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
