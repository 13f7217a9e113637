// Package remote connects a command to a gateway: its flags, the context and the login that count, and what a shell
// completes with the gateway's help.
package remote

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/resource"
	"github.com/sluicegw/sluice/graph/client"
)

// Flags has the flags of every command that calls a gateway.
type Flags struct {
	Server, Namespace string
	// API is the version of the API; empty for all that the gateway has.
	API     string
	Timeout time.Duration
	// Context is the name of the context; empty for the current one.
	Context string
	Access  credential.Access
	// Login is the name of the login whose token is sent if there is no other; see
	// [Flags.Resolve].
	Login string
	// Explain is called with each read that the gateway made; nil if that is not
	// wanted.
	Explain func(client.Read)
}

func (r *Flags) Register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.Server, "server", client.DefaultServer, "URL of the gateway")
	cmd.Flags().StringVarP(
		&r.Namespace,
		"namespace",
		"n",
		"",
		`namespace (default "default"; ignored for GLOBAL kinds)`,
	)
	cmd.Flags().StringVar(&r.API, "api", "", "version of the API, like v1.0 (default: what is not released yet, too)")
	config.DurationVar(cmd.Flags(), &r.Timeout, "timeout", 30*time.Second, "how long one request may take")
	cmd.Flags().StringVar(&r.Context, "context", "", "context to use (default: the current one, see sluice context)")
	RegisterAccess(cmd, &r.Access)
}

// AccessFlags are the flags of [credential.Access].
var AccessFlags = []string{"token-file", "ca", "client-cert", "client-key", "plaintext-token"}

func RegisterAccess(cmd *cobra.Command, a *credential.Access) {
	f := cmd.Flags()
	f.StringVar(&a.TokenFile, "token-file", "", "file with the bearer token to send; it is read for each request")
	f.StringVar(&a.CA, "ca", "", "file with the certificates (PEM) of the authorities to trust (default: the system's)")
	f.StringVar(&a.ClientCert, "client-cert", "", "file with your own certificate (PEM)")
	f.StringVar(&a.ClientKey, "client-key", "", "file with the key (PEM) of your certificate")
	f.BoolVar(
		&a.PlaintextToken,
		"plaintext-token",
		false,
		"send the token by http to other hosts too, where everybody on the way can read it",
	)
}

// Scope returns the namespace to which lists and streams are limited; empty means all.
func (r *Flags) Scope(k client.Kind, everywhere bool) string {
	if everywhere {
		return ""
	}
	return resource.NamespaceOf(k, r.Namespace)
}

// Writer returns the client of a command that writes. The environment may name the gateway and
// request a dry run. All other flags affect what is written, so they are only accepted on the
// command line.
func (r *Flags) Writer(cmd *cobra.Command) (*client.Client, error) {
	names := append([]string{"server", "namespace", "api", "timeout", "dry-run", "context"}, AccessFlags...)
	if err := command.LoadOnly(cmd, names...); err != nil {
		return nil, err
	}
	return r.Connect(cmd)
}

// Client returns the client of a command that reads.
func (r *Flags) Client(cmd *cobra.Command) (*client.Client, error) {
	if err := command.LoadSettings(cmd); err != nil {
		return nil, err
	}
	return r.Connect(cmd)
}

// With returns the RunE of a command that calls a gateway. connect makes the client: [Flags.Client]
// or [Flags.Writer].
func With(
	connect func(*cobra.Command) (*client.Client, error),
	run func(*cobra.Command, *client.Client, []string) error,
) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
}
