package credential_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
	"github.com/sluicegw/sluice/cmd/sluice/credential/credentialtest"
)

// ring is a keyring in memory.
type ring struct {
	mu      sync.Mutex
	secrets map[string]string
	failure error
	// read is called before a secret is returned, if it is there.
	read func()
}

func (r *ring) Get(account string) (string, error) {
	if r.read != nil {
		r.read()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return "", r.failure
	}
	secret, ok := r.secrets[account]
	if !ok {
		return "", errors.New("secret not found")
	}
	return secret, nil
}

func (r *ring) Set(account, secret string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failure != nil {
		return r.failure
	}
	r.secrets[account] = secret
	return nil
}

func (r *ring) Delete(account string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.secrets, account)
	return r.failure
}

// stored is a login that was kept with a keyring.
func stored(t *testing.T, r credential.Keyring) (path string, l *credential.Login, plain error) {
	t.Helper()
	i := credentialtest.Start(t)
	got, _, err := byBrowser(t, i, func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	got.Server = "https://g"
	path = filepath.Join(t.TempDir(), "logins.yaml")
	plain, err = credential.StoreLogin(t.Context(), path, "a", got, r)
	if err != nil {
		t.Fatal(err)
	}
	return path, got, plain
}

func TestStoreLogin_TheFileIsOfNoUseWithoutTheKeyring(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	path, l, reason := stored(t, r)
	if reason != nil || len(r.secrets) != 1 {
		t.Errorf("%v %d", reason, len(r.secrets))
	}
	raw, err := os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), l.IDToken) || strings.Contains(string(raw), l.RefreshToken) {
		t.Errorf("%v\n%s", err, raw)
	}
	for account, secret := range r.secrets {
		if strings.Contains(secret, l.IDToken) || !strings.Contains(account, "login to a") {
			t.Errorf("%s: %s", account, secret)
		}
	}
	source := func() *credential.Source {
		return &credential.Source{Path: path, Context: "a", HTTP: plain(), Keyring: r}
	}
	if token, err := source().Token(t.Context(), ""); err != nil || token != l.IDToken {
		t.Errorf("%v", err)
	}
	next, err := source().Token(t.Context(), l.IDToken)
	if err != nil || next == l.IDToken {
		t.Errorf("refused: %v", err)
	}
	raw, err = os.ReadFile(path)
	if err != nil || strings.Contains(string(raw), next) || !strings.Contains(string(raw), "sealed:") {
		t.Errorf("refreshed: %v\n%s", err, raw)
	}
	if token, err := source().Token(t.Context(), ""); err != nil || token != next {
		t.Errorf("after the refresh: %v", err)
	}
	r.failure = errors.New("locked")
	if _, err := source().Token(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "locked; unlock the keyring of this system, or log in again") {
		t.Errorf("a locked keyring: %v", err)
	}
	r.failure = nil
	// Whoever can write the file cannot have the tokens sent elsewhere.
	moved := strings.ReplaceAll(string(raw), "https://g", "https://h")
	if err := os.WriteFile(path, []byte(moved), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := source().Token(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "was changed") {
		t.Errorf("another server: %v", err)
	}
	removed, found, err := credential.RemoveLogin(t.Context(), path, "a")
	if err != nil || !found {
		t.Errorf("%t %v", found, err)
	}
	if removed.ForgetKey(t.Context(), r); len(r.secrets) != 0 {
		t.Errorf("%v", r.secrets)
	}
	if _, found, err := credential.FindLogin(path, "a"); found || err != nil {
		t.Errorf("%v %v", found, err)
	}
}

