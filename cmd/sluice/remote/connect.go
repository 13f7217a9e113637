package remote

import (
	"cmp"
	"errors"
	"fmt"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/version"
	"github.com/sluicegw/sluice/graph/client"
)

// ContextsPath returns the path of the file of contexts.
func ContextsPath() string {
	if path := os.Getenv(config.ContextsVariable); path != "" {
		return path
	}
	return credential.ContextsPath()
}

// Connect returns a client that is configured by the flags, the environment and the context.
func (r *Flags) Connect(cmd *cobra.Command) (*client.Client, error) {
	if err := r.Resolve(cmd); err != nil {
		return nil, exit.Usage(err)
	}
	security, err := r.Access.TLS(cmd.Context())
	if err != nil {
		return nil, exit.Usage(err)
	}
	if security != nil && strings.HasPrefix(r.Server, "http://") {
		return nil, exit.Usage(errors.New("ca, client-cert: they have no effect without https"))
	}
	source := r.Access.TokenSource(cmd.ErrOrStderr())
	if source == nil && r.Login != "" {
		if source, err = r.loginSource(cmd.Context()); err != nil {
			return nil, exit.Usage(err)
		}
	}
	c, err := client.New(client.Config{
		Server:         r.Server,
		API:            cmp.Or(r.API, client.Unreleased),
		Timeout:        r.Timeout,
		Explain:        r.Explain,
		Name:           "sluice",
		Version:        version.Text(),
		TLS:            security,
		Token:          source,
		PlaintextToken: r.Access.PlaintextToken,
		Deprecated: func(d client.Deprecation) {
			_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sluice: warning: %s\n", output.Printable(d.String()))
		},
	})
	if err != nil {
		return nil, exit.Usage(err)
	}
	return c, nil
}

// Resolve sets, from the context, the flags that are neither on the command line nor in the environment. The
// credentials of the current context are only used for the server of that context, unless both a context and a server
// are on the command line.
func (r *Flags) Resolve(cmd *cobra.Command) error {
	given := func(flag string) bool { return cmd.Flags().Changed(flag) }
	if !given("token-file") {
		r.Access.Token = strings.TrimSpace(os.Getenv(config.TokenVariable))
	}
	name, c, err := readContext(r.Context)
	if err != nil {
		return err
	}
	if !given("namespace") {
		r.Namespace = c.Namespace
	}
	if !given("server") && c.Server != "" {
		r.Server = c.Server
	}
	both := config.Named(cmd.Flags(), "context") && config.Named(cmd.Flags(), "server")
	if name != "" && (both || sameServer(r.Server, cmp.Or(c.Server, client.DefaultServer))) {
		r.inherit(c, given)
		if !given("token-file") {
			r.Login = name
		}
	}
	return r.Access.Validate()
}

// inherit sets the credentials from the context, unless the command line or the environment has others.
func (r *Flags) inherit(c credential.Context, given func(flag string) bool) {
	if !given("ca") {
		r.Access.CA = c.CA
	}
	if !given("client-cert") && !given("client-key") {
		r.Access.ClientCert, r.Access.ClientKey = c.ClientCert, c.ClientKey
	}
	if !given("plaintext-token") {
		r.Access.PlaintextToken = c.PlaintextToken
	}
	if !given("token-file") && r.Access.Token == "" {
		r.Access.TokenFile, r.Access.TokenCommand = c.TokenFile, c.TokenCommand
	}
}

// readContext returns the context with a name, or the current context if the name is empty. It also returns the name.
// Both are empty if there is no such context.
func readContext(name string) (string, credential.Context, error) {
	file, err := credential.ReadContexts(ContextsPath())
	if err != nil {
		return "", credential.Context{}, err
	}
	name = cmp.Or(name, file.Current)
	if name == "" {
		return "", credential.Context{}, nil
	}
	c, err := file.Find(name)
	return name, c, err
}

// sameServer reports whether two URLs are about the same server.
func sameServer(a, b string) bool {
	one, err1 := url.Parse(a)
	other, err2 := url.Parse(b)
	return errors.Join(err1, err2) == nil && one.Scheme == other.Scheme && strings.EqualFold(one.Host, other.Host)
}
