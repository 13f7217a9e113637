// Package kms wraps and unwraps keys with a key management service (KMS), whose key never leaves the service. It calls
// a plugin on the same machine, with version 2 of the protocol of Kubernetes for such plugins
// (schema/kms/v2/kms.proto): gRPC over a unix socket. There are plugins for cloud services, HSMs and Vault.
package kms

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"

	"connectrpc.com/connect"
	"github.com/google/uuid"

	pb "github.com/sluicegw/sluice/schema/kms/v2/kmsv2"
)

// DefaultTimeout is the default of Config.Timeout.
const DefaultTimeout = 10 * time.Second

const (
	// maxAnswer is the maximum size of an answer in bytes. It is enough for the largest wrapped key.
	maxAnswer = 64 << 10
	// maxErrorText is the number of bytes to which the error message of a plugin is shortened.
	maxErrorText = 300
)

// Config configures a [Plugin].
type Config struct {
	// Socket is the path of the plugin's socket, which may be preceded by unix://. Required.
	Socket string
	// Timeout is the time limit of each call. Default: DefaultTimeout.
	Timeout time.Duration
}

// path returns the address for package net. As in gRPC, a name that begins with @ is an abstract socket.
func (c Config) path() (string, error) {
	path, isURL := strings.CutPrefix(c.Socket, "unix:")
	if isURL {
		path = strings.TrimPrefix(path, "//")
	}
	if isURL && strings.HasPrefix(path, "/@") {
		path = path[1:]
	}
	switch {
	case path == "":
		return "", errors.New("the path of a socket is missing, like /run/kms/plugin.sock")
	case strings.Contains(path, "://"):
		return "", fmt.Errorf("%q is no path of a socket; one like /run/kms/plugin.sock is accepted, also as unix:///run/kms/plugin.sock", c.Socket)
	}
	return path, nil
}

// Plugin is a [keyring.KMS]. It is safe for concurrent use.
type Plugin struct {
	path      string
	timeout   time.Duration
	transport *http.Transport
	status    *connect.Client[pb.StatusRequest, pb.StatusResponse]
	encrypt   *connect.Client[pb.EncryptRequest, pb.EncryptResponse]
	decrypt   *connect.Client[pb.DecryptRequest, pb.DecryptResponse]
}

// New returns a Plugin. It does not call the plugin yet.
func New(cfg Config) (*Plugin, error) {
	path, err := cfg.path()
	if err != nil {
		return nil, err
	}
	if cfg.Timeout <= 0 {
		cfg.Timeout = DefaultTimeout
	}
	transport := &http.Transport{
		Protocols:              new(http.Protocols),
		MaxResponseHeaderBytes: maxAnswer,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return new(net.Dialer).DialContext(ctx, "unix", path)
		},
	}
	transport.Protocols.SetUnencryptedHTTP2(true)
	client := &http.Client{Transport: transport}
	return &Plugin{
		path: path, timeout: cfg.Timeout, transport: transport,
		status:  newClient[pb.StatusRequest, pb.StatusResponse](client, "Status"),
		encrypt: newClient[pb.EncryptRequest, pb.EncryptResponse](client, "Encrypt"),
		decrypt: newClient[pb.DecryptRequest, pb.DecryptResponse](client, "Decrypt"),
	}, nil
}

// newClient returns a client of one method. The host in the URL has no meaning.
func newClient[Req, Res any](client *http.Client, method string) *connect.Client[Req, Res] {
	const service = "http://localhost/v2.KeyManagementService/"
	return connect.NewClient[Req, Res](client, service+method, connect.WithGRPC(), connect.WithReadMaxBytes(maxAnswer))
}

// String returns a name of the plugin for errors.
func (p *Plugin) String() string { return "the plugin at " + p.path }

// Close closes the connections.
func (p *Plugin) Close() { p.transport.CloseIdleConnections() }

// KeyID returns the id of the current key of the KMS. It returns an error if the plugin cannot be used.
func (p *Plugin) KeyID(ctx context.Context) (string, error) {
	out, err := call(ctx, p, p.status, &pb.StatusRequest{})
	if err != nil {
		return "", fmt.Errorf("status: %w", err)
	}
	switch {
	case out.GetVersion() != "v2" && out.GetVersion() != "v2beta1":
		return "", fmt.Errorf("%s speaks version %q of the protocol; v2 is accepted", p, cut(out.GetVersion()))
	case out.GetHealthz() != "ok":
		return "", fmt.Errorf("%s does not work; it says: %q", p, cut(out.GetHealthz()))
	}
	if err := checkKeyID(out.GetKeyId()); err != nil {
		return "", fmt.Errorf("status: %s: %w", p, err)
	}
	return out.GetKeyId(), nil
}

