package exit

import (
	"fmt"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// ReportLost returns a function that prints that a connection was lost, or refused temporarily.
func ReportLost(std terminal.Streams) func(cause error) {
	return func(cause error) {
		what := "the connection was lost"
		if APICode(cause) == "LIMIT_EXCEEDED" {
			what = "the gateway refused the stream for now"
		}
		_, _ = fmt.Fprintf(std.Err, "sluice: %s (%s); connecting again\n", what, output.Printable(cause.Error()))
	}
}
