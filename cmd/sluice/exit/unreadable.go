package exit

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// ReportUnreadable prints an error which says that a list is complete except for unreadable
// resources. It returns false for any other error.
func ReportUnreadable(std terminal.Streams, err error) bool {
	var left *client.UnreadableError
	if !errors.As(err, &left) {
		return false
	}
	TellUnreadable(std, left)
	return true
}

func TellUnreadable(std terminal.Streams, left *client.UnreadableError) {
	_, _ = fmt.Fprintf(std.Err, "sluice: %s (sluice get %s --unreadable lists them)\n",
		output.Printable(left.Error()), output.Printable(left.Kind.Plural))
}
