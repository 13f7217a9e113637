package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/client"
)

// remote holds the flags of every command that speaks to a gateway.
type remote struct {
	server, namespace string
	timeout           time.Duration
	// context names the context; empty for the current one.
	context string
	access  credential.Access
	// login names the login whose token is sent if there is no other; see [remote.resolve].
	login string
	// explain is told how the gateway did each read; nil asks for nothing.
	explain func(client.Read)
}

func (r *remote) register(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.server, "server", client.DefaultServer, "URL of the gateway")
	cmd.Flags().StringVarP(&r.namespace, "namespace", "n", "", `namespace (default "default"; ignored for GLOBAL kinds)`)
	config.DurationVar(cmd.Flags(), &r.timeout, "timeout", 30*time.Second, "how long one request may take")
	cmd.Flags().StringVar(&r.context, "context", "", "context to use (default: the current one, see sluice context)")
	registerAccess(cmd, &r.access)
}

// accessFlags are the flags of [credential.Access].
var accessFlags = []string{"token-file", "ca", "client-cert", "client-key", "plaintext-token"}

func registerAccess(cmd *cobra.Command, a *credential.Access) {
	f := cmd.Flags()
	f.StringVar(&a.TokenFile, "token-file", "", "file with the bearer token to send; it is read for each request")
	f.StringVar(&a.CA, "ca", "", "file with the certificates (PEM) of the authorities to trust (default: the system's)")
	f.StringVar(&a.ClientCert, "client-cert", "", "file with your own certificate (PEM)")
	f.StringVar(&a.ClientKey, "client-key", "", "file with the key (PEM) of your certificate")
	f.BoolVar(&a.PlaintextToken, "plaintext-token", false, "send the token by http to other hosts too, where everybody on the way can read it")
}

// scope returns the namespace that lists and streams are limited to; empty is all.
func (r *remote) scope(k client.Kind, everywhere bool) string {
	if everywhere {
		return ""
	}
	return scope(k, r.namespace)
}

// writer is client for commands that write. The environment may name the gateway and ask for a dry run. All other flags
// decide what is written, and count only on the command line.
func (r *remote) writer(cmd *cobra.Command) (*client.Client, error) {
	if err := loadOnly(cmd, append([]string{"server", "namespace", "timeout", "dry-run", "context"}, accessFlags...)...); err != nil {
		return nil, err
	}
	return r.connect(cmd)
}

// client makes the client of a command that reads.
func (r *remote) client(cmd *cobra.Command) (*client.Client, error) {
	if err := loadSettings(cmd); err != nil {
		return nil, err
	}
	return r.connect(cmd)
}

// with returns the RunE of a command that speaks to a gateway, with a client that connect makes: [remote.client] or
// [remote.writer].
func with(connect func(*cobra.Command) (*client.Client, error), run func(*cobra.Command, *client.Client, []string) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, args []string) error {
		c, err := connect(cmd)
		if err != nil {
			return err
		}
		return run(cmd, c, args)
	}
}

// explain prints an error, and each error of the API on its own line.
func explain(std streams, where string, err error) {
	all := client.Errors{}
	if !errors.As(err, &all) {
		_, _ = fmt.Fprintf(std.err, "%s: %s\n", printable(where), printable(err.Error()))
		return
	}
	for _, e := range all {
		_, _ = fmt.Fprintf(std.err, "%s: %s%s\n", printable(where), printable(e.Message), hint(e))
	}
}

// hint returns the code of an error, for scripts, and what to do about it where its text does not tell.
func hint(e *client.Error) string {
	var parts []string
	if e.Extensions.Code != "" {
		parts = append(parts, printable(e.Extensions.Code))
	}
	switch {
	case e.Extensions.Outcome == "UNKNOWN":
		parts = append(parts, "look with sluice get before you repeat it")
	case e.Extensions.Outcome == "APPLIED":
		parts = append(parts, "the change was made, and its answer could not be given; look with sluice get")
	case e.Extensions.Retryable && !strings.Contains(e.Message, "try again"):
		parts = append(parts, "try again")
	case e.Extensions.Code == "ALREADY_EXISTS" && strings.HasSuffix(e.Message, "you may not read it"): // nor change it
	case e.Extensions.Code == "ALREADY_EXISTS":
		parts = append(parts, "sluice apply replaces it, sluice edit changes it")
	case e.Extensions.Code == "UNAUTHENTICATED":
		parts = append(parts, "sluice login, or name a token with --token-file")
	case e.Extensions.Code == "INTERNAL":
		parts = append(parts, "request "+printable(e.Extensions.RequestID)+" in the gateway's log")
	}
	if len(parts) == 0 {
		return ""
	}
	return " (" + strings.Join(parts, "; ") + ")"
}
