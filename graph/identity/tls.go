package identity

import (
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"os"
	"sync/atomic"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/internal/certificate"
)

// TLS is a TLS configuration made from PEM files, which are read again when they change. It is safe for concurrent use.
type TLS struct {
	*Files
	current atomic.Pointer[tls.Config]
	clients atomic.Pointer[authorities]
}

// authorities maps the SHA-256 of each CA certificate to the CA.
type authorities map[[sha256.Size]byte]*authority

// authority is a CA of client certificates. The context removed ends when the CA is removed from the file.
type authority struct {
	removed context.Context
	remove  context.CancelFunc
}

// Certificates has the paths of the PEM files for TLS.
type Certificates struct {
	// Cert and Key are the certificate of the gateway and its key.
	Cert, Key string
	// ClientCA has the CAs of client certificates; empty if no client certificates are requested.
	ClientCA string
}

// OpenTLS reads the files. [TLS.Run] must be called to read them again.
func OpenTLS(ctx context.Context, c Certificates, log *zap.Logger) (*TLS, error) {
	t := &TLS{Files: &Files{Setting: "tls-cert", Paths: []string{c.Cert, c.Key}, Most: certificate.MaxBytes, Logger: log}}
	if c.ClientCA != "" {
		t.Paths = append(t.Paths, c.ClientCA)
	}
	t.Load = t.load
	return t, t.Open(ctx)
}

// load uses new contents of the files: the certificate, its key, and the CAs of client certificates, if there are any.
func (t *TLS) load(content [][]byte) error {
	cert := certificate.File{Path: t.Paths[0], Content: content[0]}
	key := certificate.File{Path: t.Paths[1], Content: content[1]}
	pair, err := certificate.Pair(cert, key)
	if err != nil {
		return err
	}
	next := &tls.Config{
		MinVersion:   tls.VersionTLS12,
		Certificates: []tls.Certificate{pair},
		NextProtos:   []string{"h2", "http/1.1"},
	}
	if len(content) > 2 {
		next.ClientAuth = tls.VerifyClientCertIfGiven
		next.ClientCAs, err = certificate.Authorities(certificate.File{Path: t.Paths[2], Content: content[2]})
		if err != nil {
			return err
		}
		t.replaceAuthorities(content[2])
	}
	t.current.Store(next)
	return nil
}

// replaceAuthorities replaces the CAs of client certificates. Certificates of removed CAs are no longer accepted.
func (t *TLS) replaceAuthorities(file []byte) {
	var before authorities
	if old := t.clients.Load(); old != nil {
		before = *old
	}
	now := authorities{}
	for block, rest := pem.Decode(file); block != nil; block, rest = pem.Decode(rest) {
		hash := sha256.Sum256(block.Bytes)
		one := before[hash]
		if one == nil {
			one = &authority{}
			one.removed, one.remove = context.WithCancel(context.Background())
		}
		now[hash] = one
	}
	t.clients.Store(&now)
	for hash, old := range before {
		if now[hash] != old {
			old.remove()
		}
	}
}

// authority returns the CA at the end of one of the chains, which were verified when the connection was made. It
// returns nil if that CA was removed since.
func (t *TLS) authority(chains [][]*x509.Certificate) *authority {
	known := *t.clients.Load()
	for _, chain := range chains {
		if one := known[sha256.Sum256(chain[len(chain)-1].Raw)]; one != nil {
			return one
		}
	}
	return nil
}

// Run reads the files again whenever they change, until ctx ends.
func (t *TLS) Run(ctx context.Context) error {
	if t == nil {
		<-ctx.Done()
		return nil
	}
	return t.Files.Run(ctx)
}

// Config returns a server configuration. It always uses the latest contents of the files.
func (t *TLS) Config() *tls.Config {
	out := t.current.Load().Clone()
	out.GetConfigForClient = func(*tls.ClientHelloInfo) (*tls.Config, error) { return t.current.Load(), nil }
	return out
}

// Certificate returns the gateway's certificate.
func (t *TLS) Certificate() *x509.Certificate { return t.current.Load().Certificates[0].Leaf }

// clientTLS returns a client configuration that trusts only the CAs in a PEM file; nil if the path is empty.
func clientTLS(path string) (*tls.Config, error) {
	if path == "" {
		return nil, nil
	}
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular(): // a pipe may never end
		return nil, fmt.Errorf("%s is no regular file", path)
	}
	content, _, err := (&Files{Most: certificate.MaxBytes}).readOne(path)
	if err != nil {
		return nil, err
	}
	roots, err := certificate.Authorities(certificate.File{Path: path, Content: content})
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil
}
