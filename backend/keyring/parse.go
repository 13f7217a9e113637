package keyring

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
)

// plain before the first key means that nothing is encrypted.
const plain = "plain"

// wrappedPrefix precedes the base64 of a key that a KMS has encrypted.
const wrappedPrefix = "kms:"

// KMS is a key management service: it encrypts (wraps) keys with a key of its own, which it does not give away.
type KMS interface {
	// Wrap encrypts a key with the current key of the KMS.
	Wrap(ctx context.Context, secret []byte) (wrapped []byte, err error)
	// Unwrap decrypts what Wrap has returned, also with an earlier key of the KMS.
	Unwrap(ctx context.Context, wrapped []byte) (secret []byte, err error)
	// WrappingKeyID returns the id of the key of the KMS that Wrap has encrypted with.
	WrappingKeyID(wrapped []byte) (string, error)
}

// KMSError is an error of the KMS, and not of the text with the keys.
type KMSError struct{ Err error }

// Error names the key, and has what the KMS says.
func (e *KMSError) Error() string { return e.Err.Error() }

// Unwrap returns what is wrong.
func (e *KMSError) Unwrap() error { return e.Err }

// Parse parses keys, one on each line or separated by commas. A key has the form id:base64 of 32 bytes, or, if the KMS
// has wrapped it, id:kms:base64 of the wrapped key. Text after a # on a line is ignored. The word plain before the
// first key means that the keys only decrypt. kms may be nil; a wrapped key is an error then. Errors contain no part of
// a key. If the KMS fails, the error is a [KMSError].
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

// Wrap wraps the keys in a text for [Parse] with the KMS: those that are not wrapped, and those that are wrapped with
// another key than current. The rest of the text is unchanged. count is the number of keys that were wrapped now.
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
			if err != nil || by == current {
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

// Line returns the key in the form that [Parse] reads, including the secret.
func (k Key) Line() string { return k.ID + ":" + base64.StdEncoding.EncodeToString(k.Secret[:]) }

// Wrapped returns the key as [Parse] reads it, wrapped by the KMS, which is asked to unwrap it, too: what is encrypted
// with a key that cannot be had again would be lost.
func (k Key) Wrapped(ctx context.Context, kms KMS) (string, error) {
	wrapped, err := kms.Wrap(ctx, k.Secret[:])
	if err != nil {
		return "", &KMSError{Err: fmt.Errorf("key %q: %w", k.ID, err)}
	}
	back, err := writtenKey{id: k.ID, wrapped: wrapped}.key(ctx, kms)
	switch {
	case err != nil:
		return "", err
	case back.Secret != k.Secret:
		return "", &KMSError{Err: fmt.Errorf("key %q: the KMS decrypts another key than the one it has encrypted", k.ID)}
	}
	return k.ID + ":" + wrappedPrefix + base64.StdEncoding.EncodeToString(wrapped), nil
}

// eachEntry calls replace with each key of a text, and with the word plain, and returns the text with the results in
// their places. Errors say which key it is and in which line.
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

// writtenKey is a key as it is written.
type writtenKey struct {
	id string
	// One of these is not empty.
	secret, wrapped []byte
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

// key returns the key, which the KMS unwraps if it is wrapped.
func (e writtenKey) key(ctx context.Context, kms KMS) (Key, error) {
	k := Key{ID: e.id}
	secret := e.secret
	if e.wrapped != nil {
		if kms == nil {
			return k, fmt.Errorf("key %q is wrapped by a KMS, and no KMS is given: encryption-kms names the socket of its plugin", e.id)
		}
		if _, err := kms.WrappingKeyID(e.wrapped); err != nil {
			return k, fmt.Errorf("key %q: %w", e.id, err)
		}
		var err error
		secret, err = kms.Unwrap(ctx, e.wrapped)
		if err != nil {
			return k, &KMSError{Err: fmt.Errorf("key %q: %w", e.id, err)}
		}
		if len(secret) != KeyBytes {
			return k, &KMSError{Err: fmt.Errorf("key %q: the KMS decrypts a key of %d bytes; %d are wanted", e.id, len(secret), KeyBytes)}
		}
	}
	copy(k.Secret[:], secret)
	return k, nil
}

func checkID(id string) error {
	if !idForm.MatchString(id) {
		return errors.New("the id is malformed: at most 63 letters, digits, '-', '_' and '.' that begin with a letter or digit are wanted")
	}
	return nil
}

// Generate returns a new random key.
func Generate(id string) (Key, error) {
	k := Key{ID: id}
	if err := checkID(id); err != nil {
		return k, err
	}
	_, err := rand.Read(k.Secret[:])
	return k, err
}
