package remote_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

// longEnough is a timeout of calls that are answered.
const longEnough = time.Minute

// eachProtocol runs a test with each protocol.
func eachProtocol(t *testing.T, test func(t *testing.T, protocol remote.Protocol)) {
	for _, protocol := range remote.Protocols() {
		t.Run(string(protocol), func(t *testing.T) { test(t, protocol) })
	}
}

// newTeams returns a service with the kind Team.
func newTeams() *ownertest.Service { return ownertest.New("teams", ownertest.Full("Team")) }

func team(name string) backend.Key { return backend.Key{Kind: "Team", Namespace: "eu", Name: name} }

// serve serves a handler without TLS, over HTTP/1 and HTTP/2, and returns its address.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewUnstartedServer(h)
	s.Config.Protocols = new(http.Protocols)
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	t.Cleanup(s.Close)
	return s.URL
}

// connect returns a client, which is closed at the end of the test.
func connect(t *testing.T, cfg remote.Config) *remote.Client {
	t.Helper()
	if cfg.Name == "" {
		cfg.Name = "teams"
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = longEnough
	}
	c, err := remote.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// connectTo serves a service and connects to it.
func connectTo(t *testing.T, service owner.Service, protocol remote.Protocol) *remote.Client {
	t.Helper()
	return connect(t, remote.Config{Address: serve(t, remote.Handler(service)), Protocol: protocol})
}

// replying is a service that answers each call with the same JSON, and with the status 200.
func replying(body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, body)
	})
}

// hangUp is a service that closes the connection in the place of each answer.
func hangUp(w http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body)
	panic(http.ErrAbortHandler)
}

// ignore is a service that does not answer until the client gives up.
func ignore(_ http.ResponseWriter, r *http.Request) {
	_, _ = io.Copy(io.Discard, r.Body) // else the server does not notice that the client has gone
	<-r.Context().Done()
}

// authority is a CA.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

func newAuthority(t *testing.T) authority {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: "authority"},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		KeyUsage:              x509.KeyUsageCertSign,
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &key.PublicKey, key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(raw)
	if err != nil {
		t.Fatal(err)
	}
	return authority{cert, key}
}

// issue returns a certificate of a server at 127.0.0.1 and of a client.
func (a authority) issue(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(2),
		Subject:      pkix.Name{CommonName: name},
		NotBefore:    time.Now().Add(-time.Hour),
		NotAfter:     time.Now().Add(time.Hour),
		IPAddresses:  []net.IP{net.IPv4(127, 0, 0, 1)},
		DNSNames:     []string{name},
		ExtKeyUsage:  []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, a.cert, &key.PublicKey, a.key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{raw}, PrivateKey: key}
}

func (a authority) pool() *x509.CertPool {
	pool := x509.NewCertPool()
	pool.AddCert(a.cert)
	return pool
}
