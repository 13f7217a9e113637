package write

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/await"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/graph/client"
)

// end waits until all resources are deleted. err is the error so far. end returns the error of the command.
func (d *deletion) end(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, exit.ErrReported) || len(d.waiting) == 0 {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	late, stop := context.WithTimeout(ctx, d.timeout+await.LastLookTime)
	defer stop()
	w := await.Waiter{Std: d.std, Client: d.client, Timeout: d.timeout}
	for i, one := range d.waiting {
		if one.uid == "" { // the answer did not show the resource
			if res, err := d.client.Get(timed, one.Kind, one.Namespace, one.Name, ""); err == nil && res != nil {
				one.uid = res.Metadata.UID
			}
		}
		s := await.PendingGoal{Goal: await.Goal{Text: "delete", Deleted: true}, Ref: one.Ref, UID: one.uid}
		err := w.Wait(timed, late, s)
		switch {
		case err == nil:
			d.form.print(d.std, one.outcome("DELETED", false))
		case ctx.Err() != nil:
			_, _ = fmt.Fprintf(d.std.Err, "sluice: interrupted; %d deletions are requested, wait, and cannot be cancelled\n",
				len(d.waiting)-i)
			return exit.ErrReported
		case timed.Err() != nil:
			err = d.overdue(late, one, err)
			fallthrough
		default:
			d.failed.Failed = true
			exit.Explain(d.std, "sluice", err)
		}
	}
	return d.failed.Err()
}

// overdue returns the error for a resource that was not deleted in time. If possible, the error names what prevents the
// deletion now.
func (d *deletion) overdue(ctx context.Context, one pendingDelete, err error) error {
	now, cause := d.client.Delete(ctx, client.DeleteRequest{
		Kind:      one.Kind,
		Namespace: one.Namespace,
		Name:      one.Name,
		DryRun:    true,
	})
	if cause != nil {
		return err
	}
	return fmt.Errorf("%s: not gone after %v: %s",
		one.what, d.timeout.Round(time.Millisecond), strings.TrimSuffix(now.State+": "+holders(now), ": "))
}
