package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"

	"github.com/go-jose/go-jose/v4"
	"github.com/zitadel/oidc/v3/pkg/op"
)

// keyring has the signing keys. The first key signs. All keys are published.
type keyring struct {
	path string // "" keeps them in memory alone

	mu   sync.Mutex // guards keys
	keys []jose.JSONWebKey
}

// openKeyring reads the keys that an earlier process has stored. If there are none, it
// makes a key.
func openKeyring(path string) (*keyring, error) {
	k := &keyring{path: path}
	if path == "" {
		return k, k.rotate(jose.RS256, false)
	}
	raw, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return k, k.rotate(jose.RS256, false)
	}
	if err != nil {
		return nil, err
	}
	var set jose.JSONWebKeySet
	if err := json.Unmarshal(raw, &set); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	k.keys = set.Keys
	return k, nil
}

// rotate makes a new key, which signs from now on. If keep is true, the old keys remain
// published.
func (k *keyring) rotate(alg jose.SignatureAlgorithm, keep bool) error {
	var private crypto.Signer
	var err error
	switch alg {
	case jose.RS256:
		private, err = rsa.GenerateKey(rand.Reader, 2048)
	case jose.ES256:
		private, err = ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	default:
		err = fmt.Errorf("algorithm %q; RS256 and ES256 are accepted", alg)
	}
	if err != nil {
		return err
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	keys := []jose.JSONWebKey{{Key: private, KeyID: rand.Text(), Algorithm: string(alg), Use: "sig"}}
	if keep {
		keys = append(keys, k.keys...)
	}
	k.keys = keys
	if k.path == "" {
		return nil
	}
	raw, err := json.Marshal(jose.JSONWebKeySet{Keys: keys})
	if err != nil {
		return err
	}
	return os.WriteFile(k.path, raw, 0o600)
}

// current returns the key that signs.
func (k *keyring) current() signingKey {
	k.mu.Lock()
	defer k.mu.Unlock()
	return signingKey{k.keys[0]}
}

// published returns the keys with which signatures can be verified.
func (k *keyring) published() []op.Key {
	k.mu.Lock()
	defer k.mu.Unlock()
	out := make([]op.Key, len(k.keys))
	for i, key := range k.keys {
		out[i] = publicKey{key}
	}
	return out
}

// signingKey implements [op.SigningKey].
type signingKey struct{ key jose.JSONWebKey }

var _ op.SigningKey = signingKey{}

func (s signingKey) ID() string { return s.key.KeyID }

func (s signingKey) Key() any { return s.key.Key }

func (s signingKey) SignatureAlgorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(s.key.Algorithm)
}

// publicKey implements [op.Key].
type publicKey struct{ key jose.JSONWebKey }

var _ op.Key = publicKey{}

func (p publicKey) ID() string { return p.key.KeyID }

func (p publicKey) Use() string { return p.key.Use }

func (p publicKey) Key() any { return p.key.Public().Key }

func (p publicKey) Algorithm() jose.SignatureAlgorithm {
	return jose.SignatureAlgorithm(p.key.Algorithm)
}
