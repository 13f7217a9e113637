// Package read has the commands that read resources and kinds. Each command has a file.
package read

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func GetCommand(std terminal.Streams) *cobra.Command {
	g := get{std: std}
	var format, sortBy string
	var explained bool
	cmd := &cobra.Command{
		Use:   "get KIND [NAME...] | KIND,KIND... | all | KIND/NAME...",
		Short: "Print resources",
		Long: "Print resources: all of a kind or several kinds, or those that are named.\n\n" +
			"A kind is named by its name, singular, plural or short name, in any case; `sluice api-resources` lists them.\n" +
			"With -o yaml and json, resources are printed whole, with status and revision, and `sluice apply` accepts them;\n" +
			"manifest prints only what apply needs.",
		Example: "  sluice get networks\n  sluice get networks,ports -A -o wide\n  sluice get net/web port/web-1 -o yaml\n" +
			"  sluice get networks -l team=web --filter 'spec.resource.mtu>1500' --sort-by .spec.resource.mtu\n" +
			"  sluice get networks -o jsonpath='{range .items[*]}{.metadata.name}{\"\\n\"}{end}'\n" +
			"  sluice get networks -o custom-columns=NAME:.metadata.name,MTU:.spec.resource.mtu --no-headers",
		Args:              command.Args(1, command.Unlimited),
		ValidArgsFunction: remote.CompleteTargets(true),
		RunE: func(cmd *cobra.Command, args []string) error {
			var err error
			if explained {
				g.remote.Explain = func(r client.Read) {
					_, _ = fmt.Fprintf(std.Err, "%s: from the %s by %s: %d looked at, %d returned\n",
						r.Kind, r.Source, r.By, r.Looked, r.Returned)
				}
			}
			if g.client, err = g.remote.Client(cmd); err != nil {
				return err
			}
			if g.format, err = output.ParseFormat(format); err != nil {
				return exit.Usage(err)
			}
			if sortBy != "" {
				path, err := output.ParsePath(sortBy)
				if err != nil {
					return exit.Usage(fmt.Errorf("sort-by: %w", err))
				}
				g.sortBy = &path
			}
			if g.labels, err = input.ParseLabels(g.selectors); err != nil {
				return exit.Usage(err)
			}
			if g.targets, err = resource.ReadTargets(cmd.Context(), g.client, args); err != nil {
				return err
			}
			return g.run(cmd.Context())
		},
	}
	g.remote.Register(cmd)
	f := cmd.Flags()
	f.StringVarP(
		&format,
		"output",
		"o",
		"table",
		"table, wide, yaml, json, manifest, name, jsonpath=TEMPLATE or custom-columns=NAME:PATH,...",
	)
	f.StringArrayVarP(
		&g.selectors,
		"selector",
		"l",
		nil,
		"labels that resources must have: key=value, key!=value, key in (a,b), key notin (a,b), key, !key; joined by commas",
	)
	f.StringArrayVar(
		&g.filters,
		"filter",
		nil,
		"fields that resources must have: PATH=value, with !=, <, <=, >, >=, ^= (begins with), *= (contains), in (a,b), notin (a,b), PATH, !PATH; joined by commas",
	)
	f.StringVar(&sortBy, "sort-by", "", "path of the field to sort by, like .metadata.createdAt")
	f.BoolVar(&g.options.NoHeaders, "no-headers", false, "leave out the titles of the columns")
	f.BoolVarP(&g.everywhere, "all-namespaces", "A", false, "all namespaces")
	f.BoolVar(
		&explained,
		"explain",
		false,
		"print to standard error how the gateway did each read, and how many resources it looked at",
	)
	f.BoolVar(
		&g.unreadable,
		"unreadable",
		false,
		"list the resources that the gateway cannot read, each with the reason, and nothing else",
	)
	f.BoolVarP(&g.watch, "watch", "w", false, "then print changes as they happen")
	completeReading(cmd)
	return cmd
}

// get is the state of the command get.
type get struct {
	std                terminal.Streams
	remote             remote.Flags
	client             *client.Client
	targets            []resource.Target
	format             output.Format
	options            output.Options
	sortBy             *output.Path
	selectors, filters []string
	labels             []client.LabelTest
	everywhere, watch  bool
	// forbidden are the kinds that were left out because the caller may not list them.
	forbidden []string
	// left reports whether unreadable resources were left out.
	left bool
	// unreadable reports whether only unreadable resources are requested.
	unreadable bool
}

