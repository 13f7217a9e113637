package credential

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"crypto/rand"
	"encoding/base64"
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

// loginAccount returns the name under which the keyring stores the key of a login.
func loginAccount(path, name string) string { return "login to " + name + " (" + path + ")" }

// secretTokens are the parts of a login that are encrypted.
type secretTokens struct {
	IDToken      string `json:"idToken"`
	RefreshToken string `json:"refreshToken,omitempty"`
}

// StoreLogin stores a new login of a context. The tokens are encrypted with a key, which is stored in the keyring. If
// the keyring cannot be used, the tokens are stored without encryption; plain is then the reason. A nil ring means that
// no keyring is used.
func StoreLogin(ctx context.Context, path, name string, l *Login, ring Keyring) (plain, err error) {
	if ring == nil {
		return nil, KeepLogin(ctx, path, name, l)
	}
	key := make([]byte, loginKeyBytes)
	if _, err := rand.Read(key); err != nil {
		return nil, err
	}
	text := base64.StdEncoding.EncodeToString(key)
	account := loginAccount(path, name)
	back, plain := inTime(ctx, func() (string, error) {
		if err := ring.Set(account, text); err != nil {
			return "", err
		}
		return ring.Get(account)
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if plain == nil && back != text {
		plain = errors.New("it returns another secret than it was given")
	}
	if plain != nil {
		return plain, KeepLogin(ctx, path, name, l)
	}
	sealed, err := l.seal(key)
	if err != nil {
		return nil, err
	}
	return nil, KeepLogin(ctx, path, name, sealed)
}

// ForgetLogin removes the login of a context, and its key from the keyring.
func ForgetLogin(ctx context.Context, path, name string, ring Keyring) error {
	l, found, err := FindLogin(path, name)
	if err == nil && found && l.Sealed != "" {
		// A key that cannot be removed does no harm, because nothing is encrypted with it any more.
		_, _ = inTime(ctx, func() (string, error) { return "", ring.Delete(loginAccount(path, name)) })
	}
	return KeepLogin(ctx, path, name, nil)
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

// Open decrypts the tokens of a login, if they are encrypted.
func (l *Login) Open(ctx context.Context, path, name string) error {
	_, err := l.open(ctx, nil, loginAccount(path, name))
	return err
}

// open decrypts the tokens. It returns the key with which [Login.seal] can encrypt them again, nil if they are not
// encrypted. account is the name of the key in the keyring.
func (l *Login) open(ctx context.Context, ring Keyring, account string) (key []byte, err error) {
	const again = "unlock the keyring of this system, or log in again with sluice login"
	if l.Sealed == "" {
		return nil, nil
	}
	if ring == nil {
		ring = SystemKeyring()
	}
	text, err := inTime(ctx, func() (string, error) { return ring.Get(account) })
	if err != nil {
		return nil, fmt.Errorf("the key of the login cannot be had from the keyring: %w; %s", err, again)
	}
	key, err = base64.StdEncoding.DecodeString(text)
	if err != nil || len(key) != loginKeyBytes {
		return nil, errors.New("what the keyring has is not the key of the login; " + again)
	}
	aead, err := loginCipher(key)
	if err != nil {
		return nil, err
	}
	sealed, err := base64.StdEncoding.DecodeString(l.Sealed)
	if err == nil {
		sealed, err = aead.Open(nil, nil, sealed, l.bound())
	}
	var tokens secretTokens
	if err != nil || json.Unmarshal(sealed, &tokens) != nil { // its errors could have tokens
		return nil, errors.New("the login was changed, or the keyring has another key; log in again with sluice login")
	}
	l.IDToken = tokens.IDToken
	l.RefreshToken = tokens.RefreshToken
	return key, nil
}

// seal returns the login with encrypted tokens. If key is nil, the login is returned unchanged.
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

// bound returns the data that is authenticated together with the tokens: the server and the issuer. The tokens must not
// be sent to others.
func (l *Login) bound() []byte { return []byte(l.Server + "\n" + l.Issuer.URL) }

func loginCipher(key []byte) (cipher.AEAD, error) {
	block, err := aes.NewCipher(key)
	if err != nil {
		return nil, err
	}
	return cipher.NewGCMWithRandomNonce(block)
}
