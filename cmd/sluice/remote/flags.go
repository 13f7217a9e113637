// Package remote connects commands to a gateway. It has their flags, applies the context and the login, and completes
// words with the help of the gateway.
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

// Flags has the flags of all commands that call a gateway.
type Flags struct {
	Server, Namespace string
	// API is the version of the API; empty for the unreleased API.
	API     string
	Timeout time.Duration
	// Context is the name of the context; empty for the current context.
	Context string
	Access  credential.Access
	// Login is the name of the login whose token is used if there is no other token; see [Flags.Resolve].
	Login string
	// Explain is called for each read that the gateway has made; nil for no calls.
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

// AccessFlags are the names of the flags of [credential.Access].
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

// Scope returns the namespace in which resources of a kind are listed or watched; empty for all namespaces.
func (r *Flags) Scope(k client.Kind, everywhere bool) string {
	if everywhere {
		return ""
	}
	return resource.NamespaceOf(k, r.Namespace)
}

// Writer returns the client for a command that writes. The environment may name the gateway, the namespace and the
// context, and request a dry run. All other flags determine what is written, and can therefore only be set on the
// command line.
func (r *Flags) Writer(cmd *cobra.Command) (*client.Client, error) {
	names := append([]string{"server", "namespace", "api", "timeout", "dry-run", "context"}, AccessFlags...)
	if err := command.LoadOnly(cmd, names...); err != nil {
		return nil, err
	}
	return r.Connect(cmd)
}

// Client returns the client for a command that reads.
func (r *Flags) Client(cmd *cobra.Command) (*client.Client, error) {
	if err := command.LoadSettings(cmd); err != nil {
		return nil, err
	}
	return r.Connect(cmd)
}

// With returns the RunE of a command that calls a gateway. connect returns the client: it is [Flags.Client] or
// [Flags.Writer].
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
