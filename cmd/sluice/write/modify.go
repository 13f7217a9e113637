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

// maxTries is the maximum number of attempts to change a resource that others change at the same time. minPause and
// maxPause are the shortest and the longest pause between two attempts.
const (
	maxTries = 20
	minPause = 20 * time.Millisecond
	maxPause = 200 * time.Millisecond
)

// modification reads resources and changes each of them. A change is only made at the revision that was read, so
// changes by others are not lost.
type modification struct {
	writing
	// uid is the uid that the resource must have; empty for any.
	uid string
	// format is the format of the manifest to read. If it is empty, the whole resource is read.
	format client.Format
	// unreadable is printed after the error about a resource that the gateway cannot read; empty for nothing.
	unreadable string
	// write changes a resource. was is the resource that was read, and revision is the revision that it must still
	// have. The caller of write sets the key and the uid of the result.
	write func(ctx context.Context, s resource.Ref, was *client.Resource, revision string) (writeResult, error)
}

// registerRevision adds the flag for the revision that the resource must have.
func (m *modification) registerRevision(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		&m.revision,
		"revision",
		"",
		"change only this revision; without it, the change is repeated if another one comes first",
	)
}

// conflicting reports whether err means that another request has changed the resource in the meantime.
func conflicting(err error) bool {
	return exit.APICode(err) == "CONFLICT" || exit.APICode(err) == "ABORTED"
}

// all changes resources one after another. It continues after errors. partial reports whether resources are missing in
// the list because the gateway cannot read them.
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

// apply writes a changed manifest and prints warnings. The manifest has the labels and annotations of all field
// managers. It replaces all of them, and no manager becomes their owner.
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
