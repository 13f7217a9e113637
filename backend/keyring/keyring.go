// Package keyring encrypts the records with sensitive values, so that a store, its files and its backups do not have
// these values in plain form. A keyring has several keys, each with an id. The first key encrypts and all keys decrypt.
// Thus keys can be replaced one by one.
package keyring

import (
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"regexp"

	"github.com/sluicegw/sluice/backend"
)

// KeyBytes is the length of an encryption key, in bytes.
const KeyBytes = 32

// MaxKeys is the maximum number of keys of a keyring.
const MaxKeys = 32

// The form of an encrypted body: the codec byte, the version of the form, the length of the key's id, the id, a salt,
// and the output of AES-256-GCM, which is a nonce, the encrypted text and a tag.
//
// Each body is encrypted with a different key, which HKDF with SHA-256 (RFC 5869) derives from the encryption key and
// the salt. So any number of bodies can be encrypted. The bytes before the nonce, the key of the record and the uid of
// the resource are authenticated. Therefore a body cannot be moved to another record.
const (
	form      byte = 1
	saltBytes      = 16
	purpose        = "sluice sensitive values"
)

// idForm matches the id of a key.
var idForm = regexp.MustCompile(`^[A-Za-z0-9][-._A-Za-z0-9]{0,62}$`)

// Key is an encryption key. Its id has 1 to 63 letters, digits, '-', '_' and '.', and begins with a letter or digit.
type Key struct {
	ID     string
	Secret [KeyBytes]byte
}

// String returns the id. The secret is left out, so that it does not get into a log.
func (k Key) String() string { return "key " + k.ID }

// GoString returns the same as String.
func (k Key) GoString() string { return k.String() }

// Keyring encrypts with its first key and decrypts with all. A nil Keyring has no keys and neither encrypts nor
// decrypts. A Keyring is safe for concurrent use.
type Keyring struct {
	keys []Key
	// plain is set if the keyring only decrypts.
	plain bool
	// wrapping maps the ids of keys that a KMS has wrapped to the ids of the KMS's keys.
	wrapping map[string]string
}

// Plain returns a keyring with the same keys that only decrypts. It is used to end encryption, or while other gateways
// of the store do not have the keys yet.
func (r *Keyring) Plain() *Keyring {
	return &Keyring{keys: r.keys, plain: true, wrapping: r.wrapping}
}

// New returns a keyring with at least one key. Neither two ids nor two keys may be equal.
func New(keys ...Key) (*Keyring, error) {
	if len(keys) == 0 || len(keys) > MaxKeys {
		return nil, fmt.Errorf("there are %d keys; 1 to %d are accepted", len(keys), MaxKeys)
	}
	for i, k := range keys {
		if !idForm.MatchString(k.ID) {
			return nil, fmt.Errorf("the id of key %d is malformed: at most 63 letters, digits, '-', '_' and '.' that begin with a letter or digit are wanted", i+1)
		}
		for j, o := range keys[:i] {
			if o.ID == k.ID {
				return nil, fmt.Errorf("keys %d and %d have the same id, %q", j+1, i+1, k.ID)
			}
			if o.Secret == k.Secret {
				return nil, fmt.Errorf("keys %q and %q are the same", o.ID, k.ID)
			}
		}
	}
	return &Keyring{keys: keys}, nil
}

// ID returns the id of the key that encrypts; empty if the keyring does not encrypt.
func (r *Keyring) ID() string {
	if r == nil || r.plain {
		return ""
	}
	return r.keys[0].ID
}

// WrappedOtherwise returns the ids of the keys that the KMS has wrapped with another key than kmsKey.
func (r *Keyring) WrappedOtherwise(kmsKey string) (ids []string) {
	if r == nil {
		return nil
	}
	for _, k := range r.keys {
		by, wrapped := r.wrapping[k.ID]
		if wrapped && by != kmsKey {
			ids = append(ids, k.ID)
		}
	}
	return ids
}

// Seal returns the stored form of a body: the encrypted body, or the body itself if the keyring does not encrypt. at is
// the key of the record, and uid is the uid of its resource.
func (r *Keyring) Seal(at backend.Key, uid string, body []byte) ([]byte, error) {
	if r == nil || r.plain {
		return body, nil
	}
	k := &r.keys[0]
	out := append(make([]byte, 0, 3+len(k.ID)+saltBytes+len(body)+64), backend.BodySealed, form, byte(len(k.ID)))
	out = append(out, k.ID...)
	salt := make([]byte, saltBytes)
	if _, err := rand.Read(salt); err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	out = append(out, salt...)
	aead, err := k.aead(salt)
	if err != nil {
		return nil, fmt.Errorf("seal: %w", err)
	}
	return aead.Seal(out, nil, body, bound(out, at, uid)), nil
}

