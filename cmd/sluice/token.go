package main

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/identity"
)

func tokenCommand(std streams) *cobra.Command {
	return withCommands(&cobra.Command{
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
		if err := loadOnly(cmd, "tokens"); err != nil { // nothing else is taken from the environment
			return err
		}
		if *f == "" {
			return usageError{errors.New("tokens: a file is wanted: --tokens FILE")}
		}
		return nil
	}
}

// change changes the file, and tells which lines of it are damaged. They stay as they are.
func (f tokensFile) change(cmd *cobra.Command, std streams, change func(data []byte) ([]byte, error)) error {
	err := credential.UpdatePrivate(cmd.Context(), string(f), func(data []byte) ([]byte, error) {
		f.warn(std, data)
		return change(data)
	})
	var absent notFoundError
	if err == nil || errors.As(err, &absent) || cmd.Context().Err() != nil {
		return err
	}
	return usageError{err}
}

// warn prints the damaged lines of the file by their numbers, and reports whether there are any.
func (f tokensFile) warn(std streams, data []byte) bool {
	_, errs := identity.ParseTokens(data)
	for _, err := range errs {
		_, _ = fmt.Fprintf(std.err, "sluice: warning: %s: %s\n", printable(string(f)), printable(err.Error()))
	}
	return len(errs) > 0
}

// tokenOf returns the token in a line, if there is one.
func tokenOf(line []byte) (identity.Token, bool) {
	tokens, _ := identity.ParseTokens(line)
	if len(tokens) != 1 {
		return identity.Token{}, false
	}
	return tokens[0], true
}

func tokenCreateCommand(std streams) *cobra.Command {
	var file tokensFile
	var groups []string
	var ttl time.Duration
	cmd := &cobra.Command{
		Use:   "create NAME --tokens FILE",
		Short: "Make a token and print it, which is possible once",
		Long: "Make a token and print it. It cannot be shown again: the file has its hash. Callers with the token are token:NAME to the\n" +
			"gateway, in the groups token:GROUP. The file is made if need be, with the mode 0600.",
		Example: "  sluice token create ci --group ops --group dev --ttl 720h --tokens tokens",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, hash, err := identity.NewToken(rand.Reader)
			if err != nil {
				return err
			}
			t := identity.Token{Name: args[0], Hash: hash, Groups: groups}
			switch {
			case ttl < 0 || ttl == 0 && cmd.Flags().Changed("ttl"):
				return usageError{errors.New("ttl: a positive duration is wanted, like 720h or 30d")}
			case ttl > 0:
				t.Expires = time.Now().Add(ttl).UTC().Truncate(time.Second)
			}
			if err := t.Validate(); err != nil {
				return usageError{errors.New(oneLine(err))}
			}
			if err := file.change(cmd, std, func(data []byte) ([]byte, error) { return withToken(data, t) }); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(std.err, "The token of %s, which cannot be shown again (expires: %s):\n", printable(t.Name), tokenExpiry(t, time.Now()))
			_, err = fmt.Fprintln(std.out, text)
			if err == nil {
				return nil
			}
			// Nobody has seen the token, so nobody could use or revoke it knowingly.
			back := file.change(cmd, std, func(data []byte) ([]byte, error) { return withoutToken(data, t.Name) })
			if back != nil {
				return fmt.Errorf("the token cannot be printed (%w), and stays in the file: %w", err, back)
			}
			return fmt.Errorf("the token cannot be printed, so it was taken back: %w", err)
		},
	}
	file.register(cmd)
	cmd.Flags().StringArrayVar(&groups, "group", nil, "group of the caller; several are given by several --group")
	config.DurationVar(cmd.Flags(), &ttl, "ttl", 0, "how long the token is valid, like 720h or 30d; without it, for ever")
	return cmd
}

// withToken is a file with one token more.
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

// tokenExpiry is the end of a token as people read it.
func tokenExpiry(t identity.Token, now time.Time) string {
	switch {
	case t.Expires.IsZero():
		return "never"
	case !now.Before(t.Expires):
		return t.Expires.Format(time.RFC3339) + " (expired)"
	}
	return t.Expires.Format(time.RFC3339)
}

// tokenRow is one token of the list, without its hash.
type tokenRow struct {
	Name      string     `json:"name" yaml:"name"`
	Groups    []string   `json:"groups" yaml:"groups,flow"`
	ExpiresAt *time.Time `json:"expiresAt" yaml:"expiresAt"`
}

func tokenListCommand(std streams) *cobra.Command {
	var file tokensFile
	var format dataForm
	cmd := &cobra.Command{
		Use:     "list --tokens FILE",
		Short:   "List the tokens of a file with their groups and when they expire",
		Example: "  sluice token list --tokens tokens\n  sluice token list --tokens tokens -o json",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			data, err := file.read()
			if err != nil {
				return err
			}
			tokens, _ := identity.ParseTokens(data)
			list, shown := []tokenRow{}, table{titles: []string{"NAME", "GROUPS", "EXPIRES"}}
			for _, t := range tokens {
				row := tokenRow{Name: t.Name, Groups: append([]string{}, t.Groups...)}
				if !t.Expires.IsZero() {
					row.ExpiresAt = &t.Expires
				}
				list = append(list, row)
				shown.rows = append(shown.rows, []string{cell(t.Name), cell(strings.Join(t.Groups, ",")), tokenExpiry(t, time.Now())})
			}
			if err := format.print(std, list, shown.to(std)); err != nil {
				return err
			}
			if file.warn(std, data) {
				return errReported
			}
			return nil
		},
	}
	file.register(cmd)
	format.register(cmd)
	return cmd
}

// read reads the file, which must be there.
func (f tokensFile) read() ([]byte, error) {
	data, err := config.ReadAtMost(string(f), credential.MaxPrivate)
	if err != nil {
		return nil, usageError{fmt.Errorf("tokens: %w", err)}
	}
	return data, nil
}

func tokenRevokeCommand(std streams) *cobra.Command {
	var file tokensFile
	cmd := &cobra.Command{
		Use:   "revoke NAME --tokens FILE",
		Short: "Remove a token: the gateway refuses it, and ends the streams that use it",
		Long: "Remove a token from the file. A running gateway then refuses the token, and ends the WebSockets and streams that were opened\n" +
			"with it, within seconds.",
		Example: "  sluice token revoke ci --tokens tokens",
		Args:    usage(cobra.ExactArgs(1)),
		RunE: func(cmd *cobra.Command, args []string) error {
			if _, err := file.read(); err != nil {
				return err
			}
			if err := file.change(cmd, std, func(data []byte) ([]byte, error) { return withoutToken(data, args[0]) }); err != nil {
				return err
			}
			_, err := fmt.Fprintf(std.out, "token %s is revoked\n", printable(args[0]))
			return err
		},
	}
	file.register(cmd)
	return cmd
}

// withoutToken is a file without a token, and else as it was.
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
		return nil, notFoundError{fmt.Errorf("there is no token %q", name)}
	}
	return out, nil
}