// Wrap encrypts a key with the current key of the KMS. As in Kubernetes, it returns an error if the plugin has
// encrypted with another key than the one in its status, because the plugin may soon use the key in its status again.
func (p *Plugin) Wrap(ctx context.Context, secret []byte) ([]byte, error) {
	current, err := p.KeyID(ctx)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, p, p.encrypt, &pb.EncryptRequest{Plaintext: secret, Uid: uuid.NewString()})
	var refused *refusedError
	switch {
	case errors.As(err, &refused):
		return nil, fmt.Errorf("encrypt: %s refuses with %s; what it says is not shown, as it may quote the key: "+
			"see its log", p, refused.code)
	case err != nil:
		return nil, fmt.Errorf("encrypt: %w", err)
	case out.GetKeyId() != current:
		return nil, fmt.Errorf("encrypt: %s encrypts with the key %q of the KMS, and its status names the key %q; "+
			"if the key of the KMS is being replaced, try again later", p, cut(out.GetKeyId()), cut(current))
	}
	wrapped, err := encode(out)
	if err != nil {
		return nil, fmt.Errorf("encrypt: %s: %w", p, err)
	}
	return wrapped, nil
}

// Unwrap decrypts a key that Wrap has returned.
func (p *Plugin) Unwrap(ctx context.Context, wrapped []byte) ([]byte, error) {
	in, err := decode(wrapped)
	if err != nil {
		return nil, err
	}
	out, err := call(ctx, p, p.decrypt, &pb.DecryptRequest{
		Ciphertext: in.GetCiphertext(), Uid: uuid.NewString(), KeyId: in.GetKeyId(), Annotations: in.GetAnnotations(),
	})
	switch {
	case errors.As(err, new(*refusedError)):
		return nil, fmt.Errorf("decrypt with the key %q of the KMS: %w; that key must be enabled in the KMS, "+
			"and the plugin allowed to decrypt with it", cut(in.GetKeyId()), err)
	case err != nil:
		return nil, fmt.Errorf("decrypt with the key %q of the KMS: %w", cut(in.GetKeyId()), err)
	}
	return out.GetPlaintext(), nil
}

// errLate means that a call was not answered within the timeout.
var errLate = errors.New("no answer in time")

// call calls a method and waits for the answer until the timeout. Errors contain nothing of the request.
func call[Req, Res any](
	ctx context.Context, p *Plugin, client *connect.Client[Req, Res], in *Req,
) (*Res, error) {
	// A deadline of the context would be sent to the plugin, whose own error would then often come first.
	bounded, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer time.AfterFunc(p.timeout, func() { cancel(errLate) }).Stop()
	out, err := client.CallUnary(bounded, connect.NewRequest(in))
	var answered *connect.Error
	switch {
	case err == nil:
		return out.Msg, nil
	case ctx.Err() != nil:
		return nil, context.Cause(ctx)
	case errors.Is(context.Cause(bounded), errLate):
		return nil, fmt.Errorf("%s has not answered within %s; see whether it and the KMS behind it work",
			p, p.timeout)
	case connect.IsWireError(err) && errors.As(err, &answered):
		return nil, &refusedError{plugin: p, code: answered.Code(), text: cut(answered.Message())}
	}
	return nil, fmt.Errorf("%s cannot be asked (a KMS plugin for Kubernetes, of version v2, is expected there): %s",
		p, cut(err.Error()))
}

// refusedError is an error that a plugin has answered.
type refusedError struct {
	plugin *Plugin
	code   connect.Code
	text   string
}

// Error returns a message with the code and the text of the plugin.
func (e *refusedError) Error() string {
	return fmt.Sprintf("%s refuses with %s: %q", e.plugin, e.code, e.text)
}

// cut shortens a text of a plugin to at most maxErrorText bytes.
func cut(text string) string {
	if len(text) <= maxErrorText {
		return text
	}
	return strings.ToValidUTF8(text[:maxErrorText], "") + "..."
}