// Open returns the body from its stored form. A body that is not encrypted is returned unchanged. at and uid must be as
// in the call of Seal. The error is an [Error] or wraps [backend.ErrUnreadable].
func (r *Keyring) Open(at backend.Key, uid string, stored []byte) ([]byte, error) {
	head, id, rest, err := parts(stored)
	if err != nil || head == nil {
		return stored, err
	}
	k := r.find(id)
	if k == nil {
		return nil, &Error{ID: id, Missing: true}
	}
	aead, err := k.aead(head[len(head)-saltBytes:])
	if err != nil {
		return nil, fmt.Errorf("open: %w", err)
	}
	body, err := aead.Open(nil, nil, rest, bound(head, at, uid))
	if err != nil {
		return nil, &Error{ID: id}
	}
	return body, nil
}

// Current reports whether a stored body has the form that Seal would give it now: encrypted with the first key, or not
// encrypted if the keyring does not encrypt.
func (r *Keyring) Current(stored []byte) bool {
	head, id, _, err := parts(stored)
	return err == nil && (head != nil) == (r.ID() != "") && id == r.ID()
}

// SealedWith returns the id of the key with which a stored body is encrypted; empty if the body is malformed or not
// encrypted.
func SealedWith(stored []byte) string {
	_, id, _, _ := parts(stored)
	return id
}

// parts splits an encrypted body into its head, the id of the key, and the rest. The head is the part that is
// authenticated but not encrypted. It is nil if the body is not encrypted.
func parts(stored []byte) (head []byte, id string, rest []byte, err error) {
	if len(stored) == 0 || stored[0] != backend.BodySealed {
		return nil, "", nil, nil
	}
	if len(stored) < 3 || stored[1] != form || len(stored) < 3+int(stored[2])+saltBytes {
		return nil, "", nil, fmt.Errorf("sealed body: unknown form: %w", backend.ErrUnreadable)
	}
	end := 3 + int(stored[2])
	id = string(stored[3:end])
	if !idForm.MatchString(id) {
		return nil, "", nil, fmt.Errorf("sealed body: malformed id: %w", backend.ErrUnreadable)
	}
	end += saltBytes
	return stored[:end:end], id, stored[end:], nil
}

// bound returns the bytes that are authenticated in addition to the body.
func bound(head []byte, at backend.Key, uid string) []byte {
	out := make([]byte, 0, len(head)+len(at.Kind)+len(at.Namespace)+len(at.Name)+len(uid)+32)
	return backend.AppendString(at.Append(append(out, head...)), uid)
}

func (r *Keyring) find(id string) *Key {
	if r != nil {
		for i := range r.keys {
			if r.keys[i].ID == id {
				return &r.keys[i]
			}
		}
	}
	return nil
}

// aead returns the cipher for the body with a salt.
func (k *Key) aead(salt []byte) (cipher.AEAD, error) {
	derived, err := hkdf.Key(sha256.New, k.Secret[:], salt, purpose, KeyBytes)
	if err != nil {
		return nil, err
	}
	block, err := aes.NewCipher(derived)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}

// Error is the error of a body that cannot be decrypted. It wraps [backend.ErrEncrypted].
type Error struct {
	// ID is the id of the key with which the body was encrypted.
	ID string
	// Missing reports whether the keyring does not have the key. Otherwise the body was changed or moved, or the
	// keyring has another key with the same id.
	Missing bool
}

// Error returns a message with the id of the key.
func (e *Error) Error() string {
	if e.Missing {
		return fmt.Sprintf("encrypted with key %q, which this gateway does not have", e.ID)
	}
	return fmt.Sprintf("cannot be decrypted with key %q: the record was changed, or the key is not the one that had this id", e.ID)
}

// Unwrap returns [backend.ErrEncrypted].
func (e *Error) Unwrap() error { return backend.ErrEncrypted }

// Detail returns the message, which may be shown to callers.
func (e *Error) Detail() string { return e.Error() }
