package read_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestAPIResources_ListsTheKinds(t *testing.T) {
	server := commandtest.StartGateway(t).URL
	out := commandtest.Must(t, newRoot, "api-resources", "--server", server)
	if !strings.HasPrefix(out, "NAME ") || !strings.Contains(out, "\nnetworks ") {
		t.Errorf("%q", out)
	}
	if out := commandtest.Must(t, newRoot, "api-resources", "--no-headers", "--server", server); !strings.HasPrefix(out, "networks ") {
		t.Errorf("without titles: %q", out)
	}
	if out := commandtest.Must(t, newRoot, "kinds", "-o", "name", "--server", server); out != "networks\n" {
		t.Errorf("names: %q", out)
	}
	refuse(t, refusal{"api-resources -o yaml", "accepted are table, wide, name"}, refusal{"api-resources networks", "see sluice api-resources --help"})
}
