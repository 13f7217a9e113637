package operate

import (
	"context"
	"crypto/tls"
	"errors"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/cmd/sluice/command"
	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

// serviceConnection has the flags of a connection to a resource service.
type serviceConnection struct {
	protocol string
	access   credential.Access
}

func (c *serviceConnection) register(cmd *cobra.Command) {
	var protocols []string
	for _, p := range remote.Protocols() {
		protocols = append(protocols, string(p))
	}
	c.protocol = protocols[0]
	command.AddEnumFlag(cmd, &c.protocol, pflag.Flag{
		Name: "protocol", Usage: "how calls are written: connect+json, connect, grpc or grpc-web",
	}, protocols...)
	f := cmd.Flags()
	f.StringVar(&c.access.CA, "ca", "", "file with the certificates (PEM) of the authorities to trust (default: the system's)")
	f.StringVar(&c.access.ClientCert, "client-cert", "", "file with a certificate (PEM) that tells the service who asks")
	f.StringVar(&c.access.ClientKey, "client-key", "", "file with the key (PEM) of --client-cert")
}

// tlsConfig returns the TLS configuration in the flags. It returns nil if there is no client certificate and only the
// CAs of the system are trusted.
func (c *serviceConnection) tlsConfig(ctx context.Context) (*tls.Config, error) {
	if (c.access.ClientCert == "") != (c.access.ClientKey == "") {
		return nil, errors.New("--client-cert, --client-key: both are needed")
	}
	return c.access.TLS(ctx)
}

// serviceTimeout is the time limit of a call to a service.
const serviceTimeout = 30 * time.Second

// config returns the configuration of a client for the service at an address.
func (c *serviceConnection) config(ctx context.Context, address string) (remote.Config, error) {
	secure, err := c.tlsConfig(ctx)
	if err != nil {
		return remote.Config{}, err
	}
	return remote.Config{
		Name: address, Address: address, Protocol: remote.Protocol(c.protocol), Timeout: serviceTimeout,
		TLS: func() *tls.Config { return secure },
	}, nil
}

// client returns a client of the service at an address.
func (c *serviceConnection) client(ctx context.Context, address string) (*remote.Client, error) {
	cfg, err := c.config(ctx, address)
	if err != nil {
		return nil, err
	}
	return remote.New(cfg)
}
