package dependency

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/backend"
)

// Wait is a resource that another waits for.
type Wait struct {
	Key backend.Key
	// For is the state that has to change.
	For State
	// Path of the reference.
	Path string
}

// String is what is said of it: "Waiting for Network/net-a to be created".
func (w Wait) String() string {
	what := "ready"
	switch w.For {
	case Missing:
		what = "created"
	case Deleting:
		what = "deleted"
	}
	return "Waiting for " + name(w.Key) + " to be " + what
}

func (w Wait) compare(o Wait) int {
	return cmp.Or(cmp.Compare(w.Key.Kind, o.Key.Kind), cmp.Compare(w.Key.Name, o.Key.Name))
}

// maxLines is how many waits a message names.
const maxLines = 64

// message names waits, one a line.
func message(waits []Wait) string {
	lines := make([]string, 0, min(len(waits), maxLines+1))
	for i, w := range waits {
		if i == maxLines {
			lines = append(lines, fmt.Sprintf("and for %d others", len(waits)-maxLines))
			break
		}
		lines = append(lines, w.String())
	}
	return strings.Join(lines, "\n")
}
