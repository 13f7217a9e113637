package auth

import (
	"net/url"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// contextRow is a row of the list of contexts.
type contextRow struct {
	Name       string `json:"name" yaml:"name"`
	Current    bool   `json:"current" yaml:"current"`
	Server     string `json:"server" yaml:"server"`
	Namespace  string `json:"namespace" yaml:"namespace"`
	Credential string `json:"credential" yaml:"credential"`
}

func contextListCommand(std terminal.Streams) *cobra.Command {
	var format command.OutputFlag
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List the contexts; the current one has an asterisk",
		Example: "  sluice context list\n  sluice context list -o json",
		Args:    command.Args(0, 0),
		RunE: func(*cobra.Command, []string) error {
			file, err := credential.ReadContexts(remote.ContextsPath())
			if err != nil {
				return exit.Usage(err)
			}
			list, shown := []contextRow{}, command.Table{Titles: []string{
				"CURRENT",
				"NAME",
				"SERVER",
				"NAMESPACE",
				"CREDENTIAL",
			}}
			for _, name := range file.Names() {
				c := file.Contexts[name]
				kind := c.Kind()
				_, found, err := credential.FindLogin(credential.LoginsPath(remote.ContextsPath()), name)
				if err != nil {
					return exit.Usage(err)
				}
				if found && kind == credential.NoCredential {
					kind = "login"
				}
				row := contextRow{name, name == file.Current, redacted(c.Server), c.Namespace, kind}
				mark := ""
				if row.Current {
					mark = "*"
				}
				list = append(list, row)
				shown.Rows = append(shown.Rows, []string{
					mark,
					output.Cell(name),
					output.Cell(row.Server),
					output.Cell(row.Namespace),
					kind,
				})
			}
			return format.Print(std, list, shown.To(std))
		},
	}
	format.Register(cmd)
	return cmd
}

// redacted returns a URL without its password.
func redacted(server string) string {
	u, err := url.Parse(server)
	if err != nil {
		return "?"
	}
	return u.Redacted()
}
