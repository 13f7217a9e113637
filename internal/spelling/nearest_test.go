package spelling_test

import (
	"strings"
	"testing"

	"github.com/sluicegw/sluice/internal/spelling"
)

func TestNearest(t *testing.T) {
	long := strings.Repeat("x", 65)
	names := []string{"a", "mtu", "description", long}
	for _, c := range []struct{ wrong, want string }{
		{"MTU", "mtu"},
		{"mut", ""}, // two letters
		{"mtuu", "mtu"},
		{"decsription", "description"},
		{"descr", ""},
		{"b", ""}, // has no letter of a
		{"", ""},
		{long, ""},
	} {
		if got := spelling.Nearest(c.wrong, names); got != c.want {
			t.Errorf("%q: %q", c.wrong, got)
		}
	}
}
