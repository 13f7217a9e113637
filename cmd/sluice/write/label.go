package write

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func LabelCommand(std terminal.Streams) *cobra.Command {
	return pairsCommand(std, "labels", &cobra.Command{
		Use:   "label KIND NAME... | KIND/NAME... | KIND -l SELECTOR  KEY=VALUE... KEY-...",
		Short: "Set and remove labels of resources",
		Long:  "Set and remove labels of resources: KEY=VALUE sets one, KEY- removes it. The others stay.",
		Example: `  sluice label network net-a team=web
  sluice label network/net-a network/net-b team=db stage- --overwrite
  sluice label networks -l team=web tier=front`,
	})
}
