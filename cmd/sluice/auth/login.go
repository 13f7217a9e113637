package auth

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"

	"github.com/spf13/cobra"

	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/exit"
	"github.com/sluicegw/sluice/cmd/sluice/output"
	"github.com/sluicegw/sluice/cmd/sluice/remote"
	"github.com/sluicegw/sluice/cmd/sluice/terminal"
	"github.com/sluicegw/sluice/graph/client"
)

func LoginCommand(std terminal.Streams) *cobra.Command {
	l := login{std: std}
	cmd := &cobra.Command{
		Use:   "login",
		Short: "Log in to the gateway of a context, at one of its issuers",
		Long: "Log in to the gateway of the current context, or of the one that --context names, at an OpenID Connect\n" +
			"issuer that the gateway trusts. A page of the issuer opens in your browser, which then returns to a port of this\n" +
			"machine; with --device, you log in on any other device by a code. If the issuer accepts only redirect URIs that\n" +
			"were registered with their ports, --callback-port names the port of http://127.0.0.1:PORT/callback. The tokens\n" +
			"are kept beside the file of contexts, with the mode 0600, encrypted with a key in the keyring of the system if\n" +
			"it has one, and refreshed while commands use them.",
		Example: "  sluice login\n  sluice login --context prod --issuer corp\n  sluice login --callback-port 8400\n" +
			"  sluice login --device",
		Args: command.Args(0, 0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if l.device && cmd.Flags().Changed("callback-port") {
				return exit.Usage(errors.New("--callback-port has no effect with --device: no browser returns to this machine"))
			}
			name, err := namedContext(cmd, &l.remote)
			if err != nil {
				return err
			}
			return l.run(cmd, name)
		},
	}
	cmd.Flags().StringVar(&l.remote.Context, "context", "", "context to log in to (default: the current one)")
	cmd.Flags().StringVar(&l.issuer, "issuer", "", "name of the issuer, where the gateway has several")
	cmd.Flags().BoolVar(&l.device, "device", false, "show a code to type on another device")
	cmd.Flags().Uint16Var(
		&l.callbackPort, "callback-port", 0, "port of this machine that the browser returns to (default: any free one)",
	)
	cmd.Flags().BoolVar(&l.noKeyring, "no-keyring", false, "keep the tokens in a file alone, without the keyring of the system")
	return cmd
}

// login is the state of the command login.
type login struct {
	std    terminal.Streams
	remote remote.Flags
	issuer string
	device bool
	// callbackPort is the port to which the browser is redirected; 0 means any free port.
	callbackPort uint16
	// noKeyring stores the tokens in the file without encryption.
	noKeyring bool
}

// namedContext determines the context of a command and returns its name. The context must exist.
func namedContext(cmd *cobra.Command, r *remote.Flags) (name string, err error) {
	if err := command.LoadSettings(cmd); err != nil {
		return "", err
	}
	r.Server, r.Timeout = client.DefaultServer, credential.IssuerTimeout
	if err := r.Resolve(cmd); err != nil {
		return "", exit.Usage(err)
	}
	if r.Login == "" {
		return "", exit.Usage(errors.New("there is no current context; sluice context set NAME --server URL makes one"))
	}
	return r.Login, nil
}

func (l *login) run(cmd *cobra.Command, name string) error {
	r := &l.remote
	if r.Access.TokenFile != "" || len(r.Access.TokenCommand) > 0 {
		return exit.Usage(fmt.Errorf(
			"the context %s has a token, which would be used instead of a login; sluice context set %[1]s --token-file '' removes it",
			name,
		))
	}
	if r.Access.Token != "" {
		return exit.Usage(errors.New(config.TokenVariable + " is set, and would be used instead of a login"))
	}
	// Refuse the login if its token could never be sent to the server.
	if _, err := client.New(client.Config{
		Server:         r.Server,
		Token:          (&credential.Source{}).Token,
		PlaintextToken: r.Access.PlaintextToken,
	}); err != nil {
		return exit.Usage(err)
	}
	ctx := cmd.Context()
	security, err := r.Access.TLS(ctx)
	if err != nil {
		return exit.Usage(err)
	}
	issuers, err := credential.Issuers(ctx, remote.PlainClient(security), r.Server)
	if err != nil {
		return err
	}
	chosen, err := credential.Choose(issuers, l.issuer)
	if err != nil {
		return exit.Usage(err)
	}
	there, err := remote.IssuerClient(ctx, r.Access)
	if err != nil {
		return exit.Usage(err)
	}
	flow := credential.Flow{
		HTTP:         there,
		Issuer:       chosen,
		CallbackPort: l.callbackPort,
		Show:         func(page, code string) { showPage(l.std, chosen, page, code) },
	}
	run := flow.Browser
	if l.device {
		run = flow.Device
	}
	got, err := run(ctx)
	if err != nil {
		return err
	}
	got.Server = r.Server
	if err := l.keep(ctx, name, got); err != nil {
		return err
	}
	c, err := r.Connect(cmd)
	if err != nil {
		return err
	}
	viewer, err := c.Viewer(ctx)
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(l.std.Out, "logged in to %s as %s\n", output.Printable(name), output.Printable(viewer.Name))
	return err
}

// keep stores the login. If the keyring cannot be used, the tokens are stored in the file without encryption, and keep
// prints a message about that.
func (l *login) keep(ctx context.Context, name string, got *credential.Login) error {
	path := credential.LoginsPath(remote.ContextsPath())
	ring := credential.SystemKeyring()
	if l.noKeyring {
		ring = nil
	}
	plain, err := credential.StoreLogin(ctx, path, name, got, ring)
	if err == nil && plain != nil {
		_, _ = fmt.Fprintf(l.std.Err, "The tokens are kept in %s, which nobody else can read: the keyring of this system cannot be used (%s)\n",
			output.Printable(path), output.Printable(plain.Error()))
	}
	return err
}

// showPage prints the address of the login page, and opens the page if there is a browser.
func showPage(std terminal.Streams, issuer credential.Issuer, page, code string) {
	if code != "" {
		_, _ = fmt.Fprintf(std.Err, "To log in at %s, open %s on any device and type the code %s\n",
			output.Printable(issuer.Name), output.Printable(page), output.Printable(code))
		return
	}
	_, _ = fmt.Fprintf(std.Err, "To log in at %s, open this page in a browser on this machine:\n%s\n",
		output.Printable(issuer.Name), output.Printable(page))
	if !terminal.IsTerminal(std.Err) {
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
