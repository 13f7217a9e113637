package gateway

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/cmd/sluice/config"
)

func TestRedisTLS_ShowsTheCertificateThatIsInTheFileNow(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "before")
	security, err := openRedisTLS(t.Context(), config.Store{URL: "rediss://127.0.0.1:1", CA: cert, Cert: cert, Key: key}, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	client := security.config()
	for _, want := range []string{"before", "after"} {
		shown, err := client.GetClientCertificate(nil)
		if err != nil || shown.Leaf.Subject.CommonName != want {
			t.Errorf("the certificate of %s is shown, not that of %s: %v", shown.Leaf.Subject.CommonName, want, err)
		}
		newCert, newKey := writeCertificate(t, t.TempDir(), "after")
		for from, to := range map[string]string{newCert: cert, newKey: key} {
			if err := os.Rename(from, to); err != nil {
				t.Fatal(err)
			}
		}
		if err := security.watched()[0].Open(t.Context()); err != nil { // as Run does once they have changed
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(key, []byte("half"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := security.watched()[0].Open(t.Context()); err == nil || !strings.Contains(err.Error(), "redis-cert: "+cert+" and "+key) {
		t.Errorf("%v", err)
	}
	if shown, err := client.GetClientCertificate(nil); err != nil || shown.Leaf.Subject.CommonName != "after" {
		t.Errorf("a damaged file: %v", err)
	}
}

func TestRedisTLS_SaysWhenItsCertificatesEnd(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "gateway") // for an hour
	store := config.Store{URL: "rediss://127.0.0.1:1", CA: cert, Cert: cert, Key: key}
	security, err := openRedisTLS(t.Context(), store, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	shown := security.certificates()
	if len(shown) != 1 || shown[0].setting != "redis-cert" || shown[0].until().Before(now) {
		t.Errorf("%+v", shown)
	}
	if ends, found := security.authoritiesEnd(now); !found || !ends.Equal(shown[0].until()) {
		t.Errorf("the authorities end at %v, %t", ends, found)
	}
	if err := security.check(now); err != nil {
		t.Errorf("%v", err)
	}
	err = security.check(now.Add(2 * time.Hour))
	if err == nil || !strings.Contains(err.Error(), "redis-cert: "+cert+": the certificate has expired") ||
		!strings.Contains(err.Error(), "redis-ca: all its certificates have expired") {
		t.Errorf("%v", err)
	}
	store = config.Store{URL: store.URL}
	if security, err = openRedisTLS(t.Context(), store, zap.NewNop()); err != nil || len(security.certificates()) > 0 || security.config().RootCAs != nil {
		t.Errorf("without files: %v", err)
	}
	if _, found := security.authoritiesEnd(now); found {
		t.Error("the authorities of the system end")
	}
}

func TestRedisTLS_SaysAllThatIsWrong(t *testing.T) {
	dir := t.TempDir()
	cert, key := writeCertificate(t, dir, "a")
	absent := filepath.Join(dir, "none.pem")
	for _, c := range []struct {
		store config.Store
		says  []string
	}{
		{config.Store{URL: "rediss://a:1", CA: absent, Cert: cert, Key: absent}, []string{"redis-ca: ", "redis-cert: ", absent}},
		{config.Store{URL: "rediss://a:1", CA: key, Cert: cert}, []string{"redis-ca: " + key + ": there is no certificate", "redis-cert, redis-key: both"}},
		{config.Store{URL: "redis://a:1", CA: cert}, []string{"need a URL that begins with rediss"}},
		{config.Store{URL: "mysql://a:1"}, []string{"redis: "}},
	} {
		_, err := openRedisTLS(t.Context(), c.store, zap.NewNop())
		for _, want := range c.says {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%+v: %v, want %s", c.store, err, want)
			}
		}
	}
}
