package write

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// outcomeForm is the value of the flag -o of a command that writes. It selects the form in which outcomes are printed.
type outcomeForm string

// The forms of outcomes.
const (
	outcomeText outcomeForm = "text"
	outcomeName outcomeForm = "name"
	outcomeJSON outcomeForm = "json"
)

func (f *outcomeForm) register(cmd *cobra.Command) {
	*f = outcomeText
	command.AddEnumFlag(cmd, (*string)(f), pflag.Flag{
		Name: "output", Shorthand: "o",
		Usage: "what is printed of each resource: text, name (network/net-a), or json: a line with outcome, kind, namespace, name, uid, revision and dryRun",
	}, "text", "name", "json")
}

// writing is the common state of the commands that write.
type writing struct {
	std    terminal.Streams
	client *client.Client
	// namespace is the namespace of resources without one; empty for the default namespace.
	namespace string
	// revision is the revision that the resource must have; empty for any.
	revision string
	dry      command.DryRun
	form     outcomeForm
}

func (w *writing) register(cmd *cobra.Command) {
	w.dry.Register(cmd)
	w.form.register(cmd)
}

// writeResult is the result of a write to one resource.
type writeResult struct {
	resource.Key
	// what is the name of the resource for people; if it is empty, the key is used.
	what string
	// done is CREATED, UPDATED, UNCHANGED, or the state of a deletion.
	done string
	// uid and revision belong to the resource. revision is its present one; it is empty after a dry run.
	uid, revision string
	dry           command.DryRun
	// note is printed after the outcome in the form for people.
	note string
}

// outcomeOf returns the outcome of an apply. Its key is zero if the answer does not have it.
func outcomeOf(a *client.Applied, dry command.DryRun) writeResult {
	out := writeResult{Key: resource.KeyOfApplied(a), done: a.Outcome, dry: dry}
	switch {
	case a.Resource != nil:
		out.uid = a.Resource.Metadata.UID
		out.revision = a.Resource.Metadata.Revision
	case a.Preview != nil:
		out.uid = a.Preview.UID
	}
	return out
}

func (f outcomeForm) print(std terminal.Streams, o writeResult) {
	switch f {
	case outcomeName:
		_, _ = fmt.Fprintf(std.Out, "%s/%s\n", output.Printable(strings.ToLower(o.Kind)), output.Printable(o.Name))
	case outcomeJSON:
		_ = json.NewEncoder(std.Out).Encode(struct {
			Outcome   string `json:"outcome"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace,omitempty"`
			Name      string `json:"name"`
			UID       string `json:"uid,omitempty"`
			Revision  string `json:"revision,omitempty"`
			DryRun    bool   `json:"dryRun,omitempty"`
		}{o.done, o.Kind, o.Namespace, o.Name, o.uid, o.revision, bool(o.dry)})
	default:
		what := o.what
		if what == "" {
			what = o.Key.String()
		}
		_, _ = fmt.Fprintf(std.Out, "%s %s%s%s\n",
			output.Printable(what), output.Printable(o.done), o.dry.Mark(), o.note)
	}
}
