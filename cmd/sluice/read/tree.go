package read

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// The default and the maximum number of levels.
const (
	defaultDepth = 3
	maxDepth     = 10
)

func TreeCommand(std terminal.Streams) *cobra.Command {
	t := tree{std: std, direction: "both"}
	cmd := &cobra.Command{
		Use:   "tree KIND NAME | KIND/NAME",
		Short: "Show what a resource refers to and what refers to it, level by level",
		Long: "Show what a resource refers to and what refers to it, level by level, with the state of each reference: MISSING,\n" +
			"NOT_READY, DELETING, BOUND or UNREADABLE. With --watch the tree is drawn again when it has changed.",
		Example: "  sluice tree network net-a\n  sluice tree net/net-a --direction dependents --depth 5\n  sluice tree server/web --watch\n  sluice tree network net-a -o json",
		Args:    command.Args(1, 2),
		RunE: remote.With(t.remote.Client, func(cmd *cobra.Command, c *client.Client, args []string) (err error) {
			if t.depth < 1 || t.depth > maxDepth {
				return exit.Usage(fmt.Errorf("depth: %d; 1 to %d is accepted", t.depth, maxDepth))
			}
			t.client = c
			if t.Ref, err = resource.ReadRef(cmd.Context(), c, t.remote.Namespace, args); err != nil {
				return err
			}
			return t.run(cmd.Context())
		}),
	}
	t.remote.Register(cmd)
	f := cmd.Flags()
	command.AddEnumFlag(
		cmd,
		&t.direction,
		pflag.Flag{
			Name:  "direction",
			Usage: "dependencies, to what the resource refers to; dependents, to what refers to it; or both",
		},
		"dependencies",
		"dependents",
		"both",
	)
	f.IntVar(&t.depth, "depth", defaultDepth, fmt.Sprintf("how many levels are followed, 1 to %d", maxDepth))
	t.format.Register(cmd)
	f.BoolVarP(&t.watching, "watch", "w", false, "then draw the tree again when it has changed")
	return cmd
}

// tree is the state of the command tree.
type tree struct {
	std    terminal.Streams
	remote remote.Flags
	client *client.Client
	resource.Ref
	direction string
	format    command.OutputFlag
	depth     int
	watching  bool
	// shown is the text that was printed last; nil if there is none.
	shown []byte
}

func (t *tree) run(ctx context.Context) error {
	res, err := resource.GetExisting(ctx, t.client, t.Ref, "")
	switch {
	case err != nil:
		return err
	case t.watching:
		return t.watch(ctx, res.ID)
	}
	found, err := t.read(ctx, res.ID)
	if err == nil && found == nil {
		err = t.Absent() // it was deleted in the meantime
	}
	if err != nil {
		return err
	}
	return t.show(found)
}

func (t *tree) read(ctx context.Context, id string) (*client.Tree, error) {
	return t.client.Tree(ctx, client.TreeRequest{ID: id, Direction: strings.ToUpper(t.direction), Depth: t.depth})
}

// show prints a tree, unless the same text was printed last.
func (t *tree) show(found *client.Tree) error {
	text, err := t.text(found)
	if err != nil || t.shown != nil && bytes.Equal(text, t.shown) {
		return err
	}
	before := ""
	switch {
	case !t.watching || t.format == "json":
	case t.format == "yaml" && t.shown != nil:
		before = "---\n"
	case t.format == "yaml":
	case terminal.IsTerminal(t.std.Out):
		before = "\x1b[H\x1b[2J" // clear the screen
	case t.shown != nil:
		before = "\n" + time.Now().Format(time.TimeOnly) + "\n"
	}
	t.shown = text
	_, err = fmt.Fprintf(t.std.Out, "%s%s", before, text)
	return err
}

// text returns a tree in the requested format. If found is nil, the resource does not exist, and the text states that.
func (t *tree) text(found *client.Tree) ([]byte, error) {
	var b bytes.Buffer
	switch {
	case t.format == "yaml" && found == nil:
		return []byte("null\n"), nil
	case t.format != "table":
		raw, err := output.TreeJSON(found)
		switch {
		case err != nil || t.format == "json" && t.watching:
			return raw, err
		case t.format == "yaml":
			return manifest.YAML(raw)
		}
		err = json.Indent(&b, raw, "", "  ")
		return b.Bytes(), err
	case found == nil:
		_, err := fmt.Fprintf(&b, "%s/%s does not exist\n",
			output.Printable(strings.ToLower(t.Kind.Name)), output.Printable(t.Name))
		return b.Bytes(), err
	}
	err := output.DrawTree(&b, found, output.TreeOptions{
		Dependencies: t.direction != "dependents",
		Dependents:   t.direction != "dependencies",
		Colours:      terminal.Coloured(t.std.Out),
	})
	return b.Bytes(), err
}
