package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/identity"
)

func TokenCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(&cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens that a gateway accepts",
		Long: "Make, list and revoke the tokens in the file that `sluice serve --tokens` reads. The file has hashes of the tokens, no\n" +
			"tokens; a running gateway sees a change of it within seconds, also of a file that is copied to another machine.",
		Example: "  sluice token create ci --group ops --ttl 30d --tokens tokens\n  sluice token list --tokens tokens\n  sluice token revoke ci --tokens tokens",
	}, tokenCreateCommand(std), tokenListCommand(std), tokenRevokeCommand(std))
}

// tokensFile is the flag --tokens.
type tokensFile string

func (f *tokensFile) register(cmd *cobra.Command) {
	cmd.Flags().StringVar((*string)(f), "tokens", "", "file of tokens, as sluice serve --tokens takes it (required)")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if err := command.LoadOnly(cmd, "tokens"); err != nil { // nothing else is taken from the environment
			return err
		}
		if *f == "" {
			return exit.Usage(errors.New("tokens: a file is wanted: --tokens FILE"))
		}
		return nil
	}
}

// change changes the file, and prints which lines are damaged. Damaged lines are kept.
func (f tokensFile) change(cmd *cobra.Command, std terminal.Streams, change func(data []byte) ([]byte, error)) error {
	err := credential.UpdatePrivate(cmd.Context(), string(f), func(data []byte) ([]byte, error) {
		f.warn(std, data)
		return change(data)
	})
	var absent exit.NotFoundError
	if err == nil || errors.As(err, &absent) || cmd.Context().Err() != nil {
		return err
	}
	return exit.Usage(err)
}

// warn prints the numbers of the damaged lines, and reports whether there are any.
func (f tokensFile) warn(std terminal.Streams, data []byte) bool {
	_, errs := identity.ParseTokens(data)
	for _, err := range errs {
		_, _ = fmt.Fprintf(std.Err, "sluice: warning: %s: %s\n",
			output.Printable(string(f)), output.Printable(err.Error()))
	}
	return len(errs) > 0
}

// tokenOf returns the token in a line, and whether there is one.
func tokenOf(line []byte) (identity.Token, bool) {
	tokens, _ := identity.ParseTokens(line)
	if len(tokens) != 1 {
		return identity.Token{}, false
	}
	return tokens[0], true
}

// read reads the file, which must exist.
func (f tokensFile) read() ([]byte, error) {
	data, err := config.ReadAtMost(string(f), credential.MaxPrivate)
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("tokens: %w", err))
	}
	return data, nil
}
