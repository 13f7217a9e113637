package credential

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"io"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/client"
)

// Access is how a client authenticates the gateway, and itself to the gateway. The zero value is anonymous.
type Access struct {
	// CA is a PEM file with the certificates of trusted CAs. Default: the CAs of the system.
	CA string `yaml:"ca,omitempty"`
	// ClientCert and ClientKey are the PEM files of the client certificate and its key. They are read for each
	// connection.
	ClientCert string `yaml:"client-cert,omitempty"`
	ClientKey  string `yaml:"client-key,omitempty"`
	// TokenFile is a file with the token. It is read for each request.
	TokenFile string `yaml:"token-file,omitempty"`
	// TokenCommand is a program with its arguments. It prints the token.
	TokenCommand []string `yaml:"token-command,omitempty,flow"`
	// PlaintextToken allows the token to be sent over http to hosts other than this machine.
	PlaintextToken bool `yaml:"plaintext-token,omitempty"`
	// Token is the token. It is never stored in the file of contexts.
	Token string `yaml:"-"`
}

// commandTime is the time limit of a program that prints a token.
const commandTime = time.Minute

// maxToken is the maximum length of a token in bytes. A gateway accepts 16 KiB.
const maxToken = 64 << 10

// TLS returns the TLS configuration of the client. It returns nil if there is no client certificate and only the CAs of
// the system are trusted.
func (a *Access) TLS(ctx context.Context) (*tls.Config, error) {
	if a.CA == "" && a.ClientCert == "" {
		return nil, nil
	}
	cfg := &tls.Config{MinVersion: tls.VersionTLS12}
	if a.CA != "" {
		cfg.RootCAs = x509.NewCertPool()
		if err := a.addCA(ctx, cfg.RootCAs); err != nil {
			return nil, err
		}
	}
	if a.ClientCert != "" {
		if _, err := a.certificate(ctx); err != nil {
			return nil, err
		}
		cfg.GetClientCertificate = func(info *tls.CertificateRequestInfo) (*tls.Certificate, error) {
			return a.certificate(info.Context())
		}
	}
	return cfg, nil
}

// Authorities returns the CAs that are trusted when an issuer of tokens is called: the CAs of the system and those in
// CA. If CA is empty, it returns nil, which means the CAs of the system.
func (a *Access) Authorities(ctx context.Context) (*x509.CertPool, error) {
	if a.CA == "" {
		return nil, nil
	}
	known, err := x509.SystemCertPool()
	if err != nil {
		known = x509.NewCertPool()
	}
	return known, a.addCA(ctx, known)
}

func (a *Access) addCA(ctx context.Context, to *x509.CertPool) error {
	if err := config.AddAuthorities(ctx, to, a.CA); err != nil {
		return fmt.Errorf("ca: %w", err)
	}
	return nil
}

func (a *Access) certificate(ctx context.Context) (*tls.Certificate, error) {
	pair, err := config.ReadKeyPair(ctx, a.ClientCert, a.ClientKey)
	if err != nil {
		return nil, fmt.Errorf("client-cert, client-key: %w", err)
	}
	return &pair, nil
}

// TokenSource returns a source of tokens; nil if there is no token. If the token comes from a program, the error output
// of the program is written to said.
func (a *Access) TokenSource(said io.Writer) client.TokenSource {
	switch {
	case a.Token != "":
		return client.FixedToken(a.Token)
	case a.TokenFile != "":
		return a.fromFile
	case len(a.TokenCommand) > 0:
		return (&command{args: a.TokenCommand, said: said}).token
	}
	return nil
}

// fromFile reads the token from the file. It does so each time, because the file may have been replaced.
func (a *Access) fromFile(ctx context.Context, _ string) (string, error) {
	text, err := config.ReadFile(ctx, a.TokenFile)
	if err != nil {
		return "", err
	}
	return oneToken(a.TokenFile, text)
}

// oneToken returns the token in text, without the newline at its end. where describes the source of the text in errors.
func oneToken(where string, text []byte) (string, error) {
	token := strings.TrimSpace(string(text))
	switch {
	case token == "":
		return "", fmt.Errorf("%s has no token", where)
	case len(token) > maxToken || len(strings.Fields(token)) > 1:
		return "", fmt.Errorf("%s has more than a token", where)
	}
	return token, nil
}

// command is a source of tokens that runs a program. It keeps the token until the gateway refuses it.
type command struct {
	args []string
	said io.Writer

	mu   sync.Mutex // guards kept, and lets the program run once at a time
	kept string
}

func (c *command) token(ctx context.Context, refused string) (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.kept != "" && c.kept != refused {
		return c.kept, nil
	}
	limit, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	out := &limited{left: maxToken}
	// There is no shell, so the arguments are used as they are. Errors have only the name of the program, because an
	// argument may be a secret.
	cmd := exec.CommandContext(limit, c.args[0], c.args[1:]...)
	cmd.Stdout, cmd.Stderr = out, c.said
	cmd.WaitDelay = time.Second
	where := "token-command: " + c.args[0]
	switch err := cmd.Run(); {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case limit.Err() != nil:
		return "", fmt.Errorf("%s has printed no token in %v", where, commandTime)
	case err != nil:
		return "", fmt.Errorf("%s: %w", where, err)
	}
	token, err := oneToken("what "+c.args[0]+" printed", out.Bytes())
	if err != nil {
		return "", fmt.Errorf("token-command: %w", err)
	}
	c.kept = token
	return token, nil
}

// limited is a buffer that keeps at most one byte more than its limit and discards the rest.
type limited struct {
	bytes.Buffer
	left int
}

// Write implements [io.Writer].
func (l *limited) Write(p []byte) (int, error) {
	if room := l.left + 1 - l.Len(); len(p) > room {
		_, err := l.Buffer.Write(p[:room])
		return len(p), err
	}
	return l.Buffer.Write(p)
}
