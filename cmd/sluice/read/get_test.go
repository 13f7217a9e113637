package read_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
)

func TestGet_RefusesWhatDoesNotGoTogether(t *testing.T) {
	refuse(t,
		refusal{"get", "see sluice get --help"},
		refusal{"get networks -o xml", "xml"},
		refusal{"get network/a -l team=web", "selector and filter choose from a list"},
		refusal{"get network a --filter spec.x=1", "selector and filter choose from a list"},
		refusal{"get network a -A", "all-namespaces"},
		refusal{"get network a b -w", "watch: one kind, and one name or none"},
		refusal{"get networks -o manifest --sort-by .metadata.name", "sort-by: it does not go with manifests"},
		refusal{"get networks -w --sort-by .metadata.name", "sort-by: changes come in the order"},
		refusal{"get networks -w -o yaml", "watch: it does not go with -o yaml"},
		refusal{"get networks -l =x", "selector"},
		refusal{"get networks --sort-by [", "sort-by"},
	)
}

func TestGet_NamesTheKindsThatAreLikeAnUnknownOne(t *testing.T) {
	server := commandtest.StartGateway(t).URL
	_, errOut, code := commandtest.Run(t, newRoot, "get", "netwroks", "--server", server)
	if code == 0 || !strings.Contains(errOut, "netwroks") {
		t.Errorf("exit %d %s", code, errOut)
	}
}
