package identity

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/service/access"
)

// The headers with which a trusted proxy names the user and the groups. Groups are separated by commas.
const (
	UserHeader   = "X-Forwarded-User"
	GroupsHeader = "X-Forwarded-Groups"
)

// Proxies are the proxies that may name users in headers.
type Proxies []Proxy

// Proxy is a trusted proxy. It is recognized by its address or its client certificate.
type Proxy struct {
	Addresses netip.Prefix
	// Certificate is the name in the client certificate; empty if the proxy is recognized by its address.
	Certificate string
}

// ParseProxies parses a list of proxies. Each text is an IP address, a CIDR prefix, or "cert:" followed by the name in
// a client certificate. The error joins the errors of all invalid texts.
func ParseProxies(texts []string) (Proxies, error) {
	var out Proxies
	var errs []error
	for _, text := range texts {
		if name, ok := strings.CutPrefix(text, "cert:"); ok && name != "" {
			out = append(out, Proxy{Certificate: name})
			continue
		}
		prefix, err := netip.ParsePrefix(text)
		if addr, e := netip.ParseAddr(text); e == nil {
			prefix, err = netip.PrefixFrom(addr.Unmap(), addr.Unmap().BitLen()), nil
		}
		if err != nil {
			errs = append(errs, fmt.Errorf("trust-proxy: %q is no IP address, no CIDR prefix like 10.0.0.0/8, and not cert: with the name in a client certificate", text))
			continue
		}
		out = append(out, Proxy{Addresses: prefix.Masked()})
	}
	return out, errors.Join(errs...)
}

// NeedCertificates reports whether a proxy is recognized by its client certificate.
func (p Proxies) NeedCertificates() bool {
	return slices.ContainsFunc(p, func(one Proxy) bool { return one.Certificate != "" })
}

// trust reports whether a request was sent by a trusted proxy. certificate is the client certificate of the request, if
// it has one.
func (p Proxies) trust(r *http.Request, certificate *x509.Certificate) bool {
	if len(p) == 0 {
		return false
	}
	address := remote(r)
	return slices.ContainsFunc(p, func(one Proxy) bool {
		if one.Certificate != "" {
			return certificate != nil && subject(certificate) == one.Certificate
		}
		return one.Addresses.Contains(address)
	})
}

// Address returns the address of the client.
//
// If a trusted proxy has sent the request, Address reads X-Forwarded-For from the end. It returns the first address
// that does not belong to a trusted proxy. If all of them belong to one, it returns the address at the beginning. It
// does not look beyond a text that is not an address.
//
// For all other requests, Address returns the address of the connection.
func (p Proxies) Address(r *http.Request) netip.Addr {
	address := remote(r)
	if !p.trust(r, verified(r)) {
		return address
	}
	hops := strings.Split(strings.Join(r.Header.Values("X-Forwarded-For"), ","), ",")
	for _, hop := range slices.Backward(hops) {
		next, err := netip.ParseAddr(strings.TrimSpace(hop))
		if err != nil {
			break
		}
		address = next.Unmap().WithZone("") // any text can be a zone
		if !slices.ContainsFunc(p, func(one Proxy) bool { return one.Addresses.Contains(address) }) {
			break
		}
	}
	return address
}

// remote returns the address of the connection; the zero address if it has none.
func remote(r *http.Request) netip.Addr {
	host, _, err := net.SplitHostPort(r.RemoteAddr)
	if err != nil {
		return netip.Addr{}
	}
	address, _ := netip.ParseAddr(host)
	return address.Unmap().WithZone("")
}

// fromProxy returns the identity in the headers of a trusted proxy; nil if they name no user.
func fromProxy(h http.Header) (*access.Identity, error) {
	users, groups := h.Values(UserHeader), []string(nil)
	switch {
	case len(users) == 0:
		return nil, nil
	case len(users) > 1:
		return nil, invalid("one " + UserHeader + " header is accepted")
	}
	for one := range strings.SplitSeq(strings.Join(h.Values(GroupsHeader), ","), ",") {
		one = strings.TrimSpace(one)
		if one != "" {
			groups = append(groups, one)
		}
	}
	return newIdentity("proxy", users[0], groups, time.Time{})
}

func unprintable(r rune) bool { return r == utf8.RuneError || !unicode.IsPrint(r) }
