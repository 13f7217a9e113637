package write

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
	"github.com/sluicegw/sluice/internal/wait"
)

// maxTries bounds how often a change is tried while others change the same resource, and
// minPause and maxPause bound the random pauses before the next try.
const (
	maxTries = 20
	minPause = 20 * time.Millisecond
	maxPause = 200 * time.Millisecond
)

// modification reads resources and changes each at the revision that was read, so that
// no other change is lost.
type modification struct {
	writing
	// uid is a precondition; empty for none.
	uid string
	// format of the manifest that is read; if it is empty, the whole resource is read.
	format client.Format
	// unreadable is printed after the error for a resource that the gateway cannot read; empty for
	// nothing.
	unreadable string
	// write changes a resource that was read, at a revision. The key and the uid of the outcome are set by its caller.
	write func(ctx context.Context, s resource.Ref, was *client.Resource, revision string) (writeResult, error)
}

// registerRevision adds the flag for changes of one revision.
func (m *modification) registerRevision(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&m.revision,
		"revision",
		"",
		"change only this revision; without it, the change is repeated if another one comes first",
	)
}

// conflicting reports whether err means that the resource was changed by another
// request first.
func conflicting(err error) bool {
	return exit.APICode(err) == "CONFLICT" || exit.APICode(err) == "ABORTED"
}

// all changes resources one by one; one that fails does not stop the others. partial reports whether others, which the
// gateway cannot read, are missing in the list.
func (m *modification) all(ctx context.Context, list []resource.Ref, partial bool) error {
	failed := exit.Status{Partial: partial}
	exit.Each(ctx, m.std, &failed, list, func(s resource.Ref) error {
		err := m.one(ctx, s)
		if err != nil {
			explainOf(m.std, s, err)
		}
		if m.unreadable != "" && exit.APICode(err) == "UNREADABLE" {
			_, _ = fmt.Fprintf(
				m.std.Err,
				"%s %s: %s\n",
				output.Printable(s.Kind.Name),
				output.Printable(s.Name),
				m.unreadable,
			)
		}
		return err
	})
	return failed.Err()
}

func (m *modification) one(ctx context.Context, s resource.Ref) error {
	backoff := wait.Backoff{Least: minPause, Most: maxPause}
	for try := 1; ; try++ {
		res, err := resource.GetExisting(ctx, m.client, s, m.format)
		if err != nil {
			return readError(ctx, err)
		}
		if m.uid != "" && res.Metadata.UID != m.uid {
			return fmt.Errorf("it has the uid %q, and %q is expected; nothing was changed", res.Metadata.UID, m.uid)
		}
		out, err := m.write(ctx, s, res, cmp.Or(m.revision, res.Metadata.Revision))
		if conflicting(err) && m.revision == "" && try < maxTries && backoff.Wait(ctx) {
			continue
		}
		if err != nil {
			return writeError(ctx, err, m.dry)
		}
		out.Key = resource.KeyOf(res)
		out.uid = res.Metadata.UID
		out.dry = m.dry
		m.form.print(m.std, out)
		return nil
	}
}

// apply writes a changed manifest, and prints the warnings. The manifest has the labels and annotations of all field
// managers, so it replaces them all, and no manager becomes their owner.
func (m *modification) apply(ctx context.Context, s resource.Ref, manifest, revision string) (writeResult, error) {
	nobody := ""
	out, err := m.client.Apply(ctx, client.ApplyRequest{
		Manifest:         manifest,
		FieldManager:     &nobody,
		Namespace:        s.Namespace,
		ExpectedRevision: revision,
		DryRun:           bool(m.dry),
	})
	if err != nil {
		return writeResult{}, err
	}
	for _, w := range out.Warnings {
		_, _ = fmt.Fprintf(m.std.Err, "%s %s: warning: %s\n",
			output.Printable(s.Kind.Name), output.Printable(s.Name), output.Printable(w.Message))
	}
	return outcomeOf(out, m.dry), nil
}
