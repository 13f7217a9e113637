package main

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/graph/client"
)

// everybody is the answer of a gateway that does not know its callers.
const everybody = "the gateway has no access control, everybody may do everything"

func whoCanCommand(std streams) *cobra.Command {
	q := &accessQuestion{std: std}
	return q.command("who-can", "Show who may do something, and by which bindings",
		"Show the users and groups that have a verb, and the binding and the rule of the role that give it: those that you may GET.\n"+
			"All verbs but CREATE need GET of the resource, too.",
		func(ctx context.Context) error {
			grants, err := q.client.AccessGrants(ctx, q.verb, q.target)
			if err != nil {
				return err
			}
			if grants == nil {
				grants = []client.AccessGrant{}
			}
			viewer, err := q.client.Viewer(ctx)
			if err != nil {
				return err
			}
			shown := table{titles: []string{"BINDING", "ROLE", "RULE", "USERS", "GROUPS"}}
			for _, g := range grants {
				shown.rows = append(shown.rows, append(grantCells(g), cell(strings.Join(g.Users, ",")), cell(strings.Join(g.Groups, ","))))
			}
			switch {
			case q.form != "table":
			case viewer.Source == access.Anonymous:
				_, err := fmt.Fprintln(std.out, everybody)
				return err
			case len(grants) == 0:
				_, _ = fmt.Fprintf(std.err, "there is no binding for %s that you may see\n", q.what())
			}
			return q.form.print(std, grants, shown.to(std))
		})
}

// grantCells are a binding, a role and the number of a rule.
func grantCells(g client.AccessGrant) []string {
	binding, rule := "(admin-group)", ""
	if g.Binding != nil {
		binding = *g.Binding
	}
	if g.Rule != nil {
		rule = strconv.Itoa(*g.Rule)
	}
	return []string{cell(binding), cell(orEmpty(g.Role)), cell(rule)}
}

// accessReason is one way in which the caller has a verb.
type accessReason struct {
	Verb string `json:"verb" yaml:"verb"`
	// By is the caller's name, or its group, that the grant names.
	By                 string `json:"by" yaml:"by"`
	client.AccessGrant `yaml:",inline"`
}

// accessExplanation is why a caller may do something.
type accessExplanation struct {
	Allowed bool   `json:"allowed" yaml:"allowed"`
	Caller  string `json:"caller" yaml:"caller"`
	// Reasons are those that the caller may see, and Hidden the verbs that it has by others.
	Reasons []accessReason `json:"reasons" yaml:"reasons"`
	Hidden  []string       `json:"hidden" yaml:"hidden"`
	// Missing are the verbs that the caller does not have.
	Missing []string `json:"missing" yaml:"missing"`
}

func accessExplainCommand(std streams) *cobra.Command {
	q := &accessQuestion{std: std}
	return q.command("explain", "Show why you may do something, or why not",
		"Show by which binding, role and rule you may do something, or which verb you do not have; then the exit code is 1.",
		func(ctx context.Context) error {
			e, err := q.explain(ctx)
			if err != nil {
				return err
			}
			err = q.form.print(std, e, func() error { return q.showExplanation(e) })
			if err == nil && !e.Allowed {
				err = errReported
			}
			return err
		})
}

// explain finds out why the caller may use the verb, or may not.
func (q *accessQuestion) explain(ctx context.Context) (*accessExplanation, error) {
	viewer, err := q.client.Viewer(ctx)
	if err != nil {
		return nil, err
	}
	has, err := q.client.Access(ctx, q.target)
	if err != nil {
		return nil, err
	}
	e := &accessExplanation{Allowed: slices.Contains(has, q.verb), Caller: viewer.Name, Reasons: []accessReason{}, Hidden: []string{}, Missing: []string{}}
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
				return !(name == viewer.Name && slices.Contains(g.Users, name)) && !(slices.Contains(groups, name) && slices.Contains(g.Groups, name))
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

// needed are the verbs that the verb asks for.
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
		_, err := fmt.Fprintln(q.std.out, "yes: "+everybody)
		return err
	case e.Allowed:
		_, _ = fmt.Fprintf(q.std.out, "yes: %s may use %s\n", printable(e.Caller), q.what())
	default:
		_, _ = fmt.Fprintf(q.std.out, "no: %s may not use %s\n", printable(e.Caller), q.what())
	}
	for _, verb := range e.Missing {
		_, _ = fmt.Fprintf(q.std.out, "no binding that you may see gives %s\n", verb)
	}
	for _, verb := range e.Hidden {
		_, _ = fmt.Fprintf(q.std.out, "%s is given by a binding that you may not see\n", verb)
	}
	if len(e.Reasons) == 0 {
		return nil
	}
	shown := table{titles: []string{"VERB", "BINDING", "ROLE", "RULE", "FOR"}}
	for _, r := range e.Reasons {
		shown.rows = append(shown.rows, slices.Concat([]string{cell(r.Verb)}, grantCells(r.AccessGrant), []string{cell(r.By)}))
	}
	return shown.print(q.std)
}
