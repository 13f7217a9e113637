// Package operate has the commands for operators, such as serve, catalogue and token. Each command has a file.
package operate

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func ServeCommand(std terminal.Streams) *cobra.Command {
	settings := config.NewGateway()
	check := false
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run a gateway on the embedded store or on Redis",
		Example: "  sluice serve\n  sluice serve --catalogue ./kinds --data ./data\n" +
			"  sluice serve --redis redis://127.0.0.1:6379\n  sluice serve --config sluice.yaml --check",
		Long: "Run a gateway on the embedded store, or on Redis with --redis.\n\nEvery flag is also an environment variable (--listen is SLUICE_LISTEN) and a key of\n" +
			"the configuration file (listen). A flag takes precedence over the environment, and that over the file.",
		Args: command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if check {
				return checkGateway(cmd, settings, std)
			}
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
	registerGateway(cmd, settings)
	cmd.Flags().BoolVar(&check, "check", false, "say all that is wrong with the settings, the files that they name, the "+
		"catalogue and the store, a line each, and exit with 1 if there is any; serves nothing and changes nothing")
	onlyOnCommandLine(cmd, "check")
	return cmd
}

// readToCheck is like [command.ReadSettings], but does not read a configuration file that is a named pipe.
func readToCheck(cmd *cobra.Command, file string) error {
	path := cmp.Or(file, os.Getenv(config.EnvName(config.FileFlag)))
	if err := config.RefuseNamedPipe(path); err != nil {
		return &config.FileError{Err: fmt.Errorf("configuration file: %w", err)}
	}
	return command.ReadSettings(cmd)
}

// checkGateway prints all problems with the settings of a gateway, and with the files and stores that they name.
func checkGateway(cmd *cobra.Command, settings *config.Gateway, std terminal.Streams) error {
	read := readToCheck(cmd, settings.File)
	if errors.Is(read, context.Canceled) {
		return read
	}
	var report gateway.Report
	problems := gateway.ErrorLines(read)
	if errors.As(read, new(*config.FileError)) {
		report.Notes = []string{"nothing else was checked, since the settings in the configuration file are not known"}
	} else {
		problems = append(problems, gateway.ErrorLines(settings.Validate(cmd.Flags()))...)
		var err error
		if report, err = gateway.New(settings, std.Out).Check(cmd.Context(), zap.NewNop()); err != nil {
			return err
		}
	}
	for _, note := range report.Notes {
		_, _ = fmt.Fprintf(std.Err, "sluice: note: %s\n", output.Printable(note))
	}
	problems = append(problems, report.Problems...)
	for _, line := range problems {
		_, _ = fmt.Fprintln(std.Out, output.Printable(line))
	}
	if len(problems) > 0 {
		return exit.ErrReported
	}
	_, err := fmt.Fprintln(std.Out, "nothing is wrong: a gateway can serve with these settings")
	return err
}
