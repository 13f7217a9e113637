package exit

import (
	"errors"
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// ReportUnreadable reports whether an error is that a list had to leave out resources, which was otherwise read to its
// end. It prints that.
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
