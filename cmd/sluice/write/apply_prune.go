package write

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// prune deletes resources that were applied earlier and are not in the documents any more.
type prune struct {
	want, yes bool
	selectors []string
	tests     []client.LabelTest
}

func (p *prune) register(cmd *cobra.Command) {
	f := cmd.Flags()
	f.BoolVar(
		&p.want,
		"prune",
		false,
		"when every document is applied, delete resources that have the labels of -l, are of a kind and in a namespace of the documents, and are in none of them",
	)
	f.StringArrayVarP(&p.selectors, "selector", "l", nil, "labels of what --prune may delete: "+input.LabelForms)
	f.BoolVar(&p.yes, "yes", false, "prune without asking")
}

// check checks the flags. It is called before anything is applied.
func (p *prune) check(std terminal.Streams, files []string, dry bool) (err error) {
	switch {
	case !p.want && len(p.selectors) > 0:
		return exit.Usage(errors.New("selector: it says what --prune may delete; use both or neither"))
	case !p.want && p.yes:
		return exit.Usage(errors.New("yes: it answers the question of --prune; use both or neither"))
	case !p.want:
		return nil
	case len(p.selectors) == 0:
		return exit.Usage(errors.New("prune: name the labels of what may be deleted with -l SELECTOR"))
	}
	if p.tests, err = input.ParseLabels(p.selectors); err != nil {
		return exit.Usage(err)
	}
	if !dry && !p.yes &&
		(!terminal.IsTerminal(std.In) || !terminal.IsTerminal(std.Err) || slices.Contains(files, input.Standard)) {
		return exit.Usage(errors.New("prune: there is no terminal to ask at; --yes prunes without asking, --dry-run shows what it would delete"))
	}
	return nil
}

// run finds the resources to delete, asks the user, and deletes them. It returns their number.
func (p *prune) run(ctx context.Context, a *application) (int, error) {
	s := selection{std: a.std, client: a.client, tests: p.tests, keep: a.stored}
	kinds, err := a.client.Kinds(ctx)
	if err != nil {
		return 0, fmt.Errorf("prune: %w; nothing was pruned", err)
	}
	for _, k := range a.stored {
		if i := slices.IndexFunc(kinds, func(known client.Kind) bool { return known.Name == k.Kind }); i >= 0 {
			s.kinds = append(s.kinds, kinds[i])
			kinds = slices.Delete(kinds, i, i+1)
		}
		if k.Namespace != "" && !slices.Contains(s.namespaces, k.Namespace) {
			s.namespaces = append(s.namespaces, k.Namespace)
		}
	}
	found, err := s.find(ctx)
	if err != nil {
		return 0, fmt.Errorf("prune: %w; nothing was pruned", err)
	}
	if len(found) == 0 {
		return 0, (&exit.Status{Partial: s.partial}).Err()
	}
	if !p.yes && !bool(a.dry) {
		for _, f := range found {
			_, _ = fmt.Fprintf(a.std.Err, "  %s\n", output.Printable(f.Key().String()))
		}
		yes, err := terminal.Confirm(
			ctx,
			a.std,
			fmt.Sprintf("These have the labels and are in no document. Delete %s?",
				output.Plural(len(found), "resource")),
		)
		if err == nil && !yes {
			err = errors.New("nothing was pruned")
		}
		if err != nil {
			return 0, err
		}
	}
	d := deletion{writing: a.writing, failed: exit.Status{Partial: s.partial}}
	err = d.selected(ctx, &s, found)
	return d.done, err
}
