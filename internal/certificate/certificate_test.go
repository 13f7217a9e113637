package certificate_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/internal/certificate"
)

var now = time.Date(2026, 11, 27, 12, 0, 0, 0, time.UTC)

// issue returns a certificate that ends after a while, and its key, as files.
func issue(t *testing.T, ends time.Duration) (cert, key certificate.File) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotBefore: now.Add(-48 * time.Hour), NotAfter: now.Add(ends)}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert = certificate.File{Path: "a.crt", Content: pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})}
	key = certificate.File{Path: "a.key", Content: pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})}
	return cert, key
}

func TestPair_NamesTheFilesThatDoNotBelongTogether(t *testing.T) {
	cert, key := issue(t, time.Hour)
	_, other := issue(t, time.Hour)
	if pair, err := certificate.Pair(cert, key); err != nil || pair.Leaf == nil {
		t.Errorf("%v", err)
	}
	for says, pair := range map[string][2]certificate.File{
		"private key does not match": {cert, other},
		"failed to find any PEM":     {cert, {Path: "a.key"}},
		"failed to find certificate": {key, key},
	} {
		_, err := certificate.Pair(pair[0], pair[1])
		if err == nil || !strings.Contains(err.Error(), says) || !strings.HasPrefix(err.Error(), pair[0].Path+" and a.key: ") {
			t.Errorf("%v, want %s", err, says)
		}
	}
}

func TestAuthorities_NeedACertificate(t *testing.T) {
	cert, key := issue(t, time.Hour)
	if pool, err := certificate.Authorities(cert); err != nil || pool.Equal(x509.NewCertPool()) {
		t.Errorf("%v", err)
	}
	for _, content := range [][]byte{nil, []byte("text"), key.Content} {
		if _, err := certificate.Authorities(certificate.File{Path: "ca.pem", Content: content}); err == nil ||
			err.Error() != "ca.pem: there is no certificate (PEM) in it" {
			t.Errorf("%v", err)
		}
	}
}

func TestNextEnd_IsThatOfAValidCertificateIfThereIsOne(t *testing.T) {
	const day = 24 * time.Hour
	for name, c := range map[string]struct {
		ends []time.Duration
		want time.Duration
	}{
		"one":                     {[]time.Duration{day}, day},
		"the next one":            {[]time.Duration{3 * day, day, 2 * day}, day},
		"not one that has ended":  {[]time.Duration{-day, 2 * day}, 2 * day},
		"the last if all have":    {[]time.Duration{-day, -time.Hour}, -time.Hour},
		"one that ends right now": {[]time.Duration{0}, 0},
	} {
		var content []byte
		for _, ends := range c.ends {
			cert, key := issue(t, ends)
			content = slices.Concat(content, []byte("a comment\n"), cert.Content, key.Content)
		}
		all := certificate.Parse(content)
		if len(all) != len(c.ends) {
			t.Errorf("%s: %d certificates", name, len(all))
		}
		if got := certificate.NextEnd(all, now); !got.Equal(now.Add(c.want)) {
			t.Errorf("%s: %v", name, got)
		}
	}
	if got := certificate.NextEnd(certificate.Parse([]byte("nothing")), now); !got.IsZero() {
		t.Errorf("without certificates: %v", got)
	}
}

func TestCheck_SaysWhenACertificateIsValid(t *testing.T) {
	cert, _ := issue(t, time.Hour)
	one := certificate.Parse(cert.Content)[0]
	for at, says := range map[time.Time]string{
		now:                      "",
		now.Add(2 * time.Hour):   "has expired at 2026-11-27T13:00:00Z",
		now.Add(-72 * time.Hour): "is not valid before 2026-11-25T12:00:00Z",
	} {
		err := certificate.Check(one, at)
		if (err == nil) != (says == "") || err != nil && !strings.Contains(err.Error(), says) {
			t.Errorf("at %v: %v", at, err)
		}
	}
}
