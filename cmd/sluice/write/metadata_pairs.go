package write

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// pairsCommand returns a command that changes labels or annotations.
func pairsCommand(std terminal.Streams, field string, cmd *cobra.Command) *cobra.Command {
	var r remote.Flags
	var by selectionFlags
	var overwrite bool
	m := modification{writing: writing{std: std}}
	cmd.RunE = remote.With(r.Writer, func(cmd *cobra.Command, c *client.Client, args []string) error {
		args, pairs, err := cutPairs(args, overwrite)
		if err != nil {
			return err
		}
		m.client, m.namespace = c, r.Namespace
		m.write = func(ctx context.Context, s resource.Ref, was *client.Resource, revision string) (writeResult, error) {
			return pairs.write(
				ctx,
				&m,
				client.MetadataPatch{
					Kind:             s.Kind,
					Namespace:        s.Namespace,
					Name:             s.Name,
					ExpectedRevision: revision,
					DryRun:           bool(m.dry),
				},
				field,
				was,
			)
		}
		s, list, err := by.resources(cmd, &m.writing, args)
		if err != nil {
			return err
		}
		return m.all(cmd.Context(), list, s != nil && s.partial)
	})
	r.Register(cmd)
	m.register(cmd)
	m.registerRevision(cmd)
	by.register(cmd, "change")
	cmd.Flags().BoolVar(&overwrite, "overwrite", false, "replace the value of a key that is set already")
	return cmd
}

// pairs are the changes of labels or annotations: the values to set, and the keys to remove. overwrite reports whether
// an existing value may be changed.
type pairs struct {
	set       map[string]string
	remove    []string
	overwrite bool
}

// cutPairs removes KEY=VALUE and KEY- from the end of the arguments. The name of a resource contains no = and does not
// end with a hyphen.
func cutPairs(args []string, overwrite bool) (rest []string, p pairs, err error) {
	p = pairs{set: map[string]string{}, overwrite: overwrite}
	isPair := func(arg string) bool { return strings.Contains(arg, "=") || strings.HasSuffix(arg, "-") }
	first := slices.IndexFunc(args, isPair)
	if first < 0 {
		return nil, p, exit.Usage(errors.New("name what to change behind the resources: KEY=VALUE sets, KEY- removes"))
	}
	for _, arg := range args[first:] {
		key, value, found := strings.Cut(arg, "=")
		key, removes := strings.CutSuffix(key, "-")
		switch _, twice := p.set[key]; {
		case !utf8.ValidString(arg):
			return nil, p, exit.Usage(fmt.Errorf("%q is not UTF-8", arg))
		case !isPair(arg):
			return nil, p, exit.Usage(fmt.Errorf("%q: behind KEY=VALUE and KEY- there is nothing else", arg))
		case key == "" || found && removes:
			return nil, p, exit.Usage(fmt.Errorf("%q: KEY=VALUE or KEY- is wanted", arg))
		case twice || slices.Contains(p.remove, key):
			return nil, p, exit.Usage(fmt.Errorf("%q is named twice", key))
		case found:
			p.set[key] = value
		default:
			p.remove = append(p.remove, key)
		}
	}
	return args[:first], p, nil
}

// write changes the labels or annotations of a resource.
func (p pairs) write(
	ctx context.Context,
	m *modification,
	patch client.MetadataPatch,
	field string,
	was *client.Resource,
) (writeResult, error) {
	pairs, to := was.Metadata.Labels, &patch.Labels
	if field == "annotations" {
		pairs, to = was.Metadata.Annotations, &patch.Annotations
	}
	present := map[string]string{}
	for _, pair := range pairs {
		present[pair.Key] = pair.Value
	}
	out, changes := writeResult{done: "UNCHANGED"}, map[string]*string{}
	for _, key := range slices.Sorted(maps.Keys(p.set)) {
		value := p.set[key]
		old, ok := present[key]
		if ok && old != value && !p.overwrite {
			return out, fmt.Errorf("%s already has the value %q; use --overwrite to replace it", key, old)
		}
		changes[key] = &value
		if !ok || old != value {
			out.done = "UPDATED"
		}
	}
	for _, key := range p.remove {
		changes[key] = nil
		if _, ok := present[key]; ok {
			out.done = "UPDATED"
		}
	}
	*to = changes
	var err error
	out.revision, err = m.client.PatchMetadata(ctx, patch)
	return out, err
}
