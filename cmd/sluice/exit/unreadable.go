package exit

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// ReportUnreadable prints a [*client.UnreadableError] and returns true. For other errors it prints nothing and returns
// false.
func ReportUnreadable(std terminal.Streams, err error) bool {
	var left *client.UnreadableError
	if !errors.As(err, &left) {
		return false
	}
	WarnUnreadable(std, left)
	return true
}

// WarnUnreadable prints that a list left out resources that cannot be read, and the command that lists them.
func WarnUnreadable(std terminal.Streams, left *client.UnreadableError) {
	_, _ = fmt.Fprintf(std.Err, "sluice: %s (sluice get %s --unreadable lists them)\n",
		output.Printable(left.Error()), output.Printable(left.Kind.Plural))
}
