package write

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func AnnotateCommand(std terminal.Streams) *cobra.Command {
	return pairsCommand(std, "annotations", &cobra.Command{
		Use:   "annotate KIND NAME... | KIND/NAME... | KIND -l SELECTOR  KEY=VALUE... KEY-...",
		Short: "Set and remove annotations of resources",
		Long:  "Set and remove annotations of resources: KEY=VALUE sets one, KEY- removes it. The others stay.",
		Example: `  sluice annotate network net-a 'example.org/owner=Ada Lovelace'
  sluice annotate network/net-a example.org/owner-`,
	})
}
