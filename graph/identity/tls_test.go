package identity_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/identity"
)

// newCertificate returns a certificate with its key that has signed itself, and both as PEM.
func newCertificate(t *testing.T, name string) (*x509.Certificate, string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour)}
	raw, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	if c, err = x509.ParseCertificate(raw); err != nil {
		t.Fatal(err)
	}
	text := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: raw})
	return c, string(append(text, pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: secret})...))
}

func TestTLS_ARemovedAuthorityEndsItsCertificates(t *testing.T) {
	folder := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		own, clients := filepath.Join(folder, "own"), filepath.Join(folder, "clients")
		_, text := newCertificate(t, "localhost")
		writeFile(t, own, text, 0o600)
		one, first := newCertificate(t, "one")
		_, second := newCertificate(t, "two")
		writeFile(t, clients, first, 0o600)
		files, err := identity.OpenTLS(t.Context(), identity.Certificates{Cert: own, Key: own, ClientCA: clients}, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		go func() { _ = files.Run(t.Context()) }()
		a := identity.Authenticator{Certificates: true, TLS: files}
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		worker := &x509.Certificate{Subject: pkix.Name{CommonName: "worker"}, NotAfter: time.Now().Add(time.Hour)}
		r.TLS = &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{worker, one}}}
		id, err := a.Request(r)
		if err != nil || id == nil || id.Name != "cert:worker" {
			t.Fatalf("%v %v", id, err)
		}
		lifetime, end := id.Lifetime(t.Context())
		defer end()
		writeFile(t, clients, first+second, 0o600)
		time.Sleep(2 * time.Second)
		if id, err := a.Request(r); err != nil || id == nil || lifetime.Err() != nil {
			t.Errorf("when there is another authority: %v %v, %v", id, err, lifetime.Err())
		}
		writeFile(t, clients, second, 0o600)
		time.Sleep(2 * time.Second)
		if id, err := a.Request(r); err != nil || id != nil {
			t.Errorf("when its authority is removed: %v %v", id, err)
		}
		if got := context.Cause(lifetime); got == nil || got.Error() != "the credential was revoked" {
			t.Errorf("what was open ends with %v", got)
		}
	})
}
