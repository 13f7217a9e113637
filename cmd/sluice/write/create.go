package write

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func CreateCommand(std terminal.Streams) *cobra.Command {
	a := application{writing: writing{std: std}, createOnly: true}
	return a.command(&cobra.Command{
		Use:   "create -f FILE|FOLDER|-",
		Short: "Create resources from manifests; existing ones are left alone",
		Example: `  sluice create -f network.yaml
  sluice create -f network.yaml --dry-run=server`,
	})
}
