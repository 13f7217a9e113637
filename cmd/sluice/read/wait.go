package read

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/await"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/input"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func WaitCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var until string
	var selectors []string
	cmd := &cobra.Command{
		Use:   "wait KIND NAME... | KIND/NAME... | KIND -l SELECTOR --for=condition=TYPE[=STATUS]|delete|jsonpath={PATH}[=VALUE]",
		Short: "Wait for a condition, the deletion or a value of resources",
		Long: "Wait until resources have a condition, are deleted, or have a value at a path. What happens is followed on the\n" +
			"change stream. The exit code is 1 if it does not happen in time, and 3 if a resource does not exist.",
		Example: "  sluice wait network/net-a --for=condition=Available\n  sluice wait net/net-a port/p1 --for=delete --timeout 2m\n" +
			"  sluice wait network net-a --for=jsonpath='{.status.resource.status}'=ACTIVE\n  sluice wait ports -l team=web --for=condition=Available",
		Args: command.Args(1, command.Unlimited),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			goal, err := await.ParseGoal(until)
			if err != nil {
				return exit.Usage(err)
			}
			labels, err := input.ParseLabels(selectors)
			if err != nil {
				return exit.Usage(err)
			}
			if r.Timeout <= 0 {
				return exit.Usage(errors.New("timeout: a duration over 0 is accepted, like 30s"))
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), r.Timeout)
			defer cancel()
			targets, err := resource.ReadTargets(ctx, c, args)
			if err != nil {
				return err
			}
			w := waitRun{Waiter: await.Waiter{Std: std, Client: c, Timeout: r.Timeout}, goal: goal, labels: labels}
			list, err := w.find(ctx, r.Namespace, targets)
			if err != nil {
				return err
			}
			late, stop := context.WithTimeout(cmd.Context(), r.Timeout+await.LastLookTime)
			defer stop()
			return w.all(ctx, late, list)
		}),
	}
	r.Register(cmd)
	cmd.Flags().Lookup("timeout").Usage = "how long to wait in all"
	cmd.Flags().StringArrayVarP(
		&selectors,
		"selector",
		"l",
		nil,
		"labels of the resources to wait for: those that have them at the beginning",
	)
	cmd.Flags().StringVar(&until, "for", "", "condition=TYPE[=STATUS], delete or jsonpath={PATH}[=VALUE]")
	command.CompleteFlag(
		cmd,
		"for",
		cobra.FixedCompletions(
			[]string{"condition=", "delete", "jsonpath="},
			cobra.ShellCompDirectiveNoFileComp|cobra.ShellCompDirectiveNoSpace,
		),
	)
	return cmd
}

// waitRun is the state of the command wait.
type waitRun struct {
	await.Waiter
	goal   await.Goal
	labels []client.LabelTest
	// unread reports whether there are unreadable resources, which may have the labels.
	unread bool
}

// maxWaiting is the maximum number of resources of a kind that can be selected by labels.
const maxWaiting = 1000

// find returns the resources to wait for: the named ones, or those that have the labels now. If the goal is deletion,
// it records their uids, because a later resource with the same name is another one.
func (w *waitRun) find(
	ctx context.Context,
	namespace string,
	targets []resource.Target,
) (list []await.PendingGoal, err error) {
	for _, t := range targets {
		switch {
		case len(t.Names) == 0 && len(w.labels) == 0:
			return nil, exit.Usage(errors.New("wait: KIND NAME..., KIND/NAME... or KIND -l SELECTOR says what is waited for"))
		case len(t.Names) > 0 && len(w.labels) > 0:
			return nil, exit.Usage(errors.New("selector: it chooses from all resources of a kind; it does not go with names"))
		case w.goal.Condition != "" && !t.Kind.HasConditions():
			return nil, exit.Usage(fmt.Errorf("for: kind %s has no conditions", t.Kind.Name))
		}
		namespace := resource.NamespaceOf(t.Kind, namespace)
		for _, name := range t.Names {
			s := await.PendingGoal{Goal: w.goal, Ref: resource.NewRef(t.Kind, namespace, name)}
			if w.goal.Deleted {
				r, err := w.Client.Get(ctx, t.Kind, namespace, name, "")
				if err != nil {
					return nil, err
				}
				if r != nil {
					s.UID = r.Metadata.UID
				}
			}
			list = append(list, s)
		}
		if len(w.labels) == 0 {
			continue
		}
		count := 0
		for r, err := range w.Client.List(ctx, client.ListRequest{
			Kind:      t.Kind,
			Namespace: namespace,
			Selector:  w.labels,
			NamesOnly: true,
		}) {
			if exit.ReportUnreadable(w.Std, err) {
				w.unread = true
				continue
			}
			if err != nil {
				return nil, err
			}
			if count++; count > maxWaiting {
				return nil, fmt.Errorf("selector: more than %d resources of kind %s have the labels",
					maxWaiting, t.Kind.Name)
			}
			list = append(list, await.PendingGoal{
				Goal: w.goal,
				Ref:  resource.NewRef(t.Kind, namespace, r.Metadata.Name),
				UID:  r.Metadata.UID,
			})
		}
		if count == 0 && !w.goal.Deleted && !w.unread {
			return nil, exit.NotFound(fmt.Errorf("no %s have the labels%s (NOT_FOUND)",
				t.Kind.Plural, resource.InNamespace(namespace)))
		}
	}
	return list, nil
}

// all waits for the resources one after another. If a resource reaches its goal while all waits for an earlier one, all
// notices that later. If ctx ends, all reads each of the remaining resources once, with the context late.
func (w *waitRun) all(ctx, late context.Context, list []await.PendingGoal) error {
	said := "condition met"
	if w.goal.Deleted {
		said = "deleted"
	}
	var found exit.Status
	for i, s := range list {
		w.Std.Progress(i+1, len(list))
		if err := w.Wait(ctx, late, s); err != nil {
			found.Note(w.Std, err)
			continue
		}
		_, _ = fmt.Fprintf(w.Std.Out, "%s/%s %s\n",
			output.Printable(strings.ToLower(s.Kind.Name)), output.Printable(s.Name), said)
	}
	if w.unread { // whether they have the labels, and are as wanted, is not known
		found.Failed = true
	}
	return found.Err()
}
