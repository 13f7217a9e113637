// Package certificate reads PEM files with certificates, keys and certificate authorities. It also
// finds when certificates expire.
package certificate

import (
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"time"
)

// MaxBytes is the maximum size of a file of certificates, in bytes.
const MaxBytes = 1 << 20

// File is a file that was read. Errors have its path.
type File struct {
	Path    string
	Content []byte
}

// Pair returns a certificate with its chain and its key. cert and key are the PEM files.
func Pair(cert, key File) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(cert.Content, key.Content)
	if err != nil {
		return pair, fmt.Errorf("%s and %s: %w", cert.Path, key.Path, err)
	}
	return pair, nil
}

// AddAuthorities adds the certificates in a file to a pool. It returns an error if the file has none.
func AddAuthorities(to *x509.CertPool, file File) error {
	if !to.AppendCertsFromPEM(file.Content) {
		return fmt.Errorf("%s: there is no certificate (PEM) in it", file.Path)
	}
	return nil
}

// Authorities returns a pool with the certificates in a file. It returns an error if the file has none.
func Authorities(file File) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	return pool, AddAuthorities(pool, file)
}

// Parse returns the certificates in a file. Like [AddAuthorities], it leaves out certificates that cannot be parsed.
func Parse(content []byte) (out []*x509.Certificate) {
	for block, rest := pem.Decode(content); block != nil; block, rest = pem.Decode(rest) {
		if block.Type != "CERTIFICATE" || len(block.Headers) > 0 {
			continue
		}
		if one, err := x509.ParseCertificate(block.Bytes); err == nil {
			out = append(out, one)
		}
	}
	return out
}

// NextEnd returns the time at which the next valid certificate expires. If all certificates have expired, it returns
// the time at which the last one did. Without certificates it returns the zero time.
func NextEnd(of []*x509.Certificate, now time.Time) time.Time {
	var next, last time.Time
	for _, one := range of {
		end := one.NotAfter
		if end.After(last) {
			last = end
		}
		if end.After(now) && (next.IsZero() || end.Before(next)) {
			next = end
		}
	}
	if next.IsZero() {
		return last
	}
	return next
}

// Check returns an error if a certificate is not valid at the time now.
func Check(one *x509.Certificate, now time.Time) error {
	switch {
	case now.After(one.NotAfter):
		return fmt.Errorf("the certificate has expired at %s", one.NotAfter.UTC().Format(time.RFC3339))
	case now.Before(one.NotBefore):
		return fmt.Errorf("the certificate is not valid before %s", one.NotBefore.UTC().Format(time.RFC3339))
	}
	return nil
}
