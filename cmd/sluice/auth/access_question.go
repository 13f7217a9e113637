package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// accessQuestion is the state of the commands about rights. They all take the arguments VERB [KIND [NAME]].
type accessQuestion struct {
	std    terminal.Streams
	remote remote.Flags
	form   command.OutputFlag
	client *client.Client
	verb   string
	target client.AccessTarget
}

// command returns a command that parses its arguments and then calls the function answer.
func (q *accessQuestion) command(use, short, long string, answer func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:               use + " VERB [KIND [NAME] | KIND/NAME]",
		Short:             short,
		Long:              long + "\n\nWithout NAME, some resource of the namespace is meant, or of any namespace if -n is absent. CATALOGUE and EXPORT have no KIND.",
		Example:           "  sluice auth " + use + " patch network net-a -n web\n  sluice auth " + use + " create networks\n  sluice auth " + use + " catalogue -o json",
		Args:              command.Args(1, 3),
		ValidArgsFunction: completeAccess,
		RunE: remote.With(q.remote.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			q.client = c
			if err := q.read(cmd.Context(), args); err != nil {
				return err
			}
			return answer(cmd.Context())
		}),
	}
	q.remote.Register(cmd)
	q.form.Register(cmd)
	return cmd
}

// read parses VERB [KIND [NAME]].
func (q *accessQuestion) read(ctx context.Context, args []string) error {
	q.verb = strings.ToUpper(args[0])
	if !slices.Contains(access.Verbs(), descriptor.Verb(q.verb)) {
		return exit.Usage(fmt.Errorf("verb %q is not known; accepted are %s", args[0], strings.Join(verbNames(), ", ")))
	}
	ofNone := slices.Contains(access.OfNoKind(), descriptor.Verb(q.verb))
	switch {
	case ofNone && len(args) > 1:
		return exit.Usage(fmt.Errorf("%s is of no kind; leave KIND out", q.verb))
	case ofNone:
		return nil
	case len(args) == 1:
		return exit.Usage(fmt.Errorf("%s is used on resources; name a KIND", q.verb))
	}
	return q.aim(ctx, args[1:])
}

// aim parses KIND [NAME].
func (q *accessQuestion) aim(ctx context.Context, args []string) error {
	targets, err := resource.ReadTargets(ctx, q.client, args)
	if err != nil {
		return err
	}
	if len(targets) != 1 || len(targets[0].Names) > 1 {
		return exit.Usage(errors.New("one kind or resource is wanted: KIND, KIND NAME or KIND/NAME"))
	}
	kind, namespace := targets[0].Kind, q.remote.Namespace
	if len(targets[0].Names) == 1 {
		q.target = resource.NewRef(kind, namespace, targets[0].Names[0]).AccessTarget()
		return nil
	}
	if kind.Scope == "GLOBAL" {
		namespace = ""
	}
	q.target = client.AccessTarget{Kind: kind.Name, Namespace: namespace}
	return nil
}

// what returns the question as text, such as "PATCH on network/net-a -n web".
func (q *accessQuestion) what() string {
	t := q.target
	text := q.verb
	if t.Kind != "" {
		text += " on " + strings.ToLower(t.Kind)
	}
	if t.Name != "" {
		text += "/" + t.Name
	}
	if t.Namespace != "" {
		text += " -n " + t.Namespace
	}
	return output.Printable(text)
}

func verbNames() (out []string) {
	for _, v := range access.Verbs() {
		out = append(out, strings.ToLower(string(v)))
	}
	return out
}

// completeAccess completes a verb, a kind and a name.
func completeAccess(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return verbNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return remote.CompleteTargets(false)(cmd, args[1:], typed)
}