func (g *get) run(ctx context.Context) error {
	named := len(g.targets) > 0 && len(g.targets[0].Names) > 0
	switch {
	case named && (len(g.labels) > 0 || len(g.filters) > 0):
		return exit.Usage(errors.New("selector and filter choose from a list; they do not go with names"))
	case named && g.everywhere:
		return exit.Usage(errors.New("all-namespaces: a name is that of one namespace"))
	case g.watch && (len(g.targets) != 1 || len(g.targets[0].Names) > 1):
		return exit.Usage(errors.New("watch: one kind, and one name or none"))
	case g.sortBy != nil && g.format.Form == output.FormManifest:
		return exit.Usage(errors.New("sort-by: it does not go with manifests, which have not all that can be sorted by"))
	case g.watch && !g.format.Watchable():
		return exit.Usage(fmt.Errorf(
			"watch: it does not go with -o %s, which does not show what happened; table, wide, json, name and custom-columns are accepted",
			g.format.Form,
		))
	case g.watch && g.sortBy != nil:
		return exit.Usage(errors.New("sort-by: changes come in the order in which they happen"))
	}
	if g.unreadable {
		return g.listUnreadable(ctx, named)
	}
	g.options.Single = named && len(g.targets) == 1 && len(g.targets[0].Names) == 1
	g.options.Namespaces = g.everywhere
	g.options.Kinds = len(g.targets) > 1
	g.options.Changes = g.watch
	g.options.Now = time.Now
	g.options.Terminal = terminal.IsTerminal(g.std.Out)
	g.options.Colours = terminal.Coloured(g.std.Out)
	p := output.NewPrinter(g.std.Out, g.format, g.options)
	if g.watch {
		return g.follow(ctx, p, g.targets[0])
	}
	var found exit.Status
	lists, err := g.lists(ctx, &found)
	if err != nil {
		return err
	}
	for i, t := range g.targets {
		if err := g.printAll(ctx, p, t.Kind, lists[i], &found); err != nil {
			return errors.Join(err, p.Flush())
		}
		if ctx.Err() != nil {
			break
		}
	}
	switch n := len(g.forbidden); {
	case n == len(g.targets):
		found.Note(g.std, errors.New("you do not have the verb LIST on any kind"))
	case n > 0:
		_, _ = fmt.Fprintf(g.std.Err, "sluice: left out, since you do not have the verb LIST: %s\n",
			output.Printable(strings.Join(g.forbidden, ", ")))
	}
	if found.Failed { // a JSON array stays open, so that no program takes it for the whole list
		if p.Count() > 0 {
			_, _ = fmt.Fprintln(g.std.Err, "sluice: the list is not complete")
		}
		return errors.Join(p.Flush(), found.Err())
	}
	if err := p.End(); err != nil {
		return err
	}
	if g.left {
		return exit.ErrReported
	}
	if p.Count() == 0 && !found.Absent {
		what := "resources"
		if len(g.targets) == 1 {
			what = g.targets[0].Kind.Plural
		}
		_, _ = fmt.Fprintf(g.std.Err, "no %s%s\n",
			what, resource.InNamespace(g.remote.Scope(g.targets[0].Kind, g.everywhere)))
	}
	return found.Err()
}

// printAll prints the resources of one kind. Errors about single resources are counted in found.
func (g *get) printAll(ctx context.Context, p *output.Printer, k client.Kind, all listing, found *exit.Status) error {
	for r, err := range all {
		switch {
		case err != nil && ctx.Err() != nil:
			found.Note(g.std, errors.New("interrupted"))
			return nil
		case exit.ReportUnreadable(g.std, err):
			g.left = true
		case err != nil:
			found.Note(g.std, err)
		default:
			if err := p.Print(k, r); err != nil {
				return err
			}
		}
	}
	return nil
}

// follow prints the resources of a target, and then their changes.
func (g *get) follow(ctx context.Context, p *output.Printer, t resource.Target) error {
	filter, err := input.ParseFilter(t.Kind, g.filters)
	if err != nil {
		return exit.Usage(err)
	}
	manifests, names := g.format.Needs()
	req := client.ChangesRequest{
		Kind: t.Kind, Namespace: g.remote.Scope(t.Kind, g.everywhere), Snapshot: true,
		Selector: g.labels, Filter: filter, Format: manifests, NamesOnly: names,
	}
	if len(t.Names) == 1 {
		req.Name = t.Names[0]
	}
	each := func(c *client.Change) error { return p.PrintChange(t.Kind, c) }
	if g.format.Form != output.FormJSON {
		each = withLost(each)
	}
	warnUnreadable(ctx, g.std, g.client, t.Kind, req.Namespace)
	err = follow(ctx, g.std, g.client, req, each)
	return errors.Join(err, p.Flush())
}