func TestStoreLogin_WithoutAKeyringTheTokensAreInTheFile(t *testing.T) {
	for name, c := range map[string]struct {
		ring credential.Keyring
		says string
	}{
		"none is there":  {&ring{failure: errors.New("no bus")}, "no bus"},
		"it forgets":     {forgetful{}, "another secret"},
		"none is wanted": {nil, ""},
	} {
		path, l, reason := stored(t, c.ring)
		if (reason == nil) != (c.says == "") || reason != nil && !strings.Contains(reason.Error(), c.says) {
			t.Errorf("%s: %v", name, reason)
		}
		source := &credential.Source{Path: path, Context: "a", HTTP: plain(), Keyring: c.ring}
		if token, err := source.Token(t.Context(), ""); err != nil || token != l.IDToken {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// forgetful is a keyring that keeps nothing.
type forgetful struct{}

func (forgetful) Get(string) (string, error) { return "", nil }
func (forgetful) Set(string, string) error   { return nil }
func (forgetful) Delete(string) error        { return nil }

// waiting is a keyring that asks a person who is not there, until it is closed.
type waiting chan struct{}

func (w waiting) Get(string) (string, error) { <-w; return "", nil }
func (w waiting) Set(string, string) error   { <-w; return nil }
func (w waiting) Delete(string) error        { <-w; return nil }

func TestStoreLogin_DoesNotWaitForAKeyringWhenTheCommandEnds(t *testing.T) {
	w := make(waiting)
	defer close(w)
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	l := &credential.Login{Server: "https://g", IDToken: "x"}
	if _, err := credential.StoreLogin(ctx, filepath.Join(t.TempDir(), "logins.yaml"), "a", l, w); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// sealedLogin is a login whose tokens need no issuer for an hour.
func sealedLogin(n int) *credential.Login {
	now := time.Now()
	return &credential.Login{
		Server:   "https://g",
		IDToken:  credentialtest.Token(n, now.Add(time.Hour)),
		Obtained: now,
		Expires:  now.Add(time.Hour),
	}
}

// tokenOf returns the token of the context a, as another process finds it.
func tokenOf(t *testing.T, path string, r credential.Keyring) string {
	t.Helper()
	token, err := (&credential.Source{Path: path, Context: "a", HTTP: plain(), Keyring: r}).Token(t.Context(), "")
	if err != nil {
		t.Error(err)
	}
	return token
}

func TestStoreLogin_ALoginThatEndsBeforeItIsInTheFileLeavesTheOneBefore(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	path := filepath.Join(t.TempDir(), "logins.yaml")
	before := sealedLogin(1)
	if _, err := credential.StoreLogin(t.Context(), path, "a", before, r); err != nil {
		t.Fatal(err)
	}
	ctx, kill := context.WithCancel(t.Context())
	r.read = kill // the key of the new login is in the keyring by then
	if _, err := credential.StoreLogin(ctx, path, "a", sealedLogin(2), r); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	r.read = nil
	if token := tokenOf(t, path, r); token != before.IDToken {
		t.Errorf("the login before is lost: %q", token)
	}
}

func TestStoreLogin_LoginsAtOnceLeaveOneThatCanBeUsed(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	path := filepath.Join(t.TempDir(), "logins.yaml")
	var wg sync.WaitGroup
	for n := range 10 {
		wg.Go(func() {
			if _, err := credential.StoreLogin(t.Context(), path, "a", sealedLogin(n), r); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if token := tokenOf(t, path, r); token == "" || len(r.secrets) != 1 {
		t.Errorf("%q, and the keyring has %d keys", token, len(r.secrets))
	}
}

func TestStoreLogin_TheNameOfTheFileIsNoPartOfTheKey(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	folder := t.TempDir()
	t.Chdir(folder)
	l := sealedLogin(1)
	if _, err := credential.StoreLogin(t.Context(), "logins.yaml", "a", l, r); err != nil {
		t.Fatal(err)
	}
	t.Chdir(t.TempDir())
	if token := tokenOf(t, filepath.Join(folder, "logins.yaml"), r); token != l.IDToken {
		t.Errorf("from another folder: %q", token)
	}
}

func TestSource_FollowsALoginThatIsReplacedWhileItsKeyIsRead(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	path := filepath.Join(t.TempDir(), "logins.yaml")
	if _, err := credential.StoreLogin(t.Context(), path, "a", sealedLogin(1), r); err != nil {
		t.Fatal(err)
	}
	later := sealedLogin(2)
	r.read = func() {
		r.read = nil
		if _, err := credential.StoreLogin(t.Context(), path, "a", later, r); err != nil {
			t.Error(err)
		}
	}
	if token := tokenOf(t, path, r); token != later.IDToken {
		t.Errorf("%q", token)
	}
}

func TestSource_AKeyringThatWaitsLocksNoFile(t *testing.T) {
	r := &ring{secrets: map[string]string{}}
	path := filepath.Join(t.TempDir(), "logins.yaml")
	l := sealedLogin(1)
	if _, err := credential.StoreLogin(t.Context(), path, "a", l, r); err != nil {
		t.Fatal(err)
	}
	reading, unlocked := make(chan struct{}), make(chan struct{})
	r.read = func() {
		close(reading)
		<-unlocked
	}
	got := make(chan string)
	go func() {
		token, _ := (&credential.Source{Path: path, Context: "a", HTTP: plain(), Keyring: r}).Token(t.Context(), "")
		got <- token
	}()
	<-reading
	if err := credential.KeepLogin(t.Context(), path, "b", sealedLogin(2)); err != nil {
		t.Errorf("another login waits for the keyring: %v", err)
	}
	close(unlocked)
	if token := <-got; token != l.IDToken {
		t.Errorf("%q", token)
	}
}
