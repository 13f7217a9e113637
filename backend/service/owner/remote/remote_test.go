package remote_test

import (
	"crypto/tls"
	"errors"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/remote"
)

func TestConfig_RefusesWhatCannotBeAsked(t *testing.T) {
	for address, says := range map[string]string{
		"":                           "missing",
		"teams.example:8443":         "scheme",
		"ftp://teams.example":        "scheme",
		"https://":                   "host",
		"https://bob:x@host":         "user",
		"https://teams.example?a=b":  "query",
		"https://teams.example#part": "fragment",
		"http://[::1":                "no URL",
	} {
		_, err := remote.New(remote.Config{Name: "teams", Address: address})
		if err == nil || !strings.HasPrefix(err.Error(), "address: ") || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v", address, err)
		}
	}
	err := remote.Config{Address: "http://x", Protocol: "soap", Timeout: -1, InFlight: -1}.Validate()
	if n := strings.Count(err.Error(), "\n"); n != 3 {
		t.Errorf("%v", err)
	}
}

func TestConfig_KeepsThePathOfTheAddress(t *testing.T) {
	client := connect(t, remote.Config{Address: serve(t, replying(`{"service":"teams"}`)) + "/behind/a/proxy/"})
	if _, err := client.Describe(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestClient_ShowsItsCertificateAndTrustsOneAuthority(t *testing.T) {
	eachProtocol(t, func(t *testing.T, protocol remote.Protocol) {
		ours, other := newAuthority(t), newAuthority(t)
		s := httptest.NewUnstartedServer(remote.Handler(newTeams()))
		s.EnableHTTP2 = true
		s.TLS = &tls.Config{
			Certificates: []tls.Certificate{ours.issue(t, "teams")},
			ClientAuth:   tls.RequireAndVerifyClientCert,
			ClientCAs:    ours.pool(),
		}
		s.StartTLS()
		t.Cleanup(s.Close)

		gateway := []tls.Certificate{ours.issue(t, "gateway")}
		current := &tls.Config{RootCAs: ours.pool()}
		client := connect(t, remote.Config{
			Address: s.URL, Protocol: protocol, TLS: func() *tls.Config { return current },
		})
		ask := func() error {
			_, err := client.Describe(t.Context())
			return err
		}
		if err := ask(); err == nil {
			t.Error("a client without a certificate is served")
		}
		current = &tls.Config{RootCAs: other.pool(), Certificates: gateway}
		if err := ask(); !errors.Is(err, owner.ErrNotSent) {
			t.Errorf("a service of another authority: %v", err)
		}
		current = &tls.Config{RootCAs: ours.pool(), Certificates: gateway, ServerName: "billing"}
		if err := ask(); !errors.Is(err, owner.ErrNotSent) {
			t.Errorf("a service of another name: %v", err)
		}
		current = &tls.Config{RootCAs: ours.pool(), Certificates: gateway, ServerName: "teams"}
		if err := ask(); err != nil {
			t.Errorf("a new configuration is not used: %v", err)
		}
	})
}

func TestClient_SpeaksPlainHTTP1WithAStandardLibrary(t *testing.T) {
	service := httptest.NewServer(replying(`{"service":"teams","kinds":[{"kind":"Team","writes":true}],"later":1}`))
	t.Cleanup(service.Close)
	client := connect(t, remote.Config{Address: service.URL})
	d, err := client.Describe(t.Context())
	if err != nil || d.Service != "teams" || len(d.Kinds) != 1 || !d.Kinds[0].Writes {
		t.Errorf("%+v, %v", d, err)
	}
}
