package operate

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/identity"
)

func tokenCreateCommand(std terminal.Streams) *cobra.Command {
	var file tokensFile
	var groups []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --tokens FILE",
		Short: "Make a token and print it, which is possible once",
		Long: "Make a token and print it. It cannot be shown again: the file has its hash. Callers with the token are token:NAME to the\n" +
			"gateway, in the groups token:GROUP. The file is made if need be, with the mode 0600.",
		Example: "  sluice token create ci --group ops --group dev --ttl 720h --tokens tokens",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, hash, err := identity.NewToken(rand.Reader)
			if err != nil {
				return err
			}
			t := identity.Token{Name: args[0], Hash: hash, Groups: groups}
			switch {
			case ttl < 0 || ttl == 0 && cmd.Flags().Changed("ttl"):
				return exit.Usage(errors.New("ttl: a positive duration is wanted, like 720h or 30d"))
			case ttl > 0:
				t.Expires = time.Now().Add(ttl).UTC().Truncate(time.Second)
			}
			if err := t.Validate(); err != nil {
				return exit.Usage(errors.New(exit.OneLine(err)))
			}
			if err := file.change(cmd, std, func(data []byte) ([]byte, error) {
				return withToken(data, t)
			}); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(std.Err, "The token of %s, which cannot be shown again (expires: %s):\n",
				output.Printable(t.Name), tokenExpiry(t, time.Now()))
			_, err = fmt.Fprintln(std.Out, text)
			if err == nil {
				return nil
			}
			// The token was not printed, so nobody can use it. Remove it again.
			back := file.change(cmd, std, func(data []byte) ([]byte, error) { return withoutToken(data, t.Name) })
			if back != nil {
				return fmt.Errorf("the token cannot be printed (%w), and stays in the file: %w", err, back)
			}
			return fmt.Errorf("the token cannot be printed, so it was taken back: %w", err)
		},
	}
	file.register(cmd)
	cmd.Flags().StringArrayVar(&groups, "group", nil, "group of the caller; several are given by several --group")
	config.DurationVar(
		cmd.Flags(),
		&ttl,
		"ttl",
		0,
		"how long the token is valid, like 720h or 30d; without it, for ever",
	)
	return cmd
}

// withToken returns the contents of the file with an added token.
func withToken(data []byte, t identity.Token) ([]byte, error) {
	count := 0
	for line := range bytes.Lines(data) {
		other, ok := tokenOf(line)
		if !ok {
			continue
		}
		if count++; other.Name == t.Name {
			return nil, fmt.Errorf("name: there is a token %q already; sluice token revoke takes it away", t.Name)
		}
	}
	if count >= identity.MaxTokens {
		return nil, fmt.Errorf("the file has %d tokens, and no more are accepted", count)
	}
	out := slices.Clone(data)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, '\n')
	}
	out = append(out, t.String()+"\n"...)
	if len(out) > identity.MaxTokensFile {
		return nil, fmt.Errorf("the file would have more than the %d bytes that are accepted", identity.MaxTokensFile)
	}
	return out, nil
}
