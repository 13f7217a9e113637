package main

import (
	"cmp"
	"errors"
	"net/url"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/client"
)

// Variables that are no flags: the file of contexts, and a token, since flags appear in process lists.
const (
	contextsVariable = config.EnvPrefix + "CONTEXTS"
	tokenVariable    = config.EnvPrefix + "TOKEN"
)

// contextsPath is where the file of contexts is.
func contextsPath() string {
	if path := os.Getenv(contextsVariable); path != "" {
		return path
	}
	return credential.ContextsPath()
}

// connect makes the client that the flags, the environment and the context describe.
func (r *remote) connect(cmd *cobra.Command) (*client.Client, error) {
	if err := r.resolve(cmd); err != nil {
		return nil, usageError{err}
	}
	security, err := r.access.TLS(cmd.Context())
	if err != nil {
		return nil, usageError{err}
	}
	if security != nil && strings.HasPrefix(r.server, "http://") {
		return nil, usageError{errors.New("ca, client-cert: they have no effect without https")}
	}
	source := r.access.TokenSource(cmd.ErrOrStderr())
	if source == nil && r.login != "" {
		if source, err = r.loginSource(cmd.Context()); err != nil {
			return nil, usageError{err}
		}
	}
	c, err := client.New(client.Config{
		Server: r.server, Timeout: r.timeout, Explain: r.explain, Name: "sluice", Version: versionText(),
		TLS: security, Token: source, PlaintextToken: r.access.PlaintextToken,
	})
	if err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

// resolve takes from the context what neither the command line nor the environment gives. The credentials of the
// current context go to its own server only, unless the command line names both a context and a server.
func (r *remote) resolve(cmd *cobra.Command) error {
	given := func(flag string) bool { return cmd.Flags().Changed(flag) }
	if !given("token-file") {
		r.access.Token = strings.TrimSpace(os.Getenv(tokenVariable))
	}
	name, c, err := readContext(r.context)
	if err != nil {
		return err
	}
	if !given("namespace") {
		r.namespace = c.Namespace
	}
	if !given("server") && c.Server != "" {
		r.server = c.Server
	}
	both := config.Named(cmd.Flags(), "context") && config.Named(cmd.Flags(), "server")
	if name != "" && (both || sameServer(r.server, cmp.Or(c.Server, client.DefaultServer))) {
		r.inherit(c, given)
		if !given("token-file") {
			r.login = name
		}
	}
	return r.access.Validate()
}

// inherit takes the access of the context, unless it is given.
func (r *remote) inherit(c credential.Context, given func(flag string) bool) {
	if !given("ca") {
		r.access.CA = c.CA
	}
	if !given("client-cert") && !given("client-key") {
		r.access.ClientCert, r.access.ClientKey = c.ClientCert, c.ClientKey
	}
	if !given("plaintext-token") {
		r.access.PlaintextToken = c.PlaintextToken
	}
	if !given("token-file") && r.access.Token == "" {
		r.access.TokenFile, r.access.TokenCommand = c.TokenFile, c.TokenCommand
	}
}

// readContext returns the context of the name, or the current one with its name; both are empty if there is none.
func readContext(name string) (string, credential.Context, error) {
	file, err := credential.ReadContexts(contextsPath())
	if err != nil {
		return "", credential.Context{}, err
	}
	if name = cmp.Or(name, file.Current); name == "" {
		return "", credential.Context{}, nil
	}
	c, err := file.Find(name)
	return name, c, err
}

// sameServer reports whether two URLs are of one server.
func sameServer(a, b string) bool {
	one, err1 := url.Parse(a)
	other, err2 := url.Parse(b)
	return errors.Join(err1, err2) == nil && one.Scheme == other.Scheme && strings.EqualFold(one.Host, other.Host)
}
