package keyring

import (
	"context"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
)

// plain is the word that turns encryption off if it precedes the first key.
const plain = "plain"

// wrappedPrefix precedes the base64 of a wrapped key.
const wrappedPrefix = "kms:"

// KMS is a key management service. It wraps keys: it encrypts them with a key that never leaves the service.
type KMS interface {
	// Wrap encrypts a key with the current key of the KMS.
	Wrap(ctx context.Context, secret []byte) (wrapped []byte, err error)
	// Unwrap decrypts a result of Wrap, even if the KMS has another current key now.
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
	// WrappingKeyID returns the id of the KMS's key with which Wrap has encrypted a key.
	WrappingKeyID(wrapped []byte) (string, error)
	// String returns a name of the KMS for errors, such as "the plugin at /run/kms/plugin.sock".
	String() string
}

// KMSError is an error of the KMS, in contrast to an error in the text with the keys.
type KMSError struct{ Err error }

// Error returns the message of Err.
func (e *KMSError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *KMSError) Unwrap() error { return e.Err }

// Parse parses keys, which are on separate lines or separated by commas. A key has one of two forms:
//
//	id:BASE64              the base64 of 32 bytes
//	id:kms:BASE64:CHECK    the base64 of a key that the KMS has wrapped, and the check value of the key
//
// The check value, with its colon, may be missing: earlier keys have none. The rest of a line after # is ignored. If
// the word plain precedes the first key, the keys only decrypt. kms may be nil; then a wrapped key is an error. If
// the KMS fails, the error is a [KMSError]. Errors contain no part of a key.
func Parse(ctx context.Context, text string, kms KMS) (*Keyring, error) {
	var keys []Key
	wrapping := map[string]string{}
	decrypts := false
	_, err := eachEntry(text, func(entry string) (string, error) {
		if entry == plain && len(keys) == 0 {
			decrypts = true
			return entry, nil
		}
		if len(keys) == MaxKeys {
			return "", fmt.Errorf("there are more than %d keys", MaxKeys)
		}
		written, err := parseEntry(entry)
		if err != nil {
			return "", err
		}
		k, err := written.key(ctx, kms)
		if err != nil {
			return "", err
		}
		keys = append(keys, k)
		if written.wrapped != nil {
			wrapping[k.ID], err = kms.WrappingKeyID(written.wrapped)
		}
		return entry, err
	})
	if err != nil {
		return nil, err
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key; write one as id:base64 of %d random bytes", KeyBytes)
	}
	r, err := New(keys...)
	if err != nil {
		return nil, err
	}
	r.wrapping = wrapping
	if decrypts {
		r = r.Plain()
	}
	return r, nil
}

// Wrap returns a text for [Parse] in which all keys are wrapped, and the number of keys that it has wrapped. current is
// the id of the key of the KMS that wraps them. Wrap changes the keys that were not wrapped, were wrapped with another
// key, or had no check value. The rest of the text is unchanged.
func Wrap(ctx context.Context, text string, kms KMS, current string) (out string, count int, err error) {
	if _, err := Parse(ctx, text, kms); err != nil {
		return "", 0, err
	}
	out, err = eachEntry(text, func(entry string) (string, error) {
		if entry == plain {
			return entry, nil
		}
		written, err := parseEntry(entry)
		if err != nil {
			return "", err
		}
		if written.wrapped != nil {
			by, err := kms.WrappingKeyID(written.wrapped)
			if err != nil || by == current && written.check != "" {
				return entry, err
			}
		}
		k, err := written.key(ctx, kms)
		if err != nil {
			return "", err
		}
		count++
		return k.Wrapped(ctx, kms)
	})
	return out, count, err
}

// Line returns the key, including the secret, in the form that [Parse] reads.
func (k Key) Line() string { return k.ID + ":" + base64.StdEncoding.EncodeToString(k.Secret[:]) }

// Wrapped returns the key, wrapped by the KMS, in the form that [Parse] reads. It checks that the KMS can unwrap the
// key, because otherwise everything encrypted with the key would be lost. The check value shows whether the KMS later
// unwraps another key. The key cannot be found out from the check value, because the key is random.
func (k Key) Wrapped(ctx context.Context, kms KMS) (string, error) {
	wrapped, err := kms.Wrap(ctx, k.Secret[:])
	if err != nil {
		return "", &KMSError{Err: fmt.Errorf("key %q: %w", k.ID, err)}
	}
	check, err := k.checkValue()
	if err != nil {
		return "", err
	}
	if _, err := (writtenKey{id: k.ID, wrapped: wrapped, check: check}).key(ctx, kms); err != nil {
		return "", err
	}
	return k.ID + ":" + wrappedPrefix + base64.StdEncoding.EncodeToString(wrapped) + ":" + check, nil
}

// checkBytes is the length of the check value of a key. The check value is derived from the key by HKDF, with
// checkPurpose and the id of the key as the info parameter.
const (
	checkBytes   = 8
	checkPurpose = "sluice check value of the key "
)

