package main

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/graph/client"
)

// outcomeForm is the form in which a command prints outcomes: the value of -o.
type outcomeForm string

// The forms.
const (
	outcomeText outcomeForm = "text"
	outcomeName outcomeForm = "name"
	outcomeJSON outcomeForm = "json"
)

func (f *outcomeForm) register(cmd *cobra.Command) {
	*f = outcomeText
	addChoice(cmd, (*string)(f), pflag.Flag{
		Name: "output", Shorthand: "o",
		Usage: "what is printed of each resource: text, name (network/net-a), or json: a line with outcome, kind, namespace, name, uid, revision and dryRun",
	}, "text", "name", "json")
}

// writing is one run of a command that writes.
type writing struct {
	std    streams
	client *client.Client
	// namespace of resources for which none is given; empty means the default one.
	namespace string
	// revision is the only one that may be changed; empty for any.
	revision string
	dry      dryRun
	form     outcomeForm
}

func (w *writing) register(cmd *cobra.Command) {
	w.dry.register(cmd)
	w.form.register(cmd)
}

// outcome is the result of a write to one resource.
type outcome struct {
	key
	// what is the name of the resource for people; empty: its key.
	what string
	// done is CREATED, UPDATED, UNCHANGED, or the state of a deletion.
	done string
	// revision that the resource has now; empty after a dry run.
	uid, revision string
	dry           dryRun
	// note follows in the form for people.
	note string
}

// outcomeOf returns the outcome of an apply. It has no key if the answer does not name the resource.
func outcomeOf(a *client.Applied, dry dryRun) outcome {
	switch r, p := a.Resource, a.Preview; {
	case r != nil:
		return outcome{key: keyOf(r), done: a.Outcome, uid: r.Metadata.UID, revision: r.Metadata.Revision, dry: dry}
	case p != nil:
		return outcome{key: key{p.Kind, orEmpty(p.Namespace), p.Name}, done: a.Outcome, uid: p.UID, dry: dry}
	}
	return outcome{done: a.Outcome, dry: dry}
}

// print writes an outcome.
func (f outcomeForm) print(std streams, o outcome) {
	switch f {
	case outcomeName:
		_, _ = fmt.Fprintf(std.out, "%s/%s\n", printable(strings.ToLower(o.kind)), printable(o.name))
	case outcomeJSON:
		_ = json.NewEncoder(std.out).Encode(struct {
			Outcome   string `json:"outcome"`
			Kind      string `json:"kind"`
			Namespace string `json:"namespace,omitempty"`
			Name      string `json:"name"`
			UID       string `json:"uid,omitempty"`
			Revision  string `json:"revision,omitempty"`
			DryRun    bool   `json:"dryRun,omitempty"`
		}{o.done, o.kind, o.namespace, o.name, o.uid, o.revision, bool(o.dry)})
	default:
		what := o.what
		if what == "" {
			what = o.key.String()
		}
		_, _ = fmt.Fprintf(std.out, "%s %s%s%s\n", printable(what), printable(o.done), o.dry.mark(), o.note)
	}
}
