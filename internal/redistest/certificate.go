package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"
)

// The files of a server with [TLS], in its folder.
const (
	caFile         = "ca.crt"
	serverCertFile = "server.crt"
	serverKeyFile  = "server.key"
	clientCertFile = "client.crt"
	clientKeyFile  = "client.key"
)

// TLSFiles has the files for a client of a server with [TLS].
type TLSFiles struct {
	// CA is the certificate of the CA that has signed the server's certificate. Cert and Key are a client certificate
	// and its key. All three are paths of PEM files.
	CA, Cert, Key string
	// Config trusts the CA and has no client certificate.
	Config *tls.Config
}

// issuer signs certificates.
type issuer struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writeCertificates writes a CA certificate to a folder, and the certificates of a server and a client that the CA has
// signed.
func writeCertificates(dir string) (*TLSFiles, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	ca := issuer{key: key, cert: &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "redistest CA"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(24 * time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}}
	der, err := x509.CreateCertificate(rand.Reader, ca.cert, ca.cert, &key.PublicKey, key)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	if err := writePEM(filepath.Join(dir, caFile), "CERTIFICATE", der); err != nil {
		return nil, err
	}
	if err := ca.issue(dir, 2, serverCertFile, serverKeyFile); err != nil {
		return nil, err
	}
	if err := ca.issue(dir, 3, clientCertFile, clientKeyFile); err != nil {
		return nil, err
	}
	root, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificates: %w", err)
	}
	pool := x509.NewCertPool()
	pool.AddCert(root)
	return &TLSFiles{
		CA: filepath.Join(dir, caFile), Cert: filepath.Join(dir, clientCertFile), Key: filepath.Join(dir, clientKeyFile),
		Config: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12},
	}, nil
}

// issue writes a certificate for 127.0.0.1 and its key. Servers and clients can use the certificate.
func (i issuer) issue(dir string, serial int64, certFile, keyFile string) error {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	der, err := x509.CreateCertificate(rand.Reader, &x509.Certificate{
		SerialNumber: big.NewInt(serial), Subject: pkix.Name{CommonName: certFile},
		NotBefore: i.cert.NotBefore, NotAfter: i.cert.NotAfter,
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, DNSNames: []string{"localhost"},
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{
			x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth,
		},
	}, i.cert, &key.PublicKey, i.key)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	if err := writePEM(filepath.Join(dir, keyFile), "PRIVATE KEY", private); err != nil {
		return err
	}
	return writePEM(filepath.Join(dir, certFile), "CERTIFICATE", der)
}

func writePEM(path, block string, der []byte) error {
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: block, Bytes: der}), 0o600); err != nil {
		return fmt.Errorf("certificates: %w", err)
	}
	return nil
}
