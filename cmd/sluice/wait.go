package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/selector"
	"github.com/sluicegw/sluice/graph/client"
)

func waitCommand(std streams) *cobra.Command {
	var r remote
	var until string
	var selectors []string
	cmd := &cobra.Command{
		Use:   "wait KIND NAME... | KIND/NAME... | KIND -l SELECTOR --for=condition=TYPE[=STATUS]|delete|jsonpath={PATH}[=VALUE]",
		Short: "Wait until resources are as wanted",
		Long: "Wait until resources have a condition, are deleted, or have a value at a path. What happens is followed on the\n" +
			"change stream. The exit code is 1 if it does not happen in time, and 3 if a resource does not exist.",
		Example: "  sluice wait network/net-a --for=condition=Available\n  sluice wait net/net-a port/p1 --for=delete --timeout 2m\n" +
			"  sluice wait network net-a --for=jsonpath='{.status.resource.status}'=ACTIVE\n  sluice wait ports -l team=web --for=condition=Available",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			goal, err := parseGoal(until)
			if err != nil {
				return usageError{err}
			}
			labels, err := selector.ParseLabels(selectors)
			if err != nil {
				return usageError{err}
			}
			c, err := r.client(cmd)
			if err != nil {
				return err
			}
			if r.timeout <= 0 {
				return usageError{errors.New("timeout: a duration over 0 is accepted, like 30s")}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
			defer cancel()
			kinds, err := c.Kinds(ctx)
			if err != nil {
				return err
			}
			targets, err := parseTargets(kinds, args)
			if err != nil {
				return err
			}
			w := waiting{std: std, client: c, remote: r, goal: goal, labels: labels}
			if err := w.find(ctx, targets); err != nil {
				return err
			}
			return w.all(ctx, targets)
		},
	}
	r.register(cmd)
	cmd.Flags().Lookup("timeout").Usage = "how long to wait in all"
	cmd.Flags().StringArrayVarP(&selectors, "selector", "l", nil, "labels of the resources that are waited for: those that have them at the beginning")
	cmd.Flags().StringVar(&until, "for", "", "condition=TYPE[=STATUS], delete or jsonpath={PATH}[=VALUE]")
	completeFlag(cmd, "for", cobra.FixedCompletions([]string{"condition=", "delete", "jsonpath="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	return cmd
}

// goal is what is waited for.
type goal struct {
	text string
	// deleted: the resource is gone.
	deleted bool
	// condition has the status; empty if another goal is meant.
	condition, status string
	// path has the value, or any if there is none.
	path  *output.Path
	value *string
}

const goalForms = "condition=TYPE, condition=TYPE=STATUS, delete, jsonpath={PATH} and jsonpath={PATH}=VALUE are accepted"

func parseGoal(text string) (goal, error) {
	g := goal{text: text}
	form, rest, _ := strings.Cut(text, "=")
	switch {
	case text == "delete":
		g.deleted = true
		return g, nil
	case form == "condition" && rest != "":
		g.condition, g.status, _ = strings.Cut(rest, "=")
		if g.status == "" {
			g.status = "True"
		}
		if g.condition != "" {
			return g, nil
		}
	case form == "jsonpath" && strings.HasPrefix(rest, "{"):
		end := strings.LastIndex(rest, "}=")
		if end >= 0 {
			value := rest[end+2:]
			g.value, rest = &value, rest[:end+1]
		}
		path, err := output.ParsePath(rest)
		if err != nil {
			return g, fmt.Errorf("for: %w", err)
		}
		g.path = &path
		return g, nil
	}
	return g, fmt.Errorf("for: %q; %s", text, goalForms)
}

// reached says whether a resource is as wanted, and if not how it is.
func (g goal) reached(k client.Kind, r *client.Resource) (bool, string, error) {
	switch {
	case g.deleted:
		return false, "it is there", nil
	case g.condition != "":
		c := r.Condition(g.condition)
		if c.Type == "" {
			return false, "it has no condition " + g.condition, nil
		}
		is := c.Type + " is " + c.Status
		if c.Message != "" {
			is += ": " + c.Message
		}
		return strings.EqualFold(c.Status, g.status), is, nil
	}
	tree, err := output.Tree(k, r)
	if err != nil {
		return false, "", err
	}
	values, err := g.path.Values(tree)
	if err != nil {
		return false, "", err
	}
	if len(values) == 0 {
		return false, "there is no value", nil
	}
	text, err := g.path.Text(tree)
	return g.value == nil || text == *g.value, "the value is " + text, err
}

// waiting is one run of the command.
type waiting struct {
	std    streams
	client *client.Client
	remote remote
	goal   goal
	labels []client.LabelTest
	// uids are those that are to be gone, by kind and name; a resource that was not
	// there has none.
	uids map[[2]string]string
}

// maxWaiting is how many resources of a kind are waited for by their labels.
const maxWaiting = 1000

// find names the resources that are meant by their labels, and notes which ones are
// to be gone: one of the same name that comes later is another one.
func (w *waiting) find(ctx context.Context, targets []target) error {
	w.uids = map[[2]string]string{}
	for i := range targets {
		t := &targets[i]
		switch {
		case len(t.names) == 0 && len(w.labels) == 0:
			return usageError{errors.New("wait: KIND NAME..., KIND/NAME... or KIND -l SELECTOR says what is waited for")}
		case len(t.names) > 0 && len(w.labels) > 0:
			return usageError{errors.New("selector: it chooses from all resources of a kind; it does not go with names")}
		case w.goal.condition != "" && !t.kind.HasConditions():
			return usageError{fmt.Errorf("for: kind %s has no conditions", t.kind.Name)}
		}
		namespace := w.remote.scope(t.kind, false)
		all := fetch(ctx, w.client, *t, namespace, "")
		if len(t.names) == 0 {
			all = w.client.List(ctx, client.ListRequest{Kind: t.kind, Namespace: namespace, Selector: w.labels, NamesOnly: true})
		} else if !w.goal.deleted {
			continue
		}
		for r, err := range all {
			var absent notFoundError
			switch {
			case errors.As(err, &absent):
				continue
			case err != nil:
				return err
			case len(w.labels) > 0 && len(t.names) == maxWaiting:
				return fmt.Errorf("selector: more than %d resources of kind %s have the labels", maxWaiting, t.kind.Name)
			case len(w.labels) > 0:
				t.names = append(t.names, r.Metadata.Name)
			}
			w.uids[[2]string{t.kind.Name, r.Metadata.Name}] = r.Metadata.UID
		}
		if len(t.names) == 0 && !w.goal.deleted {
			return notFoundError{fmt.Errorf("no %s have the labels%s (NOT_FOUND)", t.kind.Plural, in(namespace))}
		}
	}
	return nil
}

// all waits for one resource after the other: what has come about before is seen
// when its turn comes.
func (w *waiting) all(ctx context.Context, targets []target) error {
	var found tally
	for _, t := range targets {
		for _, name := range t.names {
			if err := w.one(ctx, t.kind, name); err != nil {
				found.note(w.std, err)
				continue
			}
			said := "condition met"
			if w.goal.deleted {
				said = "deleted"
			}
			_, _ = fmt.Fprintf(w.std.out, "%s/%s %s\n", printable(strings.ToLower(t.kind.Name)), printable(name), said)
		}
	}
	return found.err()
}

// errReached ends the stream of a resource that is as wanted.
var errReached = errors.New("reached")

// one waits for one resource.
func (w *waiting) one(ctx context.Context, k client.Kind, name string) error {
	namespace := w.remote.scope(k, false)
	uid, is, present := w.uids[[2]string{k.Name, name}], "nothing is known of it", false
	look := func(c *client.Change) error {
		switch {
		case c.Type == "RESET":
			present = false
		case c.Type == "IN_SYNC" && !present, c.Type == "DELETED":
			if w.goal.deleted {
				return errReached
			}
			return absentError(k, namespace, name)
		}
		if c.Resource == nil {
			return nil
		}
		if w.goal.deleted && uid != c.Resource.Metadata.UID {
			return errReached // it is another one of that name
		}
		present = true
		done, now, err := w.goal.reached(k, c.Resource)
		if is = now; done {
			return errReached
		}
		return err
	}
	for change, err := range w.client.Changes(ctx, client.ChangesRequest{Kind: k, Namespace: namespace, Name: name, Snapshot: true}) {
		switch {
		case errors.Is(err, context.DeadlineExceeded):
			return fmt.Errorf("%s %s: timed out after %v waiting for %s: %s", k.Name, name, w.remote.timeout.Round(time.Millisecond), w.goal.text, is)
		case errors.Is(err, context.Canceled):
			return errors.New("interrupted")
		case err != nil:
			return err
		}
		if err := look(change); errors.Is(err, errReached) {
			return nil
		} else if err != nil {
			return err
		}
	}
	return nil
}
