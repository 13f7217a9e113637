package keyring

import (
	"encoding/base64"
	"fmt"
	"strings"
)

// Parse reads keys, each as id:base64 of 32 bytes, one a line or separated by commas. What
// follows a # on a line is passed over. Errors have no part of a key.
func Parse(text string) (*Keyring, error) {
	var keys []Key
	for n, line := range strings.Split(text, "\n") {
		line, _, _ = strings.Cut(line, "#")
		for one := range strings.SplitSeq(line, ",") {
			one = strings.TrimSpace(one)
			if one == "" {
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
	return New(keys...)
}

func parseKey(text string) (k Key, err error) {
	id, secret, ok := strings.Cut(text, ":")
	if !ok {
		return k, fmt.Errorf("a key is written id:base64, and there is no colon")
	}
	if k.ID = strings.TrimSpace(id); !idForm.MatchString(k.ID) {
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
