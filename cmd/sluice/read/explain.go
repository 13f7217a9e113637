package read

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func ExplainCommand(std terminal.Streams) *cobra.Command {
	var r remote.Flags
	var recursive bool
	cmd := &cobra.Command{
		Use:   "explain KIND[.FIELD.PATH]",
		Short: "Say what a kind and its fields are",
		Long: "Say what a kind is, or a field of it: type, description, limits, default, accepted values and the fields of an\n" +
			"object. It comes from the gateway's catalogue.",
		Example:           "  sluice explain network\n  sluice explain net.spec.resource.mtu\n  sluice explain ports.spec --recursive",
		Args:              command.Args(1, 1),
		ValidArgsFunction: remote.WithoutSpace(remote.CompleteBy(remote.Completer.Fields)),
		RunE: remote.With(r.Client, func(cmd *cobra.Command, c *client.Client, args []string) error {
			kinds, err := c.DescribedKinds(cmd.Context())
			if err != nil {
				return err
			}
			name, path, _ := strings.Cut(args[0], ".")
			kind, err := client.FindKind(kinds, name)
			if err != nil {
				return err
			}
			return output.Explain(std.Out, kind, strings.TrimSuffix(path, "."), recursive)
		}),
	}
	r.Register(cmd)
	cmd.Flags().BoolVar(
		&recursive,
		"recursive",
		false,
		"show the fields of all objects below, without their descriptions",
	)
	return cmd
}
