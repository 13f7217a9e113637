package write

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// pendingDelete is a resource whose deletion was requested and is not completed.
type pendingDelete struct {
	// what is the name of the resource for people.
	what string
	resource.Ref
	// uid distinguishes the resource from a later one with the same name.
	uid string
}

// outcome returns the state of the deletion in the form for printing.
func (p pendingDelete) outcome(state string, dry command.DryRun) writeResult {
	return writeResult{Key: p.Key(), what: p.what, done: state, uid: p.uid, dry: dry}
}

// report prints the state of a deletion, and resources that prevent it. After a dry run it prints all of these,
// otherwise only the first.
func (d *deletion) report(p pendingDelete, deletion client.Deletion) {
	o := p.outcome(deletion.State, d.dry)
	held := holders(deletion)
	o.note = noteOf(deletion.State, held, bool(d.dry))
	d.form.print(d.std, o)
	if held == "" || d.form != outcomeText {
		return
	}
	if by := deletion.BlockedBy; bool(d.dry) && by.TotalCount+by.HiddenCount > 1 {
		names := blockers(deletion)
		for _, name := range names {
			_, _ = fmt.Fprintf(d.std.Out, "  %s\n", name)
		}
		if left := by.TotalCount - len(names); left > 0 {
			_, _ = fmt.Fprintf(d.std.Out, "  and %d more\n", left)
		}
		if by.HiddenCount > 0 {
			_, _ = fmt.Fprintf(d.std.Out, "  and %d that you may not see\n", by.HiddenCount)
		}
	}
}

// noteOf returns the note for the state of a deletion. held is what prevents the deletion; empty if that is not known.
// dry reports whether the deletion was not requested.
func noteOf(state, held string, dry bool) string {
	if state == "DELETED" {
		return ""
	}
	final := "the deletion cannot be cancelled"
	if dry {
		final = "once requested, the deletion cannot be cancelled"
	}
	if held == "" {
		return ": " + final
	}
	return ": " + held + "; " + final
}

// reportUnseen prints that a deletion was requested, but that its state could not be read.
func (d *deletion) reportUnseen(p pendingDelete, cause *client.Error) {
	if d.form != outcomeText {
		d.form.print(d.std, p.outcome("REQUESTED", d.dry))
		return
	}
	missing := "how far it has come could not be told"
	if slices.Contains(cause.Path, any("blockedBy")) ||
		slices.Contains(strings.Split(cause.Extensions.Selection, "."), "blockedBy") {
		missing = "what blocks it could not be listed"
	}
	_, _ = fmt.Fprintf(d.std.Out, "%s: the deletion was requested and cannot be cancelled; %s: %s (%s)\n",
		output.Printable(p.what), missing, output.Printable(cause.Message), output.Printable(cause.Extensions.Code))
}

// holders returns what prevents a deletion, such as "subnet/a, subnet/b, subnet/c and 97 more hold it". The number
// includes resources that the caller may not see.
func holders(d client.Deletion) string {
	names := blockers(d)
	total := d.BlockedBy.TotalCount
	hidden := d.BlockedBy.HiddenCount
	what := ""
	if d.State == "FINALIZING" && len(d.Finalizers) > 0 {
		names = nil
		total = len(d.Finalizers)
		hidden = 0
		what = "finalizer "
		for _, name := range d.Finalizers {
			names = append(names, output.Printable(name))
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

// blockers returns the names of the resources that prevent a deletion, without duplicates. The answer of the gateway
// may not have all of them.
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
