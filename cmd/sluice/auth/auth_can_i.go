package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func canICommand(std terminal.Streams) *cobra.Command {
	var list bool
	q := &accessQuestion{std: std}
	cmd := q.command("can-i", "Say whether you may do something",
		"Print yes, or print no and end with exit code 1. The answer depends on roles and bindings alone, not on what exists.\n"+
			"--list prints all that you may do: of every kind, or with what KIND [NAME] says.",
		func(ctx context.Context) error {
			verbs, err := q.client.Access(ctx, q.target)
			if err != nil {
				return err
			}
			yes, text := slices.Contains(verbs, q.verb), "no"
			if yes {
				text = "yes"
			}
			err = q.form.Print(std, struct {
				Allowed             bool   `json:"allowed" yaml:"allowed"`
				Verb                string `json:"verb" yaml:"verb"`
				client.AccessTarget `yaml:",inline"`
			}{yes, q.verb, q.target}, func() error {
				_, err := fmt.Fprintln(std.Out, text)
				return err
			})
			if err == nil && !yes {
				err = exit.ErrReported
			}
			return err
		})
	cmd.Flags().BoolVar(&list, "list", false, "print all that you may do")
	cmd.Use = "can-i VERB [KIND [NAME] | KIND/NAME] | --list [KIND [NAME] | KIND/NAME]"
	cmd.Example += "\n  sluice auth can-i --list -n web"
	cmd.Args = command.Args(0, 3)
	one, all := cmd.RunE, remote.With(q.remote.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
		q.client = c
		return q.list(cmd.Context(), args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case list:
			return all(cmd, args)
		case len(args) == 0:
			return exit.Usage(fmt.Errorf("a VERB is wanted, or --list; see %s --help", cmd.CommandPath()))
		}
		return one(cmd, args)
	}
	return cmd
}

// list prints the verbs that the caller has for the resources in args, or for all kinds if args is empty.
func (q *accessQuestion) list(ctx context.Context, args []string) error {
	all, err := q.allowed(ctx, args)
	if err != nil {
		return err
	}
	shown := command.Table{Titles: []string{"KIND", "VERBS"}}
	for _, one := range all {
		if len(one.Verbs) > 0 {
			shown.Rows = append(shown.Rows, []string{
				output.Cell(one.Kind),
				output.Printable(strings.ToLower(strings.Join(one.Verbs, ","))),
			})
		}
	}
	if len(shown.Rows) == 0 && q.form == "table" {
		_, _ = fmt.Fprintln(q.std.Err, "there is nothing that you may do")
	}
	return q.form.Print(q.std, all, shown.To(q.std))
}

// allowed returns the verbs of the caller for the resources in args, or for all kinds if args is empty.
func (q *accessQuestion) allowed(ctx context.Context, args []string) (all []client.AllowedVerbs, err error) {
	if len(args) > 0 {
		if err := q.aim(ctx, args); err != nil {
			return nil, err
		}
		verbs, err := q.client.Access(ctx, q.target)
		return []client.AllowedVerbs{{Kind: q.target.Kind, Verbs: verbs}}, err
	}
	if all, err = q.client.Allowed(ctx); err != nil || q.remote.Namespace == "" {
		return all, err
	}
	kinds, err := q.client.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all { // replace the verbs that are allowed in any namespace by those in this one
		k, err := client.FindKind(kinds, all[i].Kind)
		if err != nil || k.Scope == "GLOBAL" || len(all[i].Verbs) == 0 {
			continue
		}
		if all[i].Verbs, err = q.client.Access(ctx, client.AccessTarget{
			Kind:      k.Name,
			Namespace: q.remote.Namespace,
		}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
