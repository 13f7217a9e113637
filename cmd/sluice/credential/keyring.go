package credential

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/zalando/go-keyring"

	"github.com/sluicegw/sluice/internal/wait"
)

// Keyring stores secrets of a user. Examples are the keychain of macOS, the credential manager of Windows, and the
// Secret Service of Linux desktops.
type Keyring interface {
	Get(account string) (string, error)
	Set(account, secret string) error
	Delete(account string) error
}

// SystemKeyring returns the keyring of the system. If there is none, its methods return errors.
func SystemKeyring() Keyring { return systemKeyring{} }

// keyringService is the name of the secrets in the list that the system shows.
const keyringService = "sluice"

type systemKeyring struct{}

// Get implements [Keyring].
func (systemKeyring) Get(account string) (string, error) { return keyring.Get(keyringService, account) }

// Set implements [Keyring].
func (systemKeyring) Set(account, secret string) error {
	return keyring.Set(keyringService, account, secret)
}

// Delete implements [Keyring].
func (systemKeyring) Delete(account string) error { return keyring.Delete(keyringService, account) }

// keyringTime is the time limit of a call of the keyring, which may ask the user for a password.
const keyringTime = time.Minute

// loginKeyBytes is the length of the key that encrypts the tokens of a login.
const loginKeyBytes = 32

// newAccount returns the name under which the keyring has the key of a new login. Each login gets a different name.
// Therefore the key of a login that is being replaced stays in the keyring until the file has the new login.
func newAccount(context string) (string, error) {
	id := make([]byte, 8)
	_, err := rand.Read(id)
	return "login to " + context + " " + hex.EncodeToString(id), err
}

// secretTokens are the encrypted fields of a login.
type secretTokens struct {
	IDToken      string `json:"idToken"`
	RefreshToken string `json:"refreshToken,omitempty"`
}

// StoreLogin stores a new login of a context.
//
// The tokens are encrypted with a key, which is stored in the keyring. If ring is nil, or the keyring cannot be used,
// the tokens are stored without encryption. If the keyring cannot be used, plain is the reason.
//
// At the end, the key of the replaced login is removed from the keyring. If the process ends earlier, one of the two
// logins can still be used.
func StoreLogin(ctx context.Context, path, name string, l *Login, ring Keyring) (plain, err error) {
	if ring == nil {
		return nil, KeepLogin(ctx, path, name, l)
	}
	key := make([]byte, loginKeyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	account, err := newAccount(name)
	if err != nil {
		return nil, err
	}
	plain = storeKey(ctx, ring, account, key)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if plain != nil {
		return plain, KeepLogin(ctx, path, name, l)
	}
	keyed := *l
	keyed.Key = account
	sealed, err := keyed.seal(key)
	if err != nil {
		return nil, err
	}
	replaced, _, err := replaceLogin(ctx, path, name, sealed)
	if err != nil {
		sealed.ForgetKey(ctx, ring)
		return nil, err
	}
	replaced.ForgetKey(ctx, ring)
	return nil, nil
}

// storeKey stores the key of a login in the keyring, and checks that the keyring returns it.
func storeKey(ctx context.Context, ring Keyring, account string, key []byte) error {
	text := base64.StdEncoding.EncodeToString(key)
	back, err := inTime(ctx, func() (string, error) {
		if err := ring.Set(account, text); err != nil {
			return "", err
		}
		return ring.Get(account)
	})
	if err == nil && back != text {
		err = errors.New("it returns another secret than it was given")
	}
	return err
}

// ForgetKey removes the key of a login from the keyring. It ignores errors, because a key is useless once its login is
// no longer in the file.
func (l *Login) ForgetKey(ctx context.Context, ring Keyring) {
	if l.Key != "" {
		_, _ = inTime(ctx, func() (string, error) { return "", ring.Delete(l.Key) })
	}
}

// inTime calls a keyring with a time limit. It returns early if ctx ends.
func inTime(ctx context.Context, call func() (string, error)) (string, error) {
	limit, cancel := context.WithTimeoutCause(ctx, keyringTime, fmt.Errorf("no answer within %v", keyringTime))
	defer cancel()
	secret, err := wait.Until(limit, call)
	if err != nil && limit.Err() != nil {
		err = context.Cause(limit)
	}
	return secret, err
}

// openAgain is the advice if the keyring does not return the key of a login.
const openAgain = "unlock the keyring of this system, or log in again with sluice login"

// Open decrypts the tokens of a login if they are encrypted.
func (l *Login) Open(ctx context.Context, ring Keyring) error {
	key, err := l.key(ctx, ring)
	if err != nil {
		return err
	}
	return l.open(key)
}

// key returns the key of a login from the keyring; nil if the tokens are not encrypted. A person may have to unlock the
// keyring first, so the caller must not hold the lock of the file.
func (l *Login) key(ctx context.Context, ring Keyring) ([]byte, error) {
	if l.Sealed == "" {
		return nil, nil
	}
	text, err := inTime(ctx, func() (string, error) { return ring.Get(l.Key) })
	if err != nil {
		return nil, fmt.Errorf("the key of the login cannot be had from the keyring: %w; %s", err, openAgain)
	}
	key, err := base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != loginKeyBytes {
		return nil, errors.New("what the keyring has is not the key of the login; " + openAgain)
	}
	return key, nil
}

// open decrypts the tokens with the key of the login, if they are encrypted.
func (l *Login) open(key []byte) error {
	if l.Sealed == "" {
		return nil
	}
	aead, err := loginCipher(key)
	if err != nil {
		return err
	}
	sealed, err := base64.StdEncoding.DecodeString(l.Sealed)
	if err == nil {
		sealed, err = aead.Open(nil, nil, sealed, l.bound())
	}
	var tokens secretTokens
	if err != nil || json.Unmarshal(sealed, &tokens) != nil { // its errors could have tokens
		return errors.New("the login was changed, or the keyring has another key; log in again with sluice login")
	}
	l.IDToken = tokens.IDToken
	l.RefreshToken = tokens.RefreshToken
	return nil
}

// seal returns the login with encrypted tokens. If key is nil, it returns the login unchanged.
func (l *Login) seal(key []byte) (*Login, error) {
	if key == nil {
		return l, nil
	}
	aead, err := loginCipher(key)
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(secretTokens{IDToken: l.IDToken, RefreshToken: l.RefreshToken})
	if err != nil {
		return nil, err
	}
	sealed := *l
	sealed.IDToken = ""
	sealed.RefreshToken = ""
	sealed.Sealed = base64.StdEncoding.EncodeToString(aead.Seal(nil, nil, text, l.bound()))
	return &sealed, nil
}

// bound returns the server and the issuer. They are authenticated together with the encrypted tokens, so that the
// tokens cannot be sent to another server or issuer after someone has changed the file.
func (l *Login) bound() []byte { return []byte(l.Server + "\n" + l.Issuer.URL) }

func loginCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
