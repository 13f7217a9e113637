package operate

import (
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/identity"
)

// tokenExpiry returns the expiry of a token in words.
func tokenExpiry(t identity.Token, now time.Time) string {
	switch {
	case t.Expires.IsZero():
		return "never"
	case !now.Before(t.Expires):
		return t.Expires.Format(time.RFC3339) + " (expired)"
	}
	return t.Expires.Format(time.RFC3339)
}

// tokenRow is a token in the printed list. It does not have the hash.
type tokenRow struct {
	Name      string     `json:"name" yaml:"name"`
	Groups    []string   `json:"groups" yaml:"groups,flow"`
	ExpiresAt *time.Time `json:"expiresAt" yaml:"expiresAt"`
}

func tokenListCommand(std terminal.Streams) *cobra.Command {
	var file tokensFile
	var format command.OutputFlag
	cmd := &cobra.Command{
		Use:     "list --tokens FILE",
		Short:   "List the tokens of a file with their groups and when they expire",
		Example: "  sluice token list --tokens tokens\n  sluice token list --tokens tokens -o json",
		Args:    command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := file.read()
			if err != nil {
				return err
			}
			tokens, _ := identity.ParseTokens(data)
			list, shown := []tokenRow{}, command.Table{Titles: []string{"NAME", "GROUPS", "EXPIRES"}}
			for _, t := range tokens {
				row := tokenRow{Name: t.Name, Groups: append([]string{}, t.Groups...)}
				if !t.Expires.IsZero() {
					row.ExpiresAt = &t.Expires
				}
				list = append(list, row)
				shown.Rows = append(shown.Rows, []string{
					output.Cell(t.Name),
					output.Cell(strings.Join(t.Groups, ",")),
					tokenExpiry(t, time.Now()),
				})
			}
			if err := format.Print(std, list, shown.To(std)); err != nil {
				return err
			}
			if file.warn(std, data) {
				return exit.ErrReported
			}
			return nil
		},
	}
	file.register(cmd)
	format.Register(cmd)
	return cmd
}