// checkValue returns the check value of the key in hexadecimal digits. It differs for another key, and for the same key
// with another id.
func (k Key) checkValue() (string, error) {
	value, err := hkdf.Key(sha256.New, k.Secret[:], nil, checkPurpose+k.ID, checkBytes)
	return hex.EncodeToString(value), err
}

// eachEntry calls the function replace for each key in a text, and for the word plain. It returns the text with the
// results in their places. Errors have the number of the key and its line.
func eachEntry(text string, replace func(entry string) (string, error)) (string, error) {
	lines := strings.Split(text, "\n")
	count := 0
	for n, line := range lines {
		written, comment, commented := strings.Cut(line, "#")
		entries := strings.Split(written, ",")
		for i, padded := range entries {
			entry := strings.TrimSpace(padded)
			if entry == "" {
				continue
			}
			replaced, err := replace(entry)
			if err != nil {
				return "", fmt.Errorf("key %d, line %d: %w", count+1, n+1, err)
			}
			entries[i] = strings.Replace(padded, entry, replaced, 1)
			if entry != plain {
				count++
			}
		}
		lines[n] = strings.Join(entries, ",")
		if commented {
			lines[n] += "#" + comment
		}
	}
	return strings.Join(lines, "\n"), nil
}

// writtenKey is a key as it is written in the text for [Parse].
type writtenKey struct {
	id string
	// Exactly one of secret and wrapped is set.
	secret, wrapped []byte
	// check is the check value of a wrapped key; empty if it is written without one.
	check string
}

func parseEntry(text string) (e writtenKey, err error) {
	id, secret, ok := strings.Cut(text, ":")
	if !ok {
		return e, errors.New("a key is written id:base64, and there is no colon")
	}
	e.id = strings.TrimSpace(id)
	if err := checkID(e.id); err != nil {
		return e, err
	}
	secret, isWrapped := strings.CutPrefix(strings.TrimSpace(secret), wrappedPrefix)
	if isWrapped {
		secret, e.check, _ = strings.Cut(secret, ":")
		e.check = strings.TrimSpace(e.check)
		if value, err := hex.DecodeString(e.check); e.check != "" && (err != nil || len(value) != checkBytes) {
			return e, fmt.Errorf("key %q has a check value, behind the last colon, that is not %d hexadecimal digits",
				e.id, 2*checkBytes)
		}
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	switch {
	case err != nil:
		return e, fmt.Errorf("key %q is not base64 with padding (RFC 4648 section 4)", e.id)
	case isWrapped && len(raw) == 0:
		return e, fmt.Errorf("key %q has nothing behind %q", e.id, wrappedPrefix)
	case isWrapped:
		e.wrapped = raw
	case len(raw) != KeyBytes:
		return e, fmt.Errorf("key %q has %d bytes; %d are wanted", e.id, len(raw), KeyBytes)
	default:
		e.secret = raw
	}
	return e, nil
}

// key returns the key, unwrapped by the KMS if it is wrapped.
func (e writtenKey) key(ctx context.Context, kms KMS) (Key, error) {
	if e.wrapped != nil {
		return e.unwrap(ctx, kms)
	}
	k := Key{ID: e.id}
	copy(k.Secret[:], e.secret)
	return k, nil
}

// unwrap returns the key that the KMS unwraps, if the key has the check value of the one that was wrapped.
func (e writtenKey) unwrap(ctx context.Context, kms KMS) (Key, error) {
	k := Key{ID: e.id}
	if kms == nil {
		return k, fmt.Errorf("key %q is wrapped by a KMS, and no KMS is given: encryption-kms names the socket of its plugin",
			e.id)
	}
	by, err := kms.WrappingKeyID(e.wrapped)
	if err != nil {
		return k, fmt.Errorf("key %q: %w", e.id, err)
	}
	secret, err := kms.Unwrap(ctx, e.wrapped)
	if err != nil {
		return k, &KMSError{Err: fmt.Errorf("key %q: %w", e.id, err)}
	}
	if len(secret) != KeyBytes {
		return k, &KMSError{Err: fmt.Errorf("key %q: %s decrypts a key of %d bytes; %d are wanted",
			e.id, kms, len(secret), KeyBytes)}
	}
	copy(k.Secret[:], secret)
	check, err := k.checkValue()
	if err != nil {
		return k, err
	}
	if e.check != "" && !strings.EqualFold(check, e.check) {
		return k, &KMSError{Err: fmt.Errorf("key %q: %s decrypts another key than the one that was wrapped: "+
			"its check value is another one; the key of the KMS that has the id %q is not the one that has wrapped it, "+
			"or the line is not that of this key", e.id, kms, by)}
	}
	return k, nil
}

func checkID(id string) error {
	if !idForm.MatchString(id) {
		return errors.New("the id is malformed: at most 63 letters, digits, '-', '_' and '.' that begin with a letter or digit are wanted")
	}
	return nil
}

// Generate returns a new random key with an id, or an error if the id is malformed.
func Generate(id string) (Key, error) {
	k := Key{ID: id}
	if err := checkID(id); err != nil {
		return k, err
	}
	_, err := rand.Read(k.Secret[:])
	return k, err
}
