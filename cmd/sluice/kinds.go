package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/graph/client"
)

func kindsCommand(std streams) *cobra.Command {
	var r remote
	format := "table"
	var noHeaders bool
	cmd := &cobra.Command{
		Use:     "api-resources",
		Aliases: []string{"kinds"},
		Short:   "List the kinds that the gateway serves",
		Example: "  sluice api-resources\n  sluice api-resources -o name",
		Args:    usage(cobra.NoArgs),
		RunE: with(r.client, func(cmd *cobra.Command, c *client.Client, _ []string) error {
			kinds, err := c.Kinds(cmd.Context())
			if err != nil {
				return err
			}
			t := output.NewTable(std.out, []string{"NAME", "SHORTNAMES", "APIVERSION", "NAMESPACED", "KIND", "CONTROLLED", "VERBS"})
			t.NoHeaders = noHeaders
			for _, k := range kinds {
				if format == "name" {
					_, _ = fmt.Fprintln(std.out, printable(k.Plural))
					continue
				}
				t.Texts(
					cell(k.Plural), cell(strings.Join(k.ShortNames, ",")), cell(k.APIVersion), fmt.Sprint(k.Scope != "GLOBAL"), cell(k.Name), fmt.Sprint(k.Controlled),
					printable(strings.ToLower(strings.Join(k.Verbs, ","))),
				)
			}
			return t.Flush()
		}),
	}
	r.register(cmd)
	addChoice(cmd, &format, pflag.Flag{Name: "output", Shorthand: "o", Usage: "table or name"}, "table", "name")
	cmd.Flags().BoolVar(&noHeaders, "no-headers", false, "leave out the titles of the columns")
	return cmd
}
