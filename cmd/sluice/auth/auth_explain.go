package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// accessReason is a grant by which the caller has a verb.
type accessReason struct {
	Verb string `json:"verb" yaml:"verb"`
	// By is the subject of the grant: the caller's name or one of its groups.
	By                 string `json:"by" yaml:"by"`
	client.AccessGrant `yaml:",inline"`
}

// accessExplanation explains why a caller has a verb, or why not.
type accessExplanation struct {
	Allowed bool   `json:"allowed" yaml:"allowed"`
	Caller  string `json:"caller" yaml:"caller"`
	// Reasons are the grants that the caller may see. Hidden are the verbs that the caller has by grants that it may
	// not see.
	Reasons []accessReason `json:"reasons" yaml:"reasons"`
	Hidden  []string       `json:"hidden" yaml:"hidden"`
	// Missing are required verbs that the caller does not have.
	Missing []string `json:"missing" yaml:"missing"`
}

func accessExplainCommand(std terminal.Streams) *cobra.Command {
	q := &accessQuestion{std: std}
	return q.command("explain", "Show why you may do something, or why not",
		"Show by which binding, role and rule you may do something, or which verb you do not have; then the exit code is 1.",
		func(ctx context.Context) error {
			e, err := q.explain(ctx)
			if err != nil {
				return err
			}
			err = q.form.Print(std, e, func() error { return q.showExplanation(e) })
			if err == nil && !e.Allowed {
				err = exit.ErrReported
			}
			return err
		})
}

// explain finds out why the caller has the verb, or why not.
func (q *accessQuestion) explain(ctx context.Context) (*accessExplanation, error) {
	viewer, err := q.client.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	has, err := q.client.Access(ctx, q.target)
	if err != nil {
		return nil, err
	}
	e := &accessExplanation{
		Allowed: slices.Contains(has, q.verb),
		Caller:  viewer.Name,
		Reasons: []accessReason{},
		Hidden:  []string{},
		Missing: []string{},
	}
	groups := viewer.Groups
	if viewer.Source != access.Anonymous {
		groups = append(groups, access.Authenticated)
	}
	for _, verb := range q.needed() {
		grants, err := q.client.AccessGrants(ctx, verb, q.target)
		if err != nil {
			return nil, err
		}
		found := false
		for _, g := range grants {
			by := slices.DeleteFunc(slices.Concat(g.Users, g.Groups), func(name string) bool {
				return !(name == viewer.Name && slices.Contains(g.Users, name)) &&
					!(slices.Contains(groups, name) && slices.Contains(g.Groups, name))
			})
			if len(by) > 0 {
				found = true
				e.Reasons = append(e.Reasons, accessReason{verb, strings.Join(by, ","), g})
			}
		}
		switch {
		case found:
		case e.Allowed:
			e.Hidden = append(e.Hidden, verb)
		case !slices.Contains(has, verb):
			e.Missing = append(e.Missing, verb)
		}
	}
	return e, nil
}

// needed returns the verbs that the caller must have in order to use the verb of the question. Most verbs also need
// GET.
func (q *accessQuestion) needed() []string {
	switch q.verb {
	case "GET", "CREATE", "CONTROL", "CATALOGUE", "EXPORT":
		return []string{q.verb}
	}
	return []string{q.verb, "GET"}
}

func (q *accessQuestion) showExplanation(e *accessExplanation) error {
	switch {
	case e.Allowed && e.Caller == access.Anonymous:
		_, err := fmt.Fprintln(q.std.Out, "yes: "+everybody)
		return err
	case e.Allowed:
		_, _ = fmt.Fprintf(q.std.Out, "yes: %s may use %s\n", output.Printable(e.Caller), q.what())
	default:
		_, _ = fmt.Fprintf(q.std.Out, "no: %s may not use %s\n", output.Printable(e.Caller), q.what())
	}
	for _, verb := range e.Missing {
		_, _ = fmt.Fprintf(q.std.Out, "no binding that you may see gives %s\n", verb)
	}
	for _, verb := range e.Hidden {
		_, _ = fmt.Fprintf(q.std.Out, "%s is given by a binding that you may not see\n", verb)
	}
	if len(e.Reasons) == 0 {
		return nil
	}
	shown := command.Table{Titles: []string{"VERB", "BINDING", "ROLE", "RULE", "FOR"}}
	for _, r := range e.Reasons {
		shown.Rows = append(
			shown.Rows,
			slices.Concat([]string{output.Cell(r.Verb)}, grantCells(r.AccessGrant), []string{output.Cell(r.By)}),
		)
	}
	return shown.Print(q.std)
}
