package operate

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestCataloguePurge_SaysWhatIsAcceptedBeforeAnythingIsSent(t *testing.T) {
	for _, what := range []string{"", "shelf", "shelf.spec.code", "Shelf.", ".spec"} {
		_, errOut, code := commandtest.Run(t, newRoot, "catalogue", "purge", what, "--server", "http://127.0.0.1:1")
		if code != 2 || !strings.Contains(errOut, "KIND or KIND.PATH is accepted") || !strings.Contains(errOut, "Team.spec.email") {
			t.Errorf("%q: exit %d %s", what, code, errOut)
		}
	}
}
