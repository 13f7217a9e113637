package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/client"
)

// accessQuestion is the question of the commands about rights: VERB [KIND [NAME]].
type accessQuestion struct {
	std    streams
	remote remote
	form   dataForm
	client *client.Client
	verb   string
	target client.AccessTarget
}

// command returns a command that reads the question and then calls answer.
func (q *accessQuestion) command(use, short, long string, answer func(context.Context) error) *cobra.Command {
	cmd := &cobra.Command{
		Use:               use + " VERB [KIND [NAME] | KIND/NAME]",
		Short:             short,
		Long:              long + "\n\nWithout NAME, some resource of the namespace is meant, or of any namespace if -n is absent. CATALOGUE and EXPORT have no KIND.",
		Example:           "  sluice auth " + use + " patch network net-a -n web\n  sluice auth " + use + " create networks\n  sluice auth " + use + " catalogue -o json",
		Args:              usage(cobra.RangeArgs(1, 3)),
		ValidArgsFunction: completeAccess,
		RunE: with(q.remote.client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			q.client = c
			if err := q.read(cmd.Context(), args); err != nil {
				return err
			}
			return answer(cmd.Context())
		}),
	}
	q.remote.register(cmd)
	q.form.register(cmd)
	return cmd
}

// read reads VERB [KIND [NAME]].
func (q *accessQuestion) read(ctx context.Context, args []string) error {
	q.verb = strings.ToUpper(args[0])
	if !slices.Contains(access.Verbs(), descriptor.Verb(q.verb)) {
		return usageError{fmt.Errorf("verb %q is not known; accepted are %s", args[0], strings.Join(verbNames(), ", "))}
	}
	ofNone := slices.Contains(access.OfNoKind(), descriptor.Verb(q.verb))
	switch {
	case ofNone && len(args) > 1:
		return usageError{fmt.Errorf("%s is of no kind; leave KIND out", q.verb)}
	case ofNone:
		return nil
	case len(args) == 1:
		return usageError{fmt.Errorf("%s is used on resources; name a KIND", q.verb)}
	}
	return q.aim(ctx, args[1:])
}

// aim reads KIND [NAME].
func (q *accessQuestion) aim(ctx context.Context, args []string) error {
	targets, err := readTargets(ctx, q.client, args)
	if err != nil {
		return err
	}
	if len(targets) != 1 || len(targets[0].names) > 1 {
		return usageError{errors.New("one kind or resource is wanted: KIND, KIND NAME or KIND/NAME")}
	}
	kind, namespace := targets[0].kind, q.remote.namespace
	if len(targets[0].names) == 1 {
		q.target = newSubject(kind, namespace, targets[0].names[0]).access()
		return nil
	}
	if kind.Scope == "GLOBAL" {
		namespace = ""
	}
	q.target = client.AccessTarget{Kind: kind.Name, Namespace: namespace}
	return nil
}

// what returns the question in words: PATCH on network/net-a -n web.
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
	return printable(text)
}

func verbNames() (out []string) {
	for _, v := range access.Verbs() {
		out = append(out, strings.ToLower(string(v)))
	}
	return out
}

// completeAccess completes a verb, then a kind, then a name.
func completeAccess(cmd *cobra.Command, args []string, typed string) ([]string, cobra.ShellCompDirective) {
	if len(args) == 0 {
		return verbNames(), cobra.ShellCompDirectiveNoFileComp
	}
	return completeTargets(false)(cmd, args[1:], typed)
}

func canICommand(std streams) *cobra.Command {
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
			err = q.form.print(std, struct {
				Allowed             bool   `json:"allowed" yaml:"allowed"`
				Verb                string `json:"verb" yaml:"verb"`
				client.AccessTarget `yaml:",inline"`
			}{yes, q.verb, q.target}, func() error {
				_, err := fmt.Fprintln(std.out, text)
				return err
			})
			if err == nil && !yes {
				err = errReported
			}
			return err
		})
	cmd.Flags().BoolVar(&list, "list", false, "print all that you may do")
	cmd.Use = "can-i VERB [KIND [NAME] | KIND/NAME] | --list [KIND [NAME] | KIND/NAME]"
	cmd.Example += "\n  sluice auth can-i --list -n web"
	cmd.Args = usage(cobra.MaximumNArgs(3))
	one, all := cmd.RunE, with(q.remote.client, func(cmd *cobra.Command, c *client.Client, args []string) error {
		q.client = c
		return q.list(cmd.Context(), args)
	})
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		switch {
		case list:
			return all(cmd, args)
		case len(args) == 0:
			return usageError{fmt.Errorf("a VERB is wanted, or --list; see %s --help", cmd.CommandPath())}
		}
		return one(cmd, args)
	}
	return cmd
}

// list prints the verbs that the caller may use.
func (q *accessQuestion) list(ctx context.Context, args []string) error {
	all, err := q.allowed(ctx, args)
	if err != nil {
		return err
	}
	shown := table{titles: []string{"KIND", "VERBS"}}
	for _, one := range all {
		if len(one.Verbs) > 0 {
			shown.rows = append(shown.rows, []string{cell(one.Kind), printable(strings.ToLower(strings.Join(one.Verbs, ",")))})
		}
	}
	if len(shown.rows) == 0 && q.form == "table" {
		_, _ = fmt.Fprintln(q.std.err, "there is nothing that you may do")
	}
	return q.form.print(q.std, all, shown.to(q.std))
}

// allowed returns the verbs that the caller may use on the resources that args name, or on each kind.
func (q *accessQuestion) allowed(ctx context.Context, args []string) (all []client.AllowedVerbs, err error) {
	if len(args) > 0 {
		if err := q.aim(ctx, args); err != nil {
			return nil, err
		}
		verbs, err := q.client.Access(ctx, q.target)
		return []client.AllowedVerbs{{Kind: q.target.Kind, Verbs: verbs}}, err
	}
	if all, err = q.client.Allowed(ctx); err != nil || q.remote.namespace == "" {
		return all, err
	}
	kinds, err := q.client.Kinds(ctx)
	if err != nil {
		return nil, err
	}
	for i := range all { // of what may be done somewhere, what may be done here
		k, err := client.FindKind(kinds, all[i].Kind)
		if err != nil || k.Scope == "GLOBAL" || len(all[i].Verbs) == 0 {
			continue
		}
		if all[i].Verbs, err = q.client.Access(ctx, client.AccessTarget{Kind: k.Name, Namespace: q.remote.namespace}); err != nil {
			return nil, err
		}
	}
	return all, nil
}
