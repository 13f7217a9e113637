package identity

import (
	"crypto/x509"
	"net/http"
	"strings"

	"github.com/sluicegw/sluice/backend/service/access"
)

// verified returns the client certificate that the TLS layer has verified; nil if there is none.
func verified(r *http.Request) *x509.Certificate {
	if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
		return nil
	}
	return r.TLS.VerifiedChains[0][0]
}

// subject returns the user of a certificate: its first URI (SPIFFE), otherwise its common name. A common name that
// looks like a URI is refused, because some authorities check URIs strictly but let users choose their common names.
func subject(c *x509.Certificate) string {
	switch {
	case len(c.URIs) > 0:
		return c.URIs[0].String()
	case strings.Contains(c.Subject.CommonName, "://"):
		return ""
	}
	return c.Subject.CommonName
}

// fromCertificate returns the identity of a verified client certificate. Its organizations are the groups.
func fromCertificate(c *x509.Certificate) (*access.Identity, error) {
	id, err := newIdentity("cert", subject(c), c.Subject.Organization, c.NotAfter)
	if err == nil {
		err = id.Err() // it may have expired since the connection was made
	}
	return id, err
}

// bind makes the identity end when the CA is removed, and returns the identity. a and id may be nil.
func (a *authority) bind(id *access.Identity) *access.Identity {
	if a != nil && id != nil {
		id.Revoked = a.removed
	}
	return id
}
