package read_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestExplain_OfAKindAndOfAFieldThatItHasNot(t *testing.T) {
	server := commandtest.StartGateway(t).URL
	if out := commandtest.Must(t, newRoot, "explain", "network", "--server", server); !strings.Contains(out, "Network") {
		t.Errorf("%q", out)
	}
	for _, what := range []string{"network.spec.nothing", "nothing"} {
		if _, errOut, code := commandtest.Run(t, newRoot, "explain", what, "--server", server); code == 0 || !strings.Contains(errOut, "nothing") {
			t.Errorf("%s: exit %d %s", what, code, errOut)
		}
	}
}
