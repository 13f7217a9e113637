package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// pendingDelete is a resource whose deletion waits.
type pendingDelete struct {
	// what is its name for people.
	what string
	subject
	// uid distinguishes it from a later resource of the same name.
	uid string
}

// outcome returns how far the deletion has come.
func (p pendingDelete) outcome(state string, dry dryRun) outcome {
	return outcome{key: p.key(), what: p.what, done: state, uid: p.uid, dry: dry}
}

// report prints the state of a deletion, and what holds the resource: the first holders, or in a dry run all of them.
func (d *deletion) report(p pendingDelete, deletion client.Deletion) {
	o := p.outcome(deletion.State, d.dry)
	held := holders(deletion)
	if held != "" {
		o.note = ": " + held
	}
	d.form.print(d.std, o)
	if held == "" || d.form != outcomeText {
		return
	}
	if by := deletion.BlockedBy; bool(d.dry) && by.TotalCount+by.HiddenCount > 1 {
		names := blockers(deletion)
		for _, name := range names {
			_, _ = fmt.Fprintf(d.std.out, "  %s\n", name)
		}
		if left := by.TotalCount - len(names); left > 0 {
			_, _ = fmt.Fprintf(d.std.out, "  and %d more\n", left)
		}
		if by.HiddenCount > 0 {
			_, _ = fmt.Fprintf(d.std.out, "  and %d that you may not see\n", by.HiddenCount)
		}
	}
}

// reportUnseen prints that a deletion was requested, but its state could not be read.
func (d *deletion) reportUnseen(p pendingDelete, cause *client.Error) {
	if d.form != outcomeText {
		d.form.print(d.std, p.outcome("REQUESTED", d.dry))
		return
	}
	missing := "how far it has come could not be told"
	if slices.Contains(cause.Path, any("blockedBy")) || slices.Contains(strings.Split(cause.Extensions.Selection, "."), "blockedBy") {
		missing = "what blocks it could not be listed"
	}
	_, _ = fmt.Fprintf(d.std.out, "%s: the deletion was requested; %s: %s (%s)\n", printable(p.what), missing, printable(cause.Message), printable(cause.Extensions.Code))
}

// holders returns what a deletion waits for, like "subnet/a, subnet/b, subnet/c and 97 more hold it". It counts the
// holders that the caller may not see.
func holders(d client.Deletion) string {
	names, total, hidden := blockers(d), d.BlockedBy.TotalCount, d.BlockedBy.HiddenCount
	what := ""
	if d.State == "FINALIZING" && len(d.Finalizers) > 0 {
		names, total, hidden, what = nil, len(d.Finalizers), 0, "finalizer "
		for _, name := range d.Finalizers {
			names = append(names, printable(name))
		}
		if total > 1 {
			what = "finalizers "
		}
	}
	switch total + hidden {
	case 0:
		return ""
	case 1:
		return what + output.Holders(names, total, hidden) + " holds it"
	}
	return what + output.Holders(names, total, hidden) + " hold it"
}

// blockers names the resources that rely on the deleted one, each once, as far as the answer has them.
func blockers(d client.Deletion) []string {
	var names []string
	for _, r := range d.BlockedBy.Nodes {
		name := output.Named(r.Kind, r.Namespace, r.Name, d.Namespace)
		if r.State == "UNREADABLE" {
			name += " (unreadable)"
		}
		if !slices.Contains(names, name) { // one may refer to it by two paths
			names = append(names, name)
		}
	}
	return names
}

// end waits until all are gone, and returns the error that the command ends with.
func (d *deletion) end(ctx context.Context, err error) error {
	if err != nil && !errors.Is(err, errReported) || len(d.waiting) == 0 {
		return err
	}
	timed, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	late, stop := context.WithTimeout(ctx, d.timeout+lastLookTime)
	defer stop()
	w := waiting{std: d.std, client: d.client, timeout: d.timeout}
	for i, one := range d.waiting {
		if one.uid == "" { // the answer did not show the resource
			if res, err := d.client.Get(timed, one.kind, one.namespace, one.name, ""); err == nil && res != nil {
				one.uid = res.Metadata.UID
			}
		}
		s := pendingGoal{goal: goal{text: "delete", deleted: true}, subject: one.subject, uid: one.uid}
		err := w.one(timed, late, s)
		switch {
		case err == nil:
			d.form.print(d.std, one.outcome("DELETED", false))
		case ctx.Err() != nil:
			_, _ = fmt.Fprintf(d.std.err, "sluice: interrupted; %d deletions are requested and wait\n", len(d.waiting)-i)
			return errReported
		case timed.Err() != nil:
			err = d.overdue(late, one, err)
			fallthrough
		default:
			d.failed.failed = true
			explain(d.std, "sluice", err)
		}
	}
	return d.failed.err()
}

// overdue returns the error for a resource that did not go in time, with what holds it now if that can be read.
func (d *deletion) overdue(ctx context.Context, one pendingDelete, err error) error {
	now, cause := d.client.Delete(ctx, client.DeleteRequest{Kind: one.kind, Namespace: one.namespace, Name: one.name, DryRun: true})
	if cause != nil {
		return err
	}
	return fmt.Errorf("%s: not gone after %v: %s", one.what, d.timeout.Round(time.Millisecond), strings.TrimSuffix(now.State+": "+holders(now), ": "))
}
