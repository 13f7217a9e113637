package write

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// selectionFlags are the flags of commands that can select resources by labels.
type selectionFlags struct {
	selectors  []string
	everywhere bool
}

func (c *selectionFlags) register(cmd *cobra.Command, what string) {
	cmd.Flags().StringArrayVarP(
		&c.selectors,
		"selector",
		"l",
		nil,
		"labels of the resources to "+what+": "+input.LabelForms,
	)
	cmd.Flags().BoolVarP(&c.everywhere, "all-namespaces", "A", false, "with -l: all namespaces")
}

// resources returns the resources in args.
//
// With --selector, args are kinds. resources then returns the resources of these kinds that have the labels, and the
// selection, which can find them again. It prints a message if there are none.
func (c *selectionFlags) resources(cmd *cobra.Command, w *writing, args []string) (*selection, []resource.Ref, error) {
	ctx := cmd.Context()
	switch byLabels := cmd.Flags().Changed("selector"); {
	case !byLabels && c.everywhere:
		return nil, nil, exit.Usage(errors.New("all-namespaces: it goes with -l"))
	case !byLabels:
		list, err := resource.ReadRefs(ctx, w.client, w.namespace, args)
		if err == nil && w.revision != "" && len(list) > 1 {
			err = exit.Usage(errors.New("revision: one resource at a time has a revision"))
		}
		return nil, list, err
	case len(args) != 1 || strings.Contains(args[0], "/") || w.revision != "":
		return nil, nil, exit.Usage(fmt.Errorf(
			"%s: -l goes with one KIND (or several, joined by commas), and with no names and no --revision",
			cmd.Name(),
		))
	}
	tests, err := input.ParseLabels(c.selectors)
	if err != nil {
		return nil, nil, exit.Usage(err)
	}
	targets, err := resource.ReadTargets(ctx, w.client, args)
	if err != nil {
		return nil, nil, err
	}
	s := &selection{
		std:        w.std,
		client:     w.client,
		namespaces: []string{cmp.Or(w.namespace, client.DefaultNamespace)},
		tests:      tests,
	}
	if c.everywhere {
		s.namespaces = []string{""}
	}
	for _, t := range targets {
		s.kinds = append(s.kinds, t.Kind)
	}
	list, err := s.find(ctx)
	if err == nil && len(list) == 0 {
		_, _ = fmt.Fprintln(w.std.Err, "no resource has these labels")
	}
	return s, list, err
}
