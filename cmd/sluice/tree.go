package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/manifest"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

// Levels of a tree that the gateway follows.
const (
	defaultDepth = 3
	maxDepth     = 10
)

func treeCommand(std streams) *cobra.Command {
	t := tree{std: std, direction: "both"}
	cmd := &cobra.Command{
		Use:   "tree KIND NAME | KIND/NAME",
		Short: "Show what a resource refers to and what refers to it, level by level",
		Long: "Show what a resource refers to and what refers to it, level by level, with the state of each reference: MISSING,\n" +
			"NOT_READY, DELETING, BOUND or UNREADABLE. With --watch the tree is drawn again when it has changed.",
		Example: "  sluice tree network net-a\n  sluice tree net/net-a --direction dependents --depth 5\n  sluice tree server/web --watch\n  sluice tree network net-a -o json",
		Args:    usage(cobra.RangeArgs(1, 2)),
		RunE: with(t.remote.client, func(cmd *cobra.Command, c *client.Client, args []string) (err error) {
			if t.depth < 1 || t.depth > maxDepth {
				return usageError{fmt.Errorf("depth: %d; 1 to %d is accepted", t.depth, maxDepth)}
			}
			t.client = c
			if t.subject, err = oneSubject(cmd.Context(), c, t.remote.namespace, args); err != nil {
				return err
			}
			return t.run(cmd.Context())
		}),
	}
	t.remote.register(cmd)
	f := cmd.Flags()
	addChoice(cmd, &t.direction, pflag.Flag{Name: "direction", Usage: "dependencies, to what the resource refers to; dependents, to what refers to it; or both"}, "dependencies", "dependents", "both")
	f.IntVar(&t.depth, "depth", defaultDepth, fmt.Sprintf("how many levels are followed, 1 to %d", maxDepth))
	t.format.register(cmd)
	f.BoolVarP(&t.watching, "watch", "w", false, "then draw the tree again when it has changed")
	return cmd
}

// Pauses before a tree that could not be read is read again: the first, and the longest.
const (
	firstReadPause = 250 * time.Millisecond
	lastReadPause  = 10 * time.Second
)

// tree is one run of the command.
type tree struct {
	std    streams
	remote remote
	client *client.Client
	subject
	direction string
	format    dataForm
	depth     int
	watching  bool
	// shown is what was printed last; nil before that.
	shown []byte
}

func (t *tree) run(ctx context.Context) error {
	res, err := existing(ctx, t.client, t.subject, "")
	switch {
	case err != nil:
		return err
	case t.watching:
		return t.watch(ctx, res.ID)
	}
	found, err := t.read(ctx, res.ID)
	if err == nil && found == nil {
		err = t.absent() // it has gone since
	}
	if err != nil {
		return err
	}
	return t.show(found)
}

func (t *tree) read(ctx context.Context, id string) (*client.Tree, error) {
	return t.client.Tree(ctx, client.TreeRequest{ID: id, Direction: strings.ToUpper(t.direction), Depth: t.depth})
}

// show prints a tree, unless it looks like the one before.
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
	case isTerminal(t.std.out):
		before = "\x1b[H\x1b[2J" // clear the screen
	case t.shown != nil:
		before = "\n" + time.Now().Format(time.TimeOnly) + "\n"
	}
	t.shown = text
	_, err = fmt.Fprintf(t.std.out, "%s%s", before, text)
	return err
}

// text returns a tree in the wanted format; a nil tree means that the resource is gone.
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
		_, err := fmt.Fprintf(&b, "%s/%s does not exist\n", printable(strings.ToLower(t.kind.Name)), printable(t.name))
		return b.Bytes(), err
	}
	err := output.DrawTree(&b, found, output.TreeOptions{Dependencies: t.direction != "dependents", Dependents: t.direction != "dependencies", Colours: coloured(t.std.out)})
	return b.Bytes(), err
}

// watch shows the tree, and shows it again after changes, until the user stops it.
func (t *tree) watch(ctx context.Context, id string) error {
	for {
		err := t.follow(ctx, id)
		switch {
		case ctx.Err() != nil:
			return nil
		case code(err) == "POSITION_EXPIRED":
			continue // changes were missed, so the tree is read again
		}
		return err
	}
}

// follow shows the tree, and shows it again after changes, as long as the changes
// come without a gap. It reads the tree once for all changes that come during a read.
func (t *tree) follow(ctx context.Context, id string) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	events, err := t.begin(ctx)
	if err != nil {
		return err
	}
	changed, ended := make(chan struct{}, 1), make(chan error, 1)
	go func() { ended <- t.listen(ctx, events, changed) }()
	var pause time.Duration // 0 unless the tree could not be read
	for {
		found, err := t.read(ctx, id)
		switch {
		case err == nil:
			pause, err = 0, t.show(found)
		case ctx.Err() == nil && temporary(err):
			if pause == 0 {
				_, _ = fmt.Fprintf(t.std.err, "sluice: the tree cannot be read at present: %s\n", printable(err.Error()))
			}
			pause, err = min(max(2*pause, firstReadPause), lastReadPause), nil
		}
		if err != nil {
			stop()
			<-ended
			return err
		}
		again, next := changed, (<-chan time.Time)(nil)
		if pause > 0 { // it is read again then, whether something changes or not
			again, next = nil, time.After(pause)
		}
		select {
		case <-again:
		case <-next:
		case err := <-ended:
			return err
		}
	}
}

// begin returns the request for all changes that can change the tree: in its namespace, since references do not leave
// it, or everywhere if there are GLOBAL kinds.
func (t *tree) begin(ctx context.Context) (client.ChangesRequest, error) {
	req := client.ChangesRequest{Namespace: t.namespace, Lost: reportLost(t.std)}
	kinds, err := t.client.Kinds(ctx)
	if err != nil {
		return req, err
	}
	if slices.ContainsFunc(kinds, func(k client.Kind) bool { return k.Scope == "GLOBAL" }) {
		req.Namespace = ""
	}
	req.After, err = t.client.Position(ctx, t.kind, t.namespace)
	return req, err
}

// listen signals changes until the stream ends. It never waits for the reader of the tree.
func (t *tree) listen(ctx context.Context, req client.ChangesRequest, changed chan<- struct{}) error {
	for _, err := range t.client.Changes(ctx, req) {
		if err != nil {
			return err
		}
		select {
		case changed <- struct{}{}:
		default: // the tree is read after this one too
		}
	}
	return nil
}

// temporary reports whether a read that failed may succeed soon.
func temporary(err error) bool {
	var e *client.Error
	return errors.As(err, new(*client.UnansweredError)) || errors.As(err, &e) && e.Extensions.Retryable
}
