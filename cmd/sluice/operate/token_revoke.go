package operate

import (
	"bytes"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

func tokenRevokeCommand(std terminal.Streams) *cobra.Command {
	var file tokensFile
	cmd := &cobra.Command{
		Use:   "revoke NAME --tokens FILE",
		Short: "Remove a token: the gateway refuses it, and ends the streams that use it",
		Long: "Remove a token from the file. A running gateway then refuses the token, and ends the WebSockets and streams that were opened\n" +
			"with it, within seconds.",
		Example: "  sluice token revoke ci --tokens tokens",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := file.read(); err != nil {
				return err
			}
			if err := file.change(cmd, std, func(data []byte) ([]byte, error) {
				return withoutToken(data, args[0])
			}); err != nil {
				return err
			}
			_, err := fmt.Fprintf(std.Out, "token %s is revoked\n", output.Printable(args[0]))
			return err
		},
	}
	file.register(cmd)
	return cmd
}

// withoutToken returns the contents of the file without a token.
func withoutToken(data []byte, name string) ([]byte, error) {
	var out []byte
	found := false
	for line := range bytes.Lines(data) {
		if t, ok := tokenOf(line); ok && t.Name == name {
			found = true
			continue
		}
		out = append(out, line...)
	}
	if !found {
		return nil, exit.NotFound(fmt.Errorf("there is no token %q", name))
	}
	return out, nil
}
