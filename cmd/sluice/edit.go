package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"strings"
	"syscall"

	"github.com/aymanbagabas/go-udiff"
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/graph/client"
)

func editCommand(std streams) *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:     "edit KIND NAME",
		Short:   "Change a resource in an editor ($SLUICE_EDITOR, $VISUAL, $EDITOR or vi)",
		Example: "  sluice edit network net-a",
		Args:    usage(cobra.ExactArgs(2)),
		RunE: func(cmd *cobra.Command, args []string) error {
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			kind, err := c.Kind(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			e := edit{client: c, kind: kind, namespace: r.namespace, name: args[1], std: std}
			return e.run(cmd.Context())
		},
	}
	r.register(cmd)
	return cmd
}

// edit is one session in an editor.
type edit struct {
	client          *client.Client
	kind            client.Kind
	namespace, name string
	std             streams
}

func (e *edit) run(ctx context.Context) error {
	was, err := e.fetch(ctx)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "sluice-"+e.name+"-*.yaml")
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	path := file.Name()
	_, err = file.WriteString(was.Manifest)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	if err := e.open(path); err != nil {
		return err
	}
	// A ^C meant for the editor has ended ctx as well.
	ctx, stop := signal.NotifyContext(context.WithoutCancel(ctx), os.Interrupt, syscall.SIGTERM)
	defer stop()
	text, err := os.ReadFile(path)
	if err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	if bytes.Equal(text, []byte(was.Manifest)) {
		_, _ = fmt.Fprintln(e.std.out, "no changes made")
		return os.Remove(path)
	}
	if err := e.sameResource(was.Manifest, string(text)); err != nil {
		return fmt.Errorf("%w; your text is kept in %s", err, path)
	}
	wanted, err := manifest.ClearRemoved(was.Manifest, string(text))
	if err != nil {
		return fmt.Errorf("edit: %w; your text is kept in %s", err, path)
	}
	out, err := e.client.Apply(ctx, client.ApplyRequest{Manifest: wanted, Namespace: e.namespace, ExpectedRevision: was.Metadata.Revision})
	if err != nil {
		return e.refused(ctx, was, string(text), path, err)
	}
	report(e.std, document{where: e.name}, out, false)
	return os.Remove(path)
}

func (e *edit) fetch(ctx context.Context) (*client.Resource, error) {
	res, err := e.client.Get(ctx, e.kind, e.namespace, e.name, client.YAML)
	if err == nil && res == nil {
		err = fmt.Errorf("%s %q does not exist%s (NOT_FOUND)", e.kind.Name, e.name, in(e.namespace))
	}
	return res, err
}

// open runs the editor on a file, at the user's terminal. A ^C there is the
// editor's; other signals that would end this program end the editor.
func (e *edit) open(path string) error {
	editor := "vi"
	for _, name := range []string{"EDITOR", "VISUAL", editorVariable} {
		if v := os.Getenv(name); v != "" {
			editor = v
		}
	}
	words := strings.Fields(editor)
	cmd := exec.Command(words[0], append(words[1:], path)...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = e.std.in, e.std.out, e.std.err
	signals := make(chan os.Signal, 8)
	signal.Notify(signals, os.Interrupt, syscall.SIGQUIT, syscall.SIGTERM, syscall.SIGHUP)
	defer signal.Stop(signals)
	err := cmd.Start()
	if err == nil {
		ended := make(chan error, 1)
		go func() { ended <- cmd.Wait() }()
		err = await(ended, signals, cmd.Process)
	}
	if err != nil {
		return fmt.Errorf("edit: %s: %w; nothing was changed, the text is in %s", editor, err, path)
	}
	return nil
}

// await waits until the editor has ended.
func await(ended <-chan error, signals <-chan os.Signal, editor *os.Process) error {
	for {
		select {
		case err := <-ended:
			return err
		case s := <-signals:
			if s != os.Interrupt && s != syscall.SIGQUIT { // those a terminal sends to the editor too
				_ = editor.Signal(s)
			}
		}
	}
}

// sameResource refuses a text that names another resource.
func (e *edit) sameResource(was, text string) error {
	old, err1 := manifest.Parse(was)
	now, err2 := manifest.Parse(text)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("edit: %w", err)
	}
	ns := func(d *manifest.Document) string {
		if d.Metadata.Namespace == nil {
			return ""
		}
		return *d.Metadata.Namespace
	}
	if old.Kind != now.Kind || old.Metadata.Name != now.Metadata.Name || ns(old) != ns(now) {
		return errors.New("edit: kind, name and namespace cannot be changed; apply the text to create another resource")
	}
	return nil
}

// refused keeps the edited text, and after a conflict shows both sides.
func (e *edit) refused(ctx context.Context, was *client.Resource, text, path string, cause error) error {
	explain(e.std, e.kind.Name+" "+e.name, cause)
	var api *client.Error
	if errors.As(cause, &api) && api.Extensions.Code == "CONFLICT" {
		if now, err := e.fetch(ctx); err == nil {
			_, _ = fmt.Fprint(e.std.err, udiff.Unified("as you read it", "as it is now", was.Manifest, now.Manifest))
			_, _ = fmt.Fprint(e.std.err, udiff.Unified("as you read it", "as you want it", was.Manifest, text))
		}
	}
	_, _ = fmt.Fprintf(e.std.err, "your text is kept in %s\n", path)
	return errReported
}
