package gateway

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"time"

	"go.uber.org/zap"
	"golang.org/x/sync/errgroup"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/backend/service/owner/standard"
	"github.com/sluicegw/sluice/cmd/sluice/config"
	"github.com/sluicegw/sluice/graph/identity"
)

// maxCertificates is the maximum size of a file of certificates in bytes.
const maxCertificates = 1 << 20

// owners are the clients of all configured resource services. They do not change with the catalogue.
type owners struct {
	clients map[string]ownerClient
	// files are the certificate files of services with TLS.
	files []*identity.Files
	// certificates are the client certificates of the gateway.
	certificates []validity
}

// validity has the time until which the certificate in a setting is valid.
type validity struct {
	setting string
	until   func() time.Time
}

// ownerClient is a client of a service.
type ownerClient interface {
	owner.Service
	// Close closes idle connections.
	Close()
}

// openOwners creates the clients of services. They do not connect yet. The error joins all problems.
func openOwners(ctx context.Context, services config.Services, log *zap.Logger) (*owners, error) {
	out := &owners{clients: map[string]ownerClient{}}
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(services)) {
		if err := out.open(ctx, name, services[name], log); err != nil {
			errs = append(errs, err)
		}
	}
	return out, errors.Join(errs...)
}

func (o *owners) open(ctx context.Context, name string, s config.Service, log *zap.Logger) error {
	security := &serviceTLS{service: s}
	cfg := s.Remote(name)
	cfg.TLS = security.current.Load
	client, closeIdle, err := newOwnerClient(cfg, s.Mapping)
	if err != nil {
		return fmt.Errorf("services: %s: %w", name, err)
	}
	security.replaced = closeIdle
	files := &identity.Files{Setting: "services: " + name, Most: maxCertificates, Load: security.load, Logger: log}
	for _, path := range []string{s.CA, s.Cert, s.Key} {
		if path != "" {
			files.Paths = append(files.Paths, path)
		}
	}
	if err := files.Open(ctx); err != nil {
		return err
	}
	if len(files.Paths) > 0 {
		o.files = append(o.files, files)
	}
	if s.Cert != "" {
		o.certificates = append(o.certificates, validity{files.Setting, security.until})
	}
	o.clients[name] = client
	return nil
}

// newOwnerClient returns the client of a service, and a function that closes its idle connections. mapping is the path
// of the mapping of a service with standard methods; empty for a service that implements the contract.
func newOwnerClient(cfg remote.Config, mapping string) (client ownerClient, closeIdle func(), err error) {
	if mapping == "" {
		made, err := remote.New(cfg)
		if err != nil {
			return nil, nil, err
		}
		return made, made.Close, nil
	}
	mapped, descriptors, err := config.ReadMapping(mapping)
	if err != nil {
		return nil, nil, fmt.Errorf("mapping: %w", err)
	}
	made, err := standard.New(standard.Config{Remote: cfg, Descriptors: descriptors, Mapping: mapped})
	if err != nil {
		return nil, nil, fmt.Errorf("mapping: %s: %w", mapping, err)
	}
	return made, made.CloseIdle, nil
}

// services returns the services by name.
func (o *owners) services() map[string]owner.Service {
	out := make(map[string]owner.Service, len(o.clients))
	for name, client := range o.clients {
		out[name] = client
	}
	return out
}

// Run reads the certificate files again when they change. When ctx ends, it closes the connections.
func (o *owners) Run(ctx context.Context) error {
	var all errgroup.Group
	for _, files := range o.files {
		all.Go(func() error { return files.Run(ctx) })
	}
	<-ctx.Done()
	err := all.Wait()
	for _, client := range o.clients {
		client.Close()
	}
	return err
}

// serviceTLS is the TLS configuration of a client of a service.
type serviceTLS struct {
	service config.Service
	current atomic.Pointer[tls.Config]
	// replaced is called after current was replaced.
	replaced func()
}

// until returns the time until which the client certificate is valid.
func (t *serviceTLS) until() time.Time { return t.current.Load().Certificates[0].Leaf.NotAfter }

// load uses new contents of the files, which are in the order CA, certificate, key. Files that are not configured are
// missing.
func (t *serviceTLS) load(content [][]byte) error {
	s := t.service
	next := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	if s.CA != "" {
		next.RootCAs = x509.NewCertPool()
		if !next.RootCAs.AppendCertsFromPEM(content[0]) {
			return fmt.Errorf("%s: there is no certificate (PEM) in it", s.CA)
		}
		content = content[1:]
	}
	if s.Cert != "" {
		pair, err := tls.X509KeyPair(content[0], content[1])
		if err != nil {
			return fmt.Errorf("%s and %s: %w", s.Cert, s.Key, err)
		}
		next.Certificates = []tls.Certificate{pair}
	}
	t.current.Store(next)
	t.replaced()
	return nil
}
