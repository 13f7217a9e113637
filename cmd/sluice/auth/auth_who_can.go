package auth

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/service/access"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

// everybody is what is printed if the gateway has no access control.
const everybody = "the gateway has no access control, everybody may do everything"

func whoCanCommand(std terminal.Streams) *cobra.Command {
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
			shown := command.Table{Titles: []string{"BINDING", "ROLE", "RULE", "USERS", "GROUPS"}}
			for _, g := range grants {
				shown.Rows = append(
					shown.Rows,
					append(
						grantCells(g),
						output.Cell(strings.Join(g.Users, ",")),
						output.Cell(strings.Join(g.Groups, ",")),
					),
				)
			}
			switch {
			case q.form != "table":
			case viewer.Source == access.Anonymous:
				_, err := fmt.Fprintln(std.Out, everybody)
				return err
			case len(grants) == 0:
				_, _ = fmt.Fprintf(std.Err, "there is no binding for %s that you may see\n", q.what())
			}
			return q.form.Print(std, grants, shown.To(std))
		})
}

// grantCells returns the cells of a grant: the binding, the role and the number of the rule.
func grantCells(g client.AccessGrant) []string {
	binding, rule := "(admin-group)", ""
	if g.Binding != nil {
		binding = *g.Binding
	}
	if g.Rule != nil {
		rule = strconv.Itoa(*g.Rule)
	}
	return []string{output.Cell(binding), output.Cell(output.OrEmpty(g.Role)), output.Cell(rule)}
}
