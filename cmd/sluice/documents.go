package main

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/wait"
)

// documents are the flags of commands that read manifests.
type documents struct {
	files     []string
	recursive bool
}

func (d *documents) register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(&d.files, "filename", "f", nil, "file, folder (its .yaml, .yml and .json files) or - for standard input; may be repeated")
	cmd.Flags().BoolVarP(&d.recursive, "recursive", "R", false, "read folders inside folders too, but for hidden ones like .git")
}

// read reads all files before the first document is sent. It ends with ctx, even while it waits for input from a
// terminal or a pipe. If it returns neither documents nor an error, the user was told that a list is empty.
func (d *documents) read(ctx context.Context, std streams, namespace string) ([]input.Document, error) {
	if len(d.files) == 0 {
		return nil, usageError{errors.New("name the manifests with -f FILE, -f FOLDER or -f -")}
	}
	source := input.Source{Files: d.files, Recursive: d.recursive, Stdin: std.in}
	docs, err := stoppable(ctx, source.Read)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		_, _ = fmt.Fprintf(std.err, "nothing to do: the list in %s is empty\n", printable(source.Names()))
	}
	if err := input.RefuseTwins(docs, namespace); err != nil {
		return nil, usageError{err}
	}
	return docs, nil
}

// stoppable calls read, and returns when ctx ends. It is for reads before anything was sent.
func stoppable[T any](ctx context.Context, read func() (T, error)) (T, error) {
	value, err := wait.Until(ctx, read)
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, ctx.Err()):
		return value, errors.New("interrupted; nothing was sent")
	}
	return value, usageError{err}
}

// textLine matches how an error names a line of the text that was sent.
var textLine = regexp.MustCompile(`line (\d+)(, column \d+)?: `)

// explainAt prints the errors of the API about a document, each with its file and line.
func explainAt(std streams, d input.Document, err error) {
	all := client.Errors{}
	if !errors.As(err, &all) {
		explain(std, d.Where(), err)
		return
	}
	for _, e := range all {
		field, message := inDocument(e.Extensions.Field), e.Message
		if field == "" && e.Extensions.Code == "CONFLICT" {
			field = "metadata.revision"
		}
		where := d.At(field)
		if m := textLine.FindStringSubmatchIndex(message); m != nil && field == "" {
			line, _ := strconv.Atoi(message[m[2]:m[3]])
			where, message = d.AtLine(line), message[:m[0]]+message[m[1]:]
		}
		if !strings.Contains(message, strconv.Quote(d.Name)) || d.Name == "" {
			message = d.String() + ": " + message
		}
		_, _ = fmt.Fprintf(std.err, "%s: %s%s\n", printable(where), printable(message), hint(e))
	}
}

// inDocument is the field of a document that an error or a warning is about, as a path
// from the root of the document. The API's begins at the argument.
func inDocument(field string) string {
	for _, outer := range []string{"input", "manifest"} {
		if field == outer {
			return ""
		}
		field = strings.TrimPrefix(field, outer+".")
	}
	return field
}

// code returns the code of an error of the API; empty for another error.
func code(err error) string {
	var api *client.Error
	if errors.As(err, &api) {
		return api.Extensions.Code
	}
	return ""
}
