package main

import (
	"encoding/json"
	"maps"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/oidc"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// control serves the requests with which a test controls the provider:
//
//	POST /mint     returns a signed token for the claims in the body, see [order]
//	POST /rotate   makes a new key; ?keep=true leaves the old ones published, ?alg=ES256 changes the algorithm
//	POST /set      ?clock=5m sets the clock ahead, ?lifetime=10s sets the lifetime of later tokens
//	GET  /fetches  returns the numbers of requests for discovery and for keys
type control struct {
	issuer  string
	store   *store
	fetches *fetches
}

func (c *control) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /mint", c.mint)
	mux.HandleFunc("POST /rotate", c.rotate)
	mux.HandleFunc("POST /set", c.set)
	mux.HandleFunc("GET /fetches", func(w http.ResponseWriter, _ *http.Request) {
		_ = json.NewEncoder(w).Encode(map[string]int64{"discovery": c.fetches.discovery.Load(), "keys": c.fetches.keys.Load()})
	})
	return mux
}

// order describes a token for POST /mint.
type order struct {
	User     string `json:"user"`
	Audience string `json:"audience"`
	// Lifetime has the form of [time.ParseDuration]. Default: the lifetime of all
	// tokens.
	Lifetime string `json:"lifetime"`
	// Claims replace the claims of the token. A null removes a claim.
	Claims map[string]any `json:"claims"`
}

func (c *control) mint(w http.ResponseWriter, r *http.Request) {
	var o order
	if err := json.NewDecoder(r.Body).Decode(&o); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	c.store.mu.Lock()
	lifetime, now := c.store.lifetime, time.Now().Add(c.store.clock)
	c.store.mu.Unlock()
	if o.Lifetime != "" {
		var err error
		if lifetime, err = time.ParseDuration(o.Lifetime); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	}
	all := claims(o.User)
	maps.Copy(all, map[string]any{
		"iss": c.issuer, "sub": o.User, "aud": o.Audience,
		"iat": now.Unix(), "nbf": now.Unix(), "exp": now.Add(lifetime).Unix(),
	})
	maps.Copy(all, o.Claims)
	maps.DeleteFunc(all, func(_ string, value any) bool { return value == nil })
	token, err := sign(c.store.keys.current(), all)
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	_, _ = w.Write([]byte(token))
}

func sign(key signingKey, claims map[string]any) (string, error) {
	signer, err := op.SignerFromKey(key)
	if err != nil {
		return "", err
	}
	payload, err := json.Marshal(claims)
	if err != nil {
		return "", err
	}
	signed, err := signer.Sign(payload)
	if err != nil {
		return "", err
	}
	return signed.CompactSerialize()
}

func (c *control) rotate(w http.ResponseWriter, r *http.Request) {
	alg := jose.SignatureAlgorithm(r.FormValue("alg"))
	if alg == "" {
		alg = jose.RS256
	}
	if err := c.store.keys.rotate(alg, r.FormValue("keep") == "true"); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
	}
}

func (c *control) set(w http.ResponseWriter, r *http.Request) {
	c.store.mu.Lock()
	defer c.store.mu.Unlock()
	for name, to := range map[string]*time.Duration{"clock": &c.store.clock, "lifetime": &c.store.lifetime} {
		text := r.FormValue(name)
		if text == "" {
			continue
		}
		d, err := time.ParseDuration(text)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		*to = d
	}
}

// fetches counts the requests for the discovery document and for the keys.
type fetches struct {
	next            http.Handler
	discovery, keys atomic.Int64
}

func (f *fetches) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	switch {
	case strings.HasSuffix(r.URL.Path, oidc.DiscoveryEndpoint):
		f.discovery.Add(1)
	case r.URL.Path == op.DefaultEndpoints.JwksURI.Relative():
		f.keys.Add(1)
	}
	f.next.ServeHTTP(w, r)
}
