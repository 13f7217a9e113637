package gateway

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
	"github.com/sluicegw/sluice/cmd/sluice/config"
)

// writeCertificate writes a certificate that is its own authority, and its key, and returns their paths.
func writeCertificate(t *testing.T, dir, name string) (cert, key string) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber:          big.NewInt(1),
		Subject:               pkix.Name{CommonName: name},
		NotBefore:             time.Now().Add(-time.Hour),
		NotAfter:              time.Now().Add(time.Hour),
		IsCA:                  true,
		BasicConstraintsValid: true,
		IPAddresses:           []net.IP{net.IPv4(127, 0, 0, 1)},
		ExtKeyUsage:           []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	raw, err := x509.CreateCertificate(rand.Reader, template, template, &private.PublicKey, private)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	cert, key = filepath.Join(dir, name+".pem"), filepath.Join(dir, name+"-key.pem")
	for path, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: raw}, key: {Type: "PRIVATE KEY", Bytes: secret},
	} {
		if err := os.WriteFile(path, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, key
}

func TestOwners_ShowTheCertificateThatIsInTheFileNow(t *testing.T) {
	dir := t.TempDir()
	serverCert, serverKey := writeCertificate(t, dir, "teams")
	pair, err := tls.LoadX509KeyPair(serverCert, serverKey)
	if err != nil {
		t.Fatal(err)
	}
	shown := make(chan string, 1)
	service := remote.Handler(ownertest.New("teams", ownertest.Full("Team")))
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shown <- r.TLS.PeerCertificates[0].Subject.CommonName
		service.ServeHTTP(w, r)
	}))
	s.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAnyClientCert}
	s.StartTLS()
	defer s.Close()

	cert, key := writeCertificate(t, dir, "before")
	ownerClients, err := openOwners(t.Context(), config.Services{
		"teams": {Address: s.URL, CA: serverCert, Cert: cert, Key: key},
	}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	defer ownerClients.clients["teams"].Close()
	for _, want := range []string{"before", "after"} {
		if _, err := ownerClients.services()["teams"].Describe(t.Context()); err != nil {
			t.Fatal(err)
		}
		if got := <-shown; got != want {
			t.Errorf("the service is shown the certificate of %s, not %s", got, want)
		}
		newCert, newKey := writeCertificate(t, t.TempDir(), "after")
		for from, to := range map[string]string{newCert: cert, newKey: key} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := ownerClients.files[0].Open(t.Context()); err != nil { // as Run does once they have changed
			t.Fatal(err)
		}
	}
}

func TestOwners_SayWhichFileOfWhichServiceIsWrong(t *testing.T) {
	dir := t.TempDir()
	cert, _ := writeCertificate(t, dir, "a")
	_, otherKey := writeCertificate(t, dir, "b")
	empty := filepath.Join(dir, "empty.pem")
	if err := os.WriteFile(empty, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := openOwners(t.Context(), config.Services{
		"a": {Address: "https://a", CA: filepath.Join(dir, "none.pem")},
		"b": {Address: "https://b", CA: empty},
		"c": {Address: "https://c", Cert: cert, Key: otherKey},
		"d": {Address: "http://d"},
	}, zap.NewNop())
	if err == nil {
		t.Fatal("all is well")
	}
	lines := strings.Split(err.Error(), "\n")
	for i, says := range []string{
		"services: a: open ",
		"services: b: " + empty + ": there is no certificate (PEM) in it",
		"services: c: " + cert + " and ",
	} {
		if len(lines) != 3 || !strings.HasPrefix(lines[i], says) {
			t.Fatalf("line %d of\n%v", i+1, err)
		}
	}
}
