package read

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func APIResourcesCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	format := "table"
	var noHeaders bool
	cmd := &cobra.Command{
		Use:     "api-resources",
		Aliases: []string{"kinds"},
		Short:   "List the kinds that the gateway serves",
		Example: "  sluice api-resources\n  sluice api-resources -o wide",
		Args:    command.Args(0, 0),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			kinds, err := c.Kinds(cmd.Context())
			if err != nil {
				return err
			}
			columns := []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "CONTROLLED", "VERBS"}
			var states map[string]client.KindState
			if format == "wide" {
				columns = append(columns, "BYTES", "SERVICE")
				states, err = c.KindStates(cmd.Context())
				if err != nil {
					return err
				}
			}
			t := output.NewTable(std.Out, columns)
			t.NoHeaders = noHeaders
			for _, k := range kinds {
				if format == "name" {
					_, _ = fmt.Fprintln(std.Out, output.Printable(k.Plural))
					continue
				}
				cells := []string{
					output.Cell(k.Plural),
					output.Cell(strings.Join(k.ShortNames, ",")),
					output.Cell(k.APIVersion),
					fmt.Sprint(k.Scope != "GLOBAL"),
					output.Cell(k.Name),
					fmt.Sprint(k.Controlled),
					output.Printable(strings.ToLower(strings.Join(k.Verbs, ","))),
				}
				if format == "wide" {
					size := ""
					if bytes := states[k.Name].StoredBytes; bytes != nil {
						size = fmt.Sprint(*bytes)
					}
					cells = append(cells, size, output.Printable(serviceText(states[k.Name].Service)))
				}
				t.Texts(cells...)
			}
			return t.Flush()
		}),
	}
	r.Register(cmd)
	command.AddEnumFlag(
		cmd,
		&format,
		pflag.Flag{Name: "output", Shorthand: "o", Usage: "table, wide or name"},
		"table",
		"wide",
		"name",
	)
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false, "leave out the titles of the columns")
	return cmd
}

// serviceText returns the cell about the service that owns a kind: its name, and the state of the gateway's mirror.
func serviceText(s *client.KindService) string {
	if s == nil {
		return ""
	}
	state := strings.ToLower(s.State)
	if !s.Followed && s.State == "FOLLOWED" {
		state = "compared"
	}
	if s.LagSeconds >= 1 {
		state += fmt.Sprintf(", %.0f s behind", s.LagSeconds)
	}
	return s.Name + " (" + state + ")"
}
