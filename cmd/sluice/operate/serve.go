// Package operate has the commands of operators: serve, catalogue and token, one command a file.
package operate

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func ServeCommand(std terminal.Streams) *cobra.Command {
	settings := config.NewGateway()
	cmd := &cobra.Command{
		Use:     "serve",
		Short:   "Run a gateway on the embedded store or on Redis",
		Example: "  sluice serve\n  sluice serve --catalogue ./kinds --data ./data\n  sluice serve --redis redis://127.0.0.1:6379",
		Long: "Run a gateway on the embedded store, or on Redis with --redis.\n\nEvery flag is also an environment variable (--listen is SLUICE_LISTEN) and a key of\n" +
			"the configuration file (listen). A flag takes precedence over the environment, and that over the file.",
		Args: command.Args(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.LoadSettings(cmd); err != nil {
				return err
			}
			if err := settings.Validate(cmd.Flags()); err != nil {
				return exit.Usage(errors.New(exit.OneLine(err)))
			}
			log, err := gateway.NewLogger(std.Err, settings.LogLevel, settings.LogFormat)
			if err != nil {
				return err
			}
			return gateway.New(settings, std.Out).Run(cmd.Context(), log)
		},
	}
	config.Register(cmd.Flags(), settings.Settings())
	cmd.Flags().StringVar(&settings.File, config.FileFlag, "", "configuration file (YAML)")
	return cmd
}
