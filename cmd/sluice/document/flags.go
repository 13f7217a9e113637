// Package document reads the manifests that a command is given, and compares them with the stored resources.
package document

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/internal/wait"
)

// Flags are the flags of commands that read manifests.
type Flags struct {
	Files     []string
	recursive bool
}

func (d *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringArrayVarP(
		&d.Files,
		"filename",
		"f",
		nil,
		"file, folder (its .yaml, .yml and .json files) or - for standard input; may be repeated",
	)
	cmd.Flags().BoolVarP(
		&d.recursive,
		"recursive",
		"R",
		false,
		"read folders inside folders too, but for hidden ones like .git",
	)
}

// Read reads all files. It returns early if ctx ends, even if it waits for input from a terminal or a pipe. If it
// returns neither documents nor an error, the input was an empty list, about which it has printed a message.
func (d *Flags) Read(ctx context.Context, std terminal.Streams, namespace string) ([]input.Document, error) {
	if len(d.Files) == 0 {
		return nil, exit.Usage(errors.New("name the manifests with -f FILE, -f FOLDER or -f -"))
	}
	source := input.Source{Files: d.Files, Recursive: d.recursive, Stdin: std.In}
	docs, err := Interruptible(ctx, source.Read)
	if err != nil {
		return nil, err
	}
	if len(docs) == 0 {
		_, _ = fmt.Fprintf(std.Err, "nothing to do: the list in %s is empty\n", output.Printable(source.Names()))
	}
	if err := input.RefuseTwins(docs, namespace); err != nil {
		return nil, exit.Usage(err)
	}
	return docs, nil
}

// Interruptible calls the function read and returns its result, or an error if ctx ends first. It must only be used
// before the first request is sent, because the error states that nothing was sent.
func Interruptible[T any](ctx context.Context, read func() (T, error)) (T, error) {
	value, err := wait.Until(ctx, read)
	switch {
	case err == nil:
		return value, nil
	case errors.Is(err, ctx.Err()):
		return value, errors.New("interrupted; nothing was sent")
	}
	return value, exit.Usage(err)
}
