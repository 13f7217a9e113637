package operate

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/commandtest"
	"github.com/sluicegw/sluice/cmd/sluice/read"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// newRoot returns the commands that the tests of this package run.
func newRoot(std terminal.Streams) *cobra.Command {
	return commandtest.NewRoot(
		BackupCommand(std), CatalogueCommand(std), CheckCommand(std), ConfigCommand(std), ExportCommand(std), KeyCommand(std),
		ProtoCommand(std), ServeCommand(std), ServiceCommand(std), StateCommand(std), TokenCommand(std),
		read.APIResourcesCommand(std),
	)
}

// shelves is a catalogue.
const shelves = `type Shelf @resource(plural: "shelves", group: "example.org", version: "v1", scope: NAMESPACED) {
  spec: ShelfSpec!
}

type ShelfSpec {
  width: Int
  label: String @constraint(maxLength: 20)
}
`
