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
	"github.com/sluicegw/sluice/internal/certificate"
)

// owners are the clients of all configured resource services. They do not change with the catalogue.
type owners struct {
	clients map[string]ownerClient
	// files are the certificate files of services with TLS.
	files []*identity.Files
	// certificates are the client certificates of the gateway for services.
	certificates []shownCertificate
}

// shownCertificate is a certificate with which the gateway authenticates itself to another server.
type shownCertificate struct {
	setting, path string
	// leaf returns the certificate as it was last read.
	leaf func() *x509.Certificate
}

// until returns when the certificate expires.
func (c shownCertificate) until() time.Time { return c.leaf().NotAfter }

// check returns an error if the certificate is not valid at a time.
func (c shownCertificate) check(now time.Time) error {
	if err := certificate.Check(c.leaf(), now); err != nil {
		return fmt.Errorf("%s: %s: %w", c.setting, c.path, err)
	}
	return nil
}

// check returns an error that names each certificate that is not valid at a time; nil if all are valid.
func (o *owners) check(now time.Time) error {
	var errs []error
	for _, shown := range o.certificates {
		errs = append(errs, shown.check(now))
	}
	return errors.Join(errs...)
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
	files := &identity.Files{Setting: "services: " + name, Most: certificate.MaxBytes, Load: security.load, Logger: log}
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
		o.certificates = append(o.certificates, shownCertificate{files.Setting, s.Cert, security.leaf})
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

// leaf returns the client certificate.
func (t *serviceTLS) leaf() *x509.Certificate { return t.current.Load().Certificates[0].Leaf }

// load uses new contents of the files, which are in the order CA, certificate, key. Files that are not configured are
// left out.
func (t *serviceTLS) load(content [][]byte) error {
	s := t.service
	next := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	if s.CA != "" {
		roots, err := certificate.Authorities(certificate.File{Path: s.CA, Content: content[0]})
		if err != nil {
			return err
		}
		next.RootCAs = roots
		content = content[1:]
	}
	if s.Cert != "" {
		cert := certificate.File{Path: s.Cert, Content: content[0]}
		key := certificate.File{Path: s.Key, Content: content[1]}
		pair, err := certificate.Pair(cert, key)
		if err != nil {
			return err
		}
		next.Certificates = []tls.Certificate{pair}
	}
	t.current.Store(next)
	t.replaced()
	return nil
}
