package document

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// Explain prints the errors of the API about a document, each with its file and line.
func Explain(std terminal.Streams, d input.Document, err error) {
	all := client.Errors{}
	if !errors.As(err, &all) {
		exit.Explain(std, d.Where(), err)
		return
	}
	for _, e := range all {
		field, message := FieldPath(e.Extensions.Field), e.Message
		if field == "" && e.Extensions.Code == "CONFLICT" {
			field = "metadata.revision"
		}
		where, message := d.Place(field, message)
		if !strings.Contains(message, strconv.Quote(d.Name)) || d.Name == "" {
			message = d.String() + ": " + message
		}
		_, _ = fmt.Fprintf(std.Err, "%s: %s%s\n", output.Printable(where), output.Printable(message), exit.Hint(e))
	}
}

// FieldPath returns the path of a field in an error or warning, from the root of the document. In the API, the path
// begins at the argument.
func FieldPath(field string) string {
	for _, outer := range []string{"input", "manifest"} {
		if field == outer {
			return ""
		}
		field = strings.TrimPrefix(field, outer+".")
	}
	return field
}
