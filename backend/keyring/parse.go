package keyring

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// plain before the first key means that nothing is encrypted.
const plain = "plain"

// Parse parses keys, each in the form id:base64 of 32 bytes, one on each line or separated
// by commas. Text after a # on a line is ignored. The word plain before the first key
// means that the keys only decrypt. Errors contain no part of a key.
func Parse(text string) (*Keyring, error) {
	var keys []Key
	decrypts := false
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "" {
				continue
			}
			if one == plain && len(keys) == 0 {
				decrypts = true
				continue
			}
			if len(keys) == MaxKeys {
				return nil, fmt.Errorf("there are more than %d keys", MaxKeys)
			}
			k, err := parseKey(one)
			if err != nil {
				return nil, fmt.Errorf("key %d, line %d: %w", len(keys)+1, n+1, err)
			}
			keys = append(keys, k)
		}
	}
	if len(keys) == 0 {
		return nil, fmt.Errorf("there is no key; write one as id:base64 of %d random bytes", KeyBytes)
	}
	r, err := New(keys...)
	if err == nil && decrypts {
		r = r.Plain()
	}
	return r, err
}

func parseKey(text string) (k Key, err error) {
	id, secret, ok := strings.Cut(text, ":")
	if !ok {
		return k, fmt.Errorf("a key is written id:base64, and there is no colon")
	}
	k.ID = strings.TrimSpace(id)
	if !idForm.MatchString(k.ID) {
		return k, fmt.Errorf("the id is malformed: at most 63 letters, digits, '-', '_' and '.' that begin with a letter or digit are wanted")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.TrimSpace(secret))
	if err != nil {
		return k, fmt.Errorf("key %q is not base64 with padding (RFC 4648 section 4)", k.ID)
	}
	if len(raw) != KeyBytes {
		return k, fmt.Errorf("key %q has %d bytes; %d are wanted", k.ID, len(raw), KeyBytes)
	}
	copy(k.Secret[:], raw)
	return k, nil
}
