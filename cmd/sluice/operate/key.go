package operate

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/keyring/kms"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/gateway"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
)

// KeyCommand returns the commands about the keys that encrypt sensitive values.
func KeyCommand(std terminal.Streams) *cobra.Command {
	return command.WithSubcommands(&cobra.Command{
		Use:   "key",
		Short: "Make and wrap the keys with which a gateway encrypts sensitive values",
		Long: "Make the keys in the file that `sluice serve --encryption-keys-file` reads, and have a key management service (KMS) wrap\n" +
			"them, so that the file is of no use without it. The KMS is asked through a plugin for Kubernetes, of version v2.",
		Example: "  sluice key create 2026-07 > keys\n" +
			"  sluice key create 2026-07 --encryption-kms /run/kms/plugin.sock > keys\n" +
			"  sluice key wrap keys --encryption-kms /run/kms/plugin.sock > keys.wrapped",
	}, keyCreateCommand(std), keyWrapCommand(std))
}

// kmsFlag is the flag --encryption-kms, the socket of a KMS plugin.
type kmsFlag string

func (f *kmsFlag) register(cmd *cobra.Command, text string) {
	cmd.Flags().StringVar((*string)(f), "encryption-kms", "", text)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error { return command.LoadOnly(cmd, "encryption-kms") }
}

// open returns a client of the KMS plugin.
func (f *kmsFlag) open() (*kms.Plugin, error) {
	plugin, err := kms.New(kms.Config{Socket: string(*f)})
	if err != nil {
		return nil, exit.Usage(fmt.Errorf("encryption-kms: %w", err))
	}
	return plugin, nil
}

func keyCreateCommand(std terminal.Streams) *cobra.Command {
	var socket kmsFlag
	cmd := &cobra.Command{
		Use:   "create ID",
		Short: "Print a new key, wrapped by a KMS if one is given",
		Long: "Print a new random key as a line of the file that `sluice serve --encryption-keys-file` reads. Without --encryption-kms the\n" +
			"line is a secret: write it to a file that nobody else can read (umask 077).",
		Example: "  sluice key create 2026-07 > keys\n  sluice key create 2026-07 --encryption-kms /run/kms/plugin.sock >> keys",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			key, err := keyring.Generate(args[0])
			if err != nil {
				return exit.Usage(fmt.Errorf("%q: %w", args[0], err))
			}
			line := key.Line()
			if socket != "" {
				plugin, err := socket.open()
				if err != nil {
					return err
				}
				defer plugin.Close()
				if _, err := plugin.KeyID(cmd.Context()); err != nil {
					return fmt.Errorf("encryption-kms: %w", err)
				}
				if line, err = key.Wrapped(cmd.Context(), plugin); err != nil {
					return gateway.KeysError("key", err)
				}
			}
			_, err = fmt.Fprintln(std.Out, line)
			return err
		},
	}
	socket.register(cmd, "socket of the KMS plugin that is to wrap the key")
	return cmd
}

func keyWrapCommand(std terminal.Streams) *cobra.Command {
	var socket kmsFlag
	cmd := &cobra.Command{
		Use:   "wrap FILE --encryption-kms SOCKET",
		Short: "Print a file of keys with all keys wrapped by the current key of a KMS",
		Long: "Print a file of keys, as `sluice serve --encryption-keys-file` reads it, with all keys wrapped by the current key of a KMS:\n" +
			"those that were not wrapped, and those that the KMS has wrapped with an earlier key. Their ids, their order and all else\n" +
			"of the file stay, so nothing has to be encrypted anew. FILE itself is not changed.",
		Example: "  sluice key wrap keys --encryption-kms /run/kms/plugin.sock > keys.wrapped",
		Args:    command.Args(1, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if socket == "" {
				return exit.Usage(errors.New("encryption-kms: the socket of a KMS plugin is wanted: --encryption-kms SOCKET"))
			}
			text, err := config.ReadFile(cmd.Context(), args[0])
			switch {
			case cmd.Context().Err() != nil:
				return cmd.Context().Err()
			case err != nil:
				return exit.Usage(err)
			}
			plugin, err := socket.open()
			if err != nil {
				return err
			}
			defer plugin.Close()
			current, err := plugin.KeyID(cmd.Context())
			if err != nil {
				return fmt.Errorf("encryption-kms: %w", err)
			}
			wrapped, count, err := keyring.Wrap(cmd.Context(), string(text), plugin, current)
			if err != nil {
				return gateway.KeysError(args[0], err)
			}
			if _, err := fmt.Fprint(std.Out, wrapped); err != nil {
				return err
			}
			_, _ = fmt.Fprintf(std.Err, "%s wrapped now with the key %s of the KMS\n",
				output.Plural(count, "key"), output.Printable(current))
			return nil
		},
	}
	socket.register(cmd, "socket of the KMS plugin that is to wrap the keys (required)")
	return cmd
}
