package identity

import (
	"context"
	"crypto/sha256"
	"sync/atomic"
	"time"

	"go.uber.org/zap"

	"github.com/sluicegw/sluice/backend/service/access"
)

// Tokens are the static tokens in a file, which is read again when it changes. It is safe for concurrent use.
type Tokens struct {
	*Files
	known atomic.Pointer[map[[sha256.Size]byte]*known]
}

// known is a token in the file, with the identity of its caller.
type known struct {
	Token
	identity *access.Identity
	revoke   context.CancelFunc
}

// OpenTokens reads the file of tokens. [Tokens.Run] must be called to read it again.
func OpenTokens(ctx context.Context, path string, log *zap.Logger) (*Tokens, error) {
	t := &Tokens{}
	t.Files = &Files{
		Setting: "tokens",
		Paths:   []string{path},
		Most:    MaxTokensFile,
		Private: true,
		Load:    t.load,
		Logger:  log,
	}
	t.known.Store(&map[[sha256.Size]byte]*known{})
	return t, t.Open(ctx)
}

// load replaces the tokens by those in a file. Tokens that are not in the file are revoked.
func (t *Tokens) load(content [][]byte) error {
	tokens, damaged := ParseTokens(content[0])
	for _, err := range damaged[:min(len(damaged), maxDamaged)] {
		t.Logger.Error("a token is passed over", zap.String("setting", t.Setting), zap.Error(err))
	}
	before, now := *t.known.Load(), make(map[[sha256.Size]byte]*known, len(tokens))
	for _, one := range tokens {
		if old := before[one.Hash]; old != nil && old.String() == one.String() {
			now[one.Hash] = old
			continue
		}
		k := &known{Token: one}
		id, err := newIdentity("token", one.Name, one.Groups, one.Expires)
		if err != nil {
			return err // ParseTokens has checked it
		}
		id.Revoked, k.revoke = context.WithCancel(context.Background())
		k.identity = id
		now[one.Hash] = k
	}
	t.known.Store(&now)
	for hash, old := range before {
		if now[hash] != old {
			old.revoke()
		}
	}
	return nil
}

// Valid returns the number of tokens that are valid at a time, and when the next one expires; zero if none expires.
func (t *Tokens) Valid(at time.Time) (valid int, next time.Time) {
	for _, one := range *t.known.Load() {
		ends := one.Expires
		if !ends.IsZero() && !ends.After(at) {
			continue
		}
		valid++
		if !ends.IsZero() && (next.IsZero() || ends.Before(next)) {
			next = ends
		}
	}
	return valid, next
}

// maxDamaged is the maximum number of damaged lines that are logged each time.
const maxDamaged = 20

// identity returns the identity of a token. It returns an error if the token is not in the file or has expired.
func (t *Tokens) identity(text string) (*access.Identity, error) {
	k := (*t.known.Load())[sha256.Sum256([]byte(text))]
	if k == nil {
		return nil, invalid("the token is not known, or was revoked")
	}
	if err := k.identity.Err(); err != nil {
		return nil, err
	}
	return k.identity, nil
}
