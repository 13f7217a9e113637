package write

import (
	"context"
	"fmt"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/document"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
)

// maxSides is the maximum number of lines of the diff that is printed after a conflict.
const maxSides = 60

// showSides prints, after a conflict, how the stored resource and the document differ.
func (a *application) showSides(ctx context.Context, d input.Document) {
	comparing, err := document.NewComparer(ctx, a.client, a.namespace, a.manager)
	if err != nil {
		return // the conflict itself has been printed
	}
	c, err := comparing.Compare(ctx, d)
	if err != nil {
		return
	}
	based := d.Where()
	if d.Revision != "" {
		based += ", based on revision " + d.Revision
	}
	text := c.Unified("stored now, revision "+c.Revision, based)
	if lines := strings.SplitAfter(text, "\n"); len(lines) > maxSides {
		text = strings.Join(
			lines[:maxSides],
			"",
		) + fmt.Sprintf("... and %d more lines; sluice diff -f %s shows all\n",
			len(lines)-maxSides, output.Printable(d.File))
	}
	switch {
	case text == "" && c.Outcome == "UNCHANGED":
		text = "what is stored now says the same as the file\n"
	case text == "":
		text = "what is stored now differs from the file in write-only fields, which are not shown\n"
	}
	_, _ = fmt.Fprintf(
		a.std.Err,
		"%ssluice apply --ignore-revision writes the file over what is stored; sluice get reads it again\n",
		text,
	)
}
