package write

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func EditCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var part string
	var dry command.DryRun
	cmd := &cobra.Command{
		Use:   "edit KIND NAME | KIND/NAME",
		Short: "Change a resource in an editor ($SLUICE_EDITOR, $VISUAL, $EDITOR or vi)",
		Long: `Change a resource in an editor: $SLUICE_EDITOR, $VISUAL, $EDITOR or vi.

If the gateway refuses the text, it opens again with the error as a comment at the top; save it
unchanged to give up. If somebody else has changed the resource meanwhile, nothing is written, both
changes are shown and your text is kept in a file.`,
		Example: `  sluice edit network net-a
  EDITOR="code --wait" sluice edit network/net-a
  sluice edit network net-a --subresource=status`,
		Args: command.Args(1, 2),
		RunE: remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
			s, err := resource.ReadRef(cmd.Context(), c, r.Namespace, args)
			if err != nil {
				return err
			}
			e := edit{client: c, subject: s, std: std, dry: dry}
			switch part {
			case "status":
				return e.run(cmd.Context(), e.status)
			case "":
				return e.run(cmd.Context(), e.manifest)
			}
			return exit.Usage(fmt.Errorf("subresource: %q; status is accepted", part))
		}),
	}
	r.Register(cmd)
	dry.Register(cmd)
	cmd.Flags().StringVar(&part, "subresource", "", "edit this part of the resource instead of its manifest: status")
	command.CompleteFlag(
		cmd,
		"subresource",
		cobra.FixedCompletions([]string{"status"}, cobra.ShellCompDirectiveNoFileComp),
	)
	return cmd
}

// edit is the state of the command edit.
type edit struct {
	client  *client.Client
	subject resource.Ref
	std     terminal.Streams
	dry     command.DryRun
}

// draft is a resource as text for the editor, with a function that stores the edited text.
type draft struct {
	text  string
	write func(ctx context.Context, edited string) (outcome string, err error)
}

// textError is an error in an edited text that was found before anything was sent.
type textError struct{ error }

func (e textError) Unwrap() error { return e.error }

// maxEdits is the maximum number of times that the editor is opened again after the text was refused.
const maxEdits = 20

// run opens the editor repeatedly, until the text is stored, unchanged or given up.
func (e *edit) run(ctx context.Context, read func(context.Context) (*draft, error)) error {
	was, err := read(ctx)
	if err != nil {
		return err
	}
	path, err := e.create(was.text)
	if err != nil {
		return err
	}
	shown := was.text
	for round := 1; ; round++ {
		if err := openEditor(e.std, path); err != nil {
			return err
		}
		text, err := readEdited(path)
		if err != nil {
			return err
		}
		switch {
		case text == was.text || strings.TrimSpace(text) == "":
			_, _ = fmt.Fprintln(e.std.Out, "no changes made")
			return os.Remove(path)
		case text == shown:
			return e.keep(path)
		}
		err = e.send(ctx, was, text, read)
		if err == nil {
			return os.Remove(path)
		}
		if exit.APICode(err) == "NOT_FOUND" {
			return exit.NotFound(e.keep(path))
		}
		if round == maxEdits || !correctable(err) {
			return e.keep(path)
		}
		shown = text
		if err := os.WriteFile(path, []byte(refusal(err)+text), 0o600); err != nil {
			return fmt.Errorf("edit: %w", err)
		}
	}
}

// maxFileName is the maximum number of characters of the resource's name in the name of the file.
const maxFileName = 100

// create writes the text to a new file.
func (e *edit) create(text string) (path string, err error) {
	name := e.subject.Name // at most 253 characters, and a file's name has at most 255
	file, err := os.CreateTemp("", "sluice-"+name[:min(len(name), maxFileName)]+"-*.yaml")
	if err != nil {
		return "", exit.Usage(fmt.Errorf("edit: %w", err))
	}
	_, err = file.WriteString(text)
	if err = errors.Join(err, file.Close()); err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	return file.Name(), nil
}

// send sends the edited text and prints the outcome. It does not use ctx, which a ^C in the editor may have ended.
func (e *edit) send(ctx context.Context, was *draft, text string, read func(context.Context) (*draft, error)) error {
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	what, err := was.write(ctx, text)
	if err == nil {
		_, _ = fmt.Fprintln(e.std.Out, output.Printable(what))
		return nil
	}
	explainOf(e.std, e.subject, err)
	if exit.APICode(err) == "CONFLICT" {
		if now, err := read(ctx); err == nil {
			_, _ = fmt.Fprint(
				e.std.Err,
				output.PrintableLines(udiff.Unified("as you read it", "as it is now", was.text, now.text)),
			)
			if !slices.ContainsFunc(e.subject.Kind.Fields, func(f client.Field) bool {
				return f.WriteOnly
			}) { // the text may hold a secret
				_, _ = fmt.Fprint(
					e.std.Err,
					output.PrintableLines(udiff.Unified("as you read it", "as you want it", was.text, text)),
				)
			}
		}
	}
	return err
}

func (e *edit) keep(path string) error {
	_, _ = fmt.Fprintf(e.std.Err, "your text is kept in %s\n", path)
	return exit.ErrReported
}

// correctable reports whether the user may be able to correct the text after this error.
func correctable(err error) bool {
	return errors.As(err, new(textError)) ||
		slices.Contains(
			[]string{"BAD_USER_INPUT", "VALIDATION_FAILED", "GRAPHQL_VALIDATION_FAILED", "LIMIT_EXCEEDED"},
			exit.APICode(err),
		)
}

// refusal returns the comment that is written before a text that was refused.
func refusal(err error) string {
	var b strings.Builder
	b.WriteString("# This was not stored. Mend it and save, or save it as it is to give up.\n")
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, _ = fmt.Fprintf(&b, "# - %s\n", output.Printable(line))
	}
	b.WriteString("#\n")
	return b.String()
}

// readEdited reads the edited file, without the comment at its beginning.
func readEdited(path string) (string, error) {
	text, err := readText(path, nil)
	if err != nil {
		return "", fmt.Errorf("edit: %w", err)
	}
	for strings.HasPrefix(text, "#") {
		_, text, _ = strings.Cut(text, "\n")
	}
	return text, nil
}
