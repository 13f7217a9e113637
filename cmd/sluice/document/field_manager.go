package document

import (
	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
)

// FieldManager is the owner of the labels and annotations in applied manifests.
type FieldManager string

func (m *FieldManager) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(
		(*string)(m),
		"field-manager",
		"sluice",
		"who owns the labels and annotations of the manifests; empty: nobody, and they replace all",
	)
	command.CompleteFlag(cmd, "field-manager", cobra.NoFileCompletions)
}
