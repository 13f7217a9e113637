package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"runtime"
	"time"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/graph/client"
)

func loginCommand(std streams) *cobra.Command {
	var r remote
	var issuer string
	var device bool
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to the gateway of a context, at one of its issuers",
		Long: "Log in to the gateway of the current context, or of the one that --context names, at an OpenID Connect issuer that the\n" +
			"gateway trusts. A page of the issuer opens in your browser; with --device, on any other device by a code. The tokens are\n" +
			"kept beside the file of contexts, with the mode 0600, and refreshed while commands use them.",
		Example: "  sluice login\n  sluice login --context prod --issuer corp\n  sluice login --device",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := r.named(cmd)
			if err != nil {
				return err
			}
			return r.logIn(cmd, std, name, issuer, device)
		},
	}
	cmd.Flags().StringVar(&r.context, "context", "", "context to log in to (default: the current one)")
	cmd.Flags().StringVar(&issuer, "issuer", "", "name of the issuer, where the gateway has several")
	cmd.Flags().BoolVar(&device, "device", false, "show a code to type on another device")
	return cmd
}

// named resolves a context that there must be.
func (r *remote) named(cmd *cobra.Command) (name string, err error) {
	if err := loadSettings(cmd); err != nil {
		return "", err
	}
	r.server, r.timeout = client.DefaultServer, credential.IssuerTimeout
	if err := r.resolve(cmd); err != nil {
		return "", usageError{err}
	}
	if r.login == "" {
		return "", usageError{errors.New("there is no current context; sluice context set NAME --server URL makes one")}
	}
	return r.login, nil
}

func (r *remote) logIn(cmd *cobra.Command, std streams, name, issuer string, device bool) error {
	if r.access.TokenFile != "" || len(r.access.TokenCommand) > 0 {
		return usageError{fmt.Errorf("the context %s has a token, which would be used instead of a login; sluice context set %[1]s --token-file '' removes it", name)}
	}
	if r.access.Token != "" {
		return usageError{errors.New(tokenVariable + " is set, and would be used instead of a login")}
	}
	// A server to which no token may be sent needs no login.
	if _, err := client.New(client.Config{Server: r.server, Token: (&credential.Source{}).Token, PlaintextToken: r.access.PlaintextToken}); err != nil {
		return usageError{err}
	}
	ctx := cmd.Context()
	security, err := r.access.TLS(ctx)
	if err != nil {
		return usageError{err}
	}
	issuers, err := credential.Issuers(ctx, plainClient(security), r.server)
	if err != nil {
		return err
	}
	chosen, err := credential.Choose(issuers, issuer)
	if err != nil {
		return usageError{err}
	}
	there, err := issuerClient(ctx, r.access)
	if err != nil {
		return usageError{err}
	}
	flow := credential.Flow{HTTP: there, Issuer: chosen, Show: func(page, code string) { showPage(std, chosen, page, code) }}
	run := flow.Browser
	if device {
		run = flow.Device
	}
	got, err := run(ctx)
	if err != nil {
		return err
	}
	got.Server = r.server
	if err := credential.KeepLogin(ctx, credential.LoginsPath(contextsPath()), name, got); err != nil {
		return err
	}
	c, err := r.connect(cmd)
	if err != nil {
		return err
	}
	viewer, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(std.out, "logged in to %s as %s\n", printable(name), printable(viewer.Name))
	return err
}

// showPage tells a person where to log in, and opens the page if there is a browser.
func showPage(std streams, issuer credential.Issuer, page, code string) {
	if code != "" {
		_, _ = fmt.Fprintf(std.err, "To log in at %s, open %s on any device and type the code %s\n", printable(issuer.Name), printable(page), printable(code))
		return
	}
	_, _ = fmt.Fprintf(std.err, "To log in at %s, open this page in a browser on this machine:\n%s\n", printable(issuer.Name), printable(page))
	if !isTerminal(std.err) {
		return
	}
	opener := "xdg-open"
	switch {
	case runtime.GOOS == "darwin":
		opener = "open"
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return
	}
	cmd := exec.Command(opener, page)
	if cmd.Start() == nil {
		go func() { _ = cmd.Wait() }()
	}
}

// issuerClient speaks to issuers. They may have certificates of the system's authorities or of the context's.
func issuerClient(ctx context.Context, a credential.Access) (*http.Client, error) {
	known, err := a.Authorities(ctx)
	return plainClient(&tls.Config{MinVersion: tls.VersionTLS12, RootCAs: known}), err
}

// plainClient follows no redirects, and leaves no connections behind.
func plainClient(security *tls.Config) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableKeepAlives, t.TLSClientConfig = true, security
	return &http.Client{Transport: t, Timeout: credential.IssuerTimeout, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// loginSource returns the tokens of the context's login; nil if there is none for the server.
func (r *remote) loginSource(ctx context.Context) (client.TokenSource, error) {
	path := credential.LoginsPath(contextsPath())
	l, found, err := credential.FindLogin(path, r.login)
	if err != nil || !found || !sameServer(l.Server, r.server) {
		return nil, err
	}
	there, err := issuerClient(ctx, r.access)
	if err != nil {
		return nil, err
	}
	return (&credential.Source{Path: path, Context: r.login, HTTP: there}).Token, nil
}

func logoutCommand(std streams) *cobra.Command {
	var r remote
	cmd := &cobra.Command{
		Use:     "logout",
		Short:   "Forget the login of a context",
		Long:    "Forget the login of the current context, or of the one that --context names, and have its issuer revoke it.",
		Example: "  sluice logout\n  sluice logout --context prod",
		Args:    usage(cobra.NoArgs),
		RunE: func(cmd *cobra.Command, _ []string) error {
			name, err := r.named(cmd)
			if err != nil {
				return err
			}
			return r.logOut(cmd.Context(), std, name)
		},
	}
	cmd.Flags().StringVar(&r.context, "context", "", "context to log out of (default: the current one)")
	return cmd
}

func (r *remote) logOut(ctx context.Context, std streams, name string) error {
	path := credential.LoginsPath(contextsPath())
	l, found, err := credential.FindLogin(path, name)
	switch {
	case err != nil:
		return usageError{err}
	case !found:
		_, err := fmt.Fprintf(std.out, "%s has no login\n", printable(name))
		return err
	}
	if err := credential.KeepLogin(ctx, path, name, nil); err != nil {
		return err
	}
	there, err := issuerClient(ctx, r.access)
	if err == nil {
		err = credential.Revoke(ctx, there, l)
	}
	if err != nil {
		_, _ = fmt.Fprintf(std.err, "sluice: warning: the issuer has not revoked the login, so a copy of it stays valid: %s\n", printable(err.Error()))
	}
	_, err = fmt.Fprintf(std.out, "logged out of %s\n", printable(name))
	return err
}

// expiryText is the end of a credential as people read it.
func expiryText(at *time.Time) string {
	if at == nil {
		return "never"
	}
	return at.Local().Format(time.RFC3339)
}
