package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/graph/client"
)

func waitCommand(std streams) *cobra.Command {
	var r remote
	var until string
	var selectors []string
	cmd := &cobra.Command{
		Use:   "wait KIND NAME... | KIND/NAME... | KIND -l SELECTOR --for=condition=TYPE[=STATUS]|delete|jsonpath={PATH}[=VALUE]",
		Short: "Wait for a condition, the deletion or a value of resources",
		Long: "Wait until resources have a condition, are deleted, or have a value at a path. What happens is followed on the\n" +
			"change stream. The exit code is 1 if it does not happen in time, and 3 if a resource does not exist.",
		Example: "  sluice wait network/net-a --for=condition=Available\n  sluice wait net/net-a port/p1 --for=delete --timeout 2m\n" +
			"  sluice wait network net-a --for=jsonpath='{.status.resource.status}'=ACTIVE\n  sluice wait ports -l team=web --for=condition=Available",
		Args: usage(cobra.MinimumNArgs(1)),
		RunE: with(r.client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			goal, err := parseGoal(until)
			if err != nil {
				return usageError{err}
			}
			labels, err := input.ParseLabels(selectors)
			if err != nil {
				return usageError{err}
			}
			if r.timeout <= 0 {
				return usageError{errors.New("timeout: a duration over 0 is accepted, like 30s")}
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), r.timeout)
			defer cancel()
			targets, err := readTargets(ctx, c, args)
			if err != nil {
				return err
			}
			w := waiting{std: std, client: c, timeout: r.timeout, goal: goal, labels: labels}
			list, err := w.find(ctx, r.namespace, targets)
			if err != nil {
				return err
			}
			late, stop := context.WithTimeout(cmd.Context(), r.timeout+lastLookTime)
			defer stop()
			return w.all(ctx, late, list)
		}),
	}
	r.register(cmd)
	cmd.Flags().Lookup("timeout").Usage = "how long to wait in all"
	cmd.Flags().StringArrayVarP(&selectors, "selector", "l", nil, "labels of the resources to wait for: those that have them at the beginning")
	cmd.Flags().StringVar(&until, "for", "", "condition=TYPE[=STATUS], delete or jsonpath={PATH}[=VALUE]")
	completeFlag(cmd, "for", cobra.FixedCompletions([]string{"condition=", "delete", "jsonpath="}, cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace))
	return cmd
}

// waiting is one run of the command.
type waiting struct {
	std    streams
	client *client.Client
	// timeout is how long to wait in all.
	timeout time.Duration
	goal    goal
	labels  []client.LabelTest
	// unread reports whether resources that may have the labels cannot be read.
	unread bool
}

// lastLookTime is how long the last look at all resources may take, when the time is over.
const lastLookTime = 2 * time.Second

// maxWaiting bounds how many resources of a kind are waited for by their labels.
const maxWaiting = 1000

// find returns the resources to wait for: those that are named, or that have the labels now. For a deletion it notes
// their uids, since a later resource of the same name is another one.
func (w *waiting) find(ctx context.Context, namespace string, targets []target) (list []pendingGoal, err error) {
	for _, t := range targets {
		switch {
		case len(t.names) == 0 && len(w.labels) == 0:
			return nil, usageError{errors.New("wait: KIND NAME..., KIND/NAME... or KIND -l SELECTOR says what is waited for")}
		case len(t.names) > 0 && len(w.labels) > 0:
			return nil, usageError{errors.New("selector: it chooses from all resources of a kind; it does not go with names")}
		case w.goal.condition != "" && !t.kind.HasConditions():
			return nil, usageError{fmt.Errorf("for: kind %s has no conditions", t.kind.Name)}
		}
		namespace := scope(t.kind, namespace)
		for _, name := range t.names {
			s := pendingGoal{goal: w.goal, subject: newSubject(t.kind, namespace, name)}
			if w.goal.deleted {
				r, err := w.client.Get(ctx, t.kind, namespace, name, "")
				if err != nil {
					return nil, err
				}
				if r != nil {
					s.uid = r.Metadata.UID
				}
			}
			list = append(list, s)
		}
		if len(w.labels) == 0 {
			continue
		}
		count := 0
		for r, err := range w.client.List(ctx, client.ListRequest{Kind: t.kind, Namespace: namespace, Selector: w.labels, NamesOnly: true}) {
			if unreadable(w.std, err) {
				w.unread = true
				continue
			}
			if err != nil {
				return nil, err
			}
			if count++; count > maxWaiting {
				return nil, fmt.Errorf("selector: more than %d resources of kind %s have the labels", maxWaiting, t.kind.Name)
			}
			list = append(list, pendingGoal{goal: w.goal, subject: newSubject(t.kind, namespace, r.Metadata.Name), uid: r.Metadata.UID})
		}
		if count == 0 && !w.goal.deleted && !w.unread {
			return nil, notFoundError{fmt.Errorf("no %s have the labels%s (NOT_FOUND)", t.kind.Plural, in(namespace))}
		}
	}
	return list, nil
}

// all waits for one resource after the other. What happens to a later one meanwhile is seen when its turn comes, even
// if ctx has ended by then: late leaves time for a last look.
func (w *waiting) all(ctx, late context.Context, list []pendingGoal) error {
	said := "condition met"
	if w.goal.deleted {
		said = "deleted"
	}
	var found tally
	for i, s := range list {
		w.std.progress(i+1, len(list))
		if err := w.one(ctx, late, s); err != nil {
			found.note(w.std, err)
			continue
		}
		_, _ = fmt.Fprintf(w.std.out, "%s/%s %s\n", printable(strings.ToLower(s.kind.Name)), printable(s.name), said)
	}
	if w.unread { // whether they have the labels, and are as wanted, is not known
		found.failed = true
	}
	return found.err()
}

// one waits for one resource.
func (w *waiting) one(ctx, late context.Context, s pendingGoal) error {
	s.state = "nothing is known of it"
	req := client.ChangesRequest{Kind: s.kind, Namespace: s.namespace, Name: s.name, Snapshot: true, Lost: reportLost(w.std)}
	for change, err := range w.client.Changes(ctx, req) {
		if errors.Is(err, context.DeadlineExceeded) {
			if err = s.lastLook(late, w.client); err == nil {
				err = fmt.Errorf("%s %s: timed out after %v waiting for %s: %s", s.kind.Name, s.name, w.timeout.Round(time.Millisecond), s.goal.text, s.state)
			}
		} else if errors.Is(err, context.Canceled) {
			err = errors.New("interrupted")
		} else if err == nil {
			err = s.observe(change)
		}
		switch {
		case errors.Is(err, errReached):
			return nil
		case errors.Is(err, errAbsent):
			return w.absent(late, s)
		case err != nil:
			return err
		}
	}
	return nil
}

// absent judges that the gateway does not show a resource. It has been deleted only if the caller could see it.
func (w *waiting) absent(ctx context.Context, s pendingGoal) error {
	if s.goal.deleted {
		verbs, err := w.client.Access(ctx, s.access())
		if err != nil {
			return err
		}
		if !slices.Contains(verbs, "GET") {
			return s.hidden()
		}
	}
	if err := s.gone(); !errors.Is(err, errReached) {
		return err
	}
	return nil
}
