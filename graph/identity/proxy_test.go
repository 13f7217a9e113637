package identity_test

import (
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/identity"
)

// certificate returns the state of a connection with a verified client certificate.
func certificate(name string, organizations []string, end time.Time, uris ...string) *tls.ConnectionState {
	c := &x509.Certificate{Subject: pkix.Name{CommonName: name, Organization: organizations}, NotAfter: end}
	for _, one := range uris {
		u, err := url.Parse(one)
		if err != nil {
			panic(err)
		}
		c.URIs = append(c.URIs, u)
	}
	return &tls.ConnectionState{VerifiedChains: [][]*x509.Certificate{{c}}, PeerCertificates: []*x509.Certificate{c}}
}

func TestProxy_TheHeadersOfATrustedProxyNameTheUserAndNobodyElses(t *testing.T) {
	proxies, err := identity.ParseProxies([]string{"10.1.0.0/16", "192.0.2.7", "::1", "cert:edge", "cert:spiffe://example.org/edge"})
	if err != nil {
		t.Fatal(err)
	}
	a := identity.Authenticator{Proxies: proxies, Certificates: true}
	later := time.Now().Add(time.Hour)
	unverified := certificate("edge", nil, later)
	unverified.VerifiedChains = nil
	for name, c := range map[string]struct {
		from   string
		tls    *tls.ConnectionState
		header http.Header
		want   string // the user and groups, or the error
	}{
		"a proxy by its network":                   {"10.1.2.3:555", nil, http.Header{"X-Forwarded-User": {"bob"}, "X-Forwarded-Groups": {"a, b", "c"}}, "proxy:bob proxy:a proxy:b proxy:c"},
		"a proxy by its address":                   {"192.0.2.7:1", nil, http.Header{"X-Forwarded-User": {"bob"}}, "proxy:bob"},
		"a proxy by IPv4 in IPv6":                  {"[::ffff:192.0.2.7]:1", nil, http.Header{"X-Forwarded-User": {"bob"}}, "proxy:bob"},
		"a proxy by IPv6":                          {"[::1]:1", nil, http.Header{"X-Forwarded-User": {"bob"}}, "proxy:bob"},
		"a proxy by its certificate":               {"203.0.113.9:1", certificate("edge", nil, later), http.Header{"X-Forwarded-User": {"bob"}}, "proxy:bob"},
		"a certificate that is not verified":       {"203.0.113.9:1", unverified, http.Header{"X-Forwarded-User": {"bob"}}, "nobody"},
		"another certificate":                      {"203.0.113.9:1", certificate("worker", []string{"ops"}, later), http.Header{"X-Forwarded-User": {"bob"}}, "cert:worker cert:ops"},
		"a proxy that names nobody":                {"203.0.113.9:1", certificate("edge", nil, later), http.Header{}, "nobody"},
		"a proxy by its address that names nobody": {"10.1.2.3:1", certificate("front", nil, later), http.Header{}, "nobody"},
		"an address that is not trusted":           {"203.0.113.9:1", nil, http.Header{"X-Forwarded-User": {"root"}}, "nobody"},
		"a forwarded address that is trusted":      {"203.0.113.9:1", nil, http.Header{"X-Forwarded-User": {"root"}, "X-Forwarded-For": {"10.1.2.3"}}, "nobody"},
		"an empty user":                            {"10.1.2.3:1", nil, http.Header{"X-Forwarded-User": {""}}, "the name of the user is empty"},
		"two users":                                {"10.1.2.3:1", nil, http.Header{"X-Forwarded-User": {"a", "b"}}, "one X-Forwarded-User header is accepted"},
		"a user with a line break":                 {"10.1.2.3:1", nil, http.Header{"X-Forwarded-User": {"a\nb"}}, "the name of the user has a character that is not printable, or is not UTF-8"},
		"too many groups":                          {"10.1.2.3:1", nil, http.Header{"X-Forwarded-User": {"a"}, "X-Forwarded-Groups": {strings.Repeat("g,", 257)}}, "the user is in more than the 256 groups that are accepted"},
		"a SPIFFE certificate":                     {"203.0.113.9:1", certificate("worker", nil, later, "spiffe://example.org/w"), http.Header{}, "cert:spiffe://example.org/w"},
		"a SPIFFE certificate of a proxy":          {"203.0.113.9:1", certificate("", nil, later, "spiffe://example.org/edge"), http.Header{"X-Forwarded-User": {"bob"}}, "proxy:bob"},
		"a common name like a proxy's URI":         {"203.0.113.9:1", certificate("spiffe://example.org/edge", nil, later), http.Header{"X-Forwarded-User": {"root"}}, "the name of the user is empty"},
		"a common name like a URI":                 {"203.0.113.9:1", certificate("spiffe://example.org/w", nil, later), http.Header{}, "the name of the user is empty"},
		"a certificate without a name":             {"203.0.113.9:1", certificate("", nil, later), http.Header{}, "the name of the user is empty"},
		"a certificate that has expired":           {"203.0.113.9:1", certificate("worker", nil, time.Now().Add(-time.Second)), http.Header{}, "the credential has expired"},
		"two credentials":                          {"203.0.113.9:1", nil, http.Header{"Authorization": {"Bearer a", "Bearer b"}}, "one Authorization header is accepted"},
		"no credential":                            {"203.0.113.9:1", nil, http.Header{}, "nobody"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr, r.TLS, r.Header = c.from, c.tls, c.header
		got := "nobody"
		id, err := a.Request(r)
		if id != nil {
			got = strings.Join(append([]string{id.Name}, id.Groups...), " ")
		}
		if err != nil {
			got = err.Error()
		}
		if got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
	}
}

func TestProxy_TheAddressOfAClientIsWhatTrustedProxiesSay(t *testing.T) {
	proxies, err := identity.ParseProxies([]string{"10.0.0.0/8"})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ from, forwarded, want string }{
		{"203.0.113.9:1", "", "203.0.113.9"},
		{"203.0.113.9:1", "198.51.100.1", "203.0.113.9"},
		{"10.0.0.1:1", "198.51.100.1", "198.51.100.1"},
		{"10.0.0.1:1", "192.0.2.1, 198.51.100.1, 10.0.0.2", "198.51.100.1"},
		{"10.0.0.1:1", "garbage", "10.0.0.1"},
		{"10.0.0.1:1", "fe80::1%eth0\tforged", "fe80::1"},
		{"10.0.0.1:1", "", "10.0.0.1"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.RemoteAddr = c.from
		r.Header.Set("X-Forwarded-For", c.forwarded)
		if got := proxies.Address(r).String(); got != c.want {
			t.Errorf("%v: %s", c, got)
		}
	}
}

func TestProxy_AProxyThatCannotBeMeantIsRefused(t *testing.T) {
	if _, err := identity.ParseProxies([]string{"10.0.0.1", "proxy.example.com", "cert:", "10.0.0.0/40"}); err == nil || strings.Count(err.Error(), "\n") != 2 {
		t.Error(err)
	}
}
