package operate

import (
	"os"
	"regexp"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// ConfigCommand returns the commands about the settings of a gateway.
func ConfigCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(&cobra.Command{
		Use:     "config",
		Short:   "Show the settings of a gateway, and where each is from",
		Example: "  sluice config print --config sluice.yaml",
	}, configPrintCommand(std))
}

// credentials matches the user and the password in a URL. It is applied to settings whose URLs should have neither.
var credentials = regexp.MustCompile(`://[^/?#\s"]*@`)

func configPrintCommand(std terminal.Streams) *cobra.Command {
	settings := config.NewGateway()
	var format command.OutputFlag
	cmd := &cobra.Command{
		Use:   "print",
		Short: "Print each setting of a gateway with its value and where that is from",
		Long: "Print each setting of a gateway with its value, and where that is from: the default, a flag, an environment\n" +
			"variable or the configuration file. It takes the flags, variables and file that sluice serve takes, and opens\n" +
			"nothing. Secrets are not printed: of files with secrets the name, of URLs no user and no password.\n" +
			"sluice serve --check says whether a gateway can serve with these settings.",
		Example: "  sluice config print\n  sluice config print --config sluice.yaml -o json",
		Args:    command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := command.LoadSettings(cmd); err != nil {
				return err
			}
			hideCredentials(settings)
			all := config.EffectiveSettings(cmd.Flags(), settings.Settings())
			for i, one := range all {
				all[i].Value = credentials.ReplaceAllString(one.Value, "://(not shown)@")
				if one.Name == "redis" && one.Value != "" {
					all[i].Value = gateway.RedisURLWithoutPassword(one.Value)
				}
			}
			if _, given := os.LookupEnv(config.KeysVariable); given {
				all = append(all, config.Effective{
					Name: "encryption-keys", Value: "(not shown)", Source: config.KeysVariable,
				})
			}
			return format.Print(std, all, settingsTable(all).To(std))
		},
	}
	registerGateway(cmd, settings)
	format.Register(cmd)
	onlyOnCommandLine(cmd, "output")
	return cmd
}

// hideCredentials replaces the credentials in the URLs of settings. Valid settings have none, but these settings were
// not checked.
func hideCredentials(settings *config.Gateway) {
	settings.TracesEndpoint = config.WithoutCredentials(settings.TracesEndpoint)
	for name, service := range settings.Services {
		service.Address = config.WithoutCredentials(service.Address)
		settings.Services[name] = service
	}
}

func settingsTable(all []config.Effective) command.Table {
	out := command.Table{Titles: []string{"SETTING", "VALUE", "SOURCE"}}
	for _, one := range all {
		value := one.Value
		switch {
		case one.Auto != "":
			value = one.Auto
		case value == "":
			value = "none"
		}
		out.Rows = append(out.Rows, []string{one.Name, output.Printable(value), output.Printable(one.Source)})
	}
	return out
}

// registerGateway adds the flags of the settings of a gateway to a command.
func registerGateway(cmd *cobra.Command, settings *config.Gateway) {
	config.Register(cmd.Flags(), settings.Settings())
	cmd.Flags().StringVar(&settings.File, config.FileFlag, "", "configuration file (YAML)")
}

// onlyOnCommandLine marks a flag that cannot be set by the environment or a file.
func onlyOnCommandLine(cmd *cobra.Command, flag string) {
	if err := config.OnlyOnCommandLine(cmd.Flags(), flag); err != nil {
		panic(err) // the flag is registered by the caller
	}
}
