package identity_test

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.uber.org/zap"

	"github.com/sluicegw/sluice/graph/identity"
)

// newToken returns the text of a token and its line.
func newToken(t testing.TB, name string, groups []string, expires time.Time) (text, line string) {
	t.Helper()
	text, hash, err := identity.NewToken(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return text, identity.Token{Name: name, Hash: hash, Groups: groups, Expires: expires}.String() + "\n"
}

func TestToken_ATokenIsReadAsItWasWritten(t *testing.T) {
	end := time.Date(2026, 12, 24, 10, 0, 0, 0, time.UTC)
	for _, want := range []identity.Token{
		{Name: "ci", Hash: sha256.Sum256([]byte("a"))},
		{Name: "ci/build@example.com", Hash: sha256.Sum256([]byte("b")), Groups: []string{"ops"}},
		{Name: "größe", Hash: sha256.Sum256([]byte("c")), Groups: []string{"ops", "dev:a"}, Expires: end},
	} {
		got, errs := identity.ParseTokens([]byte("# tokens\n\n" + want.String() + "\n"))
		if diff := cmp.Diff([]identity.Token{want}, got); diff != "" || errs != nil {
			t.Errorf("%v: %v (-want +got):\n%s", want, errs, diff)
		}
	}
}

func TestToken_ADamagedLineIsRefusedByItsNumberAndTakesNoOtherWithIt(t *testing.T) {
	_, good := newToken(t, "good", []string{"ops"}, time.Time{})
	_, last := newToken(t, "last", nil, time.Time{})
	hash := "sha256:" + strings.Repeat("0", 64)
	for line, says := range map[string]string{
		"ci":                                                   "line 2: a token has a name, a hash, groups (or -) and an end (or -), with blanks between them",
		"ci " + hash + " - - more":                             "line 2: a token has a name",
		"ci md5:" + hash[7:] + " - -":                          "line 2: a hash is sha256:",
		"ci " + hash + "0 - -":                                 "line 2: a hash is sha256:",
		"ci " + hash[:69] + "zz - -":                           "line 2: a hash is sha256:",
		"ci " + hash + " a,,b -":                               "line 2: group: 1 to 256 bytes of printable characters are accepted",
		"ci " + hash + " - tomorrow":                           "line 2: an end is a time like",
		"ci\x00 " + hash + " - -":                              "line 2: name: 1 to 256 bytes",
		"\xff " + hash + " - -":                                "line 2: name: 1 to 256 bytes",
		strings.Repeat("n", 257) + " " + hash + " - -":         "line 2: name: 1 to 256 bytes",
		"ci " + hash + " " + strings.Repeat("g,", 256) + "g -": "line 2: groups: 257, and 256 are accepted",
		"good " + hash + " - -":                                "line 2: the name stands in line 1 already",
		"other " + strings.Fields(good)[1] + " - -":            "line 2: the hash stands in line 1 already",
	} {
		got, errs := identity.ParseTokens([]byte(good + line + "\n" + last))
		if len(got) != 2 || got[0].Name != "good" || got[1].Name != "last" || len(errs) != 1 || !strings.HasPrefix(errs[0].Error(), says) {
			t.Errorf("%q: %d tokens, %v", line, len(got), errs)
		}
	}
	var many strings.Builder
	for i := range identity.MaxTokens + 1 {
		_, _ = fmt.Fprintf(&many, "n%d sha256:%064x - -\n", i, i)
	}
	if got, errs := identity.ParseTokens([]byte(many.String())); len(got) != identity.MaxTokens || len(errs) != 1 {
		t.Errorf("of too many tokens %d are read: %v", len(got), errs)
	}
}

func FuzzParseTokens(f *testing.F) {
	_, line := newToken(f, "ci", []string{"a", "b"}, time.Unix(1e9, 0))
	f.Add([]byte(line))
	f.Add([]byte("# x\nci sha256:00 - -\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		tokens, _ := identity.ParseTokens(data)
		for _, want := range tokens {
			got, errs := identity.ParseTokens([]byte(want.String()))
			if len(errs) > 0 || len(got) != 1 || got[0].String() != want.String() {
				t.Fatalf("%q is read as %v, %v", want, got, errs)
			}
		}
	})
}

// writeFile replaces a file as an editor does that keeps it whole.
func writeFile(t testing.TB, path, content string, mode os.FileMode) {
	t.Helper()
	next := path + ".next"
	if err := os.WriteFile(next, []byte(content), mode); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(next, mode); err != nil { // whatever the umask
		t.Fatal(err)
	}
	if err := os.Rename(next, path); err != nil {
		t.Fatal(err)
	}
}

func TestToken_AFileOfTokensIsReadAgainWhenItChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	synctest.Test(t, func(t *testing.T) {
		first, firstLine := newToken(t, "first", []string{"ops"}, time.Time{})
		second, secondLine := newToken(t, "second", nil, time.Time{})
		short, shortLine := newToken(t, "short", nil, time.Now().Add(time.Minute))
		writeFile(t, path, firstLine+shortLine, 0o600)
		tokens, err := identity.OpenTokens(t.Context(), path, zap.NewNop())
		if err != nil {
			t.Fatal(err)
		}
		a := identity.Authenticator{Tokens: tokens}
		go func() { _ = a.Run(t.Context()) }()
		var mu sync.Mutex // guards ended
		ended := map[string]string{}
		endOf := func(name string) string {
			mu.Lock()
			defer mu.Unlock()
			return ended[name]
		}
		check := func(when, text, name, refused string) {
			t.Helper()
			synctest.Wait()
			id, err := a.Authorization(t.Context(), "Bearer "+text)
			switch {
			case refused != "" && (err == nil || err.Error() != refused):
				t.Errorf("%s: %s is accepted as %v: %v", when, name, id, err)
			case refused == "" && (err != nil || id.Name != "token:"+name):
				t.Errorf("%s: %s is %v: %v", when, name, id, err)
			}
		}
		hold := func(text, name string) {
			id, err := a.Authorization(t.Context(), "bearer  "+text)
			if err != nil {
				t.Fatal(err)
			}
			lifetime, _ := id.Lifetime(t.Context())
			context.AfterFunc(lifetime, func() {
				mu.Lock()
				defer mu.Unlock()
				ended[name] = context.Cause(lifetime).Error()
			})
		}
		check("at first", first, "first", "")
		check("at first", second, "second", "the token is not known, or was revoked")
		hold(first, "first")
		hold(short, "short")

		// A program truncates the file, and writes the rest of it a moment after it was looked at.
		time.Sleep(time.Second - 10*time.Millisecond)
		if err := os.WriteFile(path, nil, 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(50 * time.Millisecond)
		if err := os.WriteFile(path, []byte(firstLine+shortLine), 0o600); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		check("while the file was written", first, "first", "")
		if endOf("first") != "" {
			t.Errorf("while the file was written the first ended: %s", endOf("first"))
		}

		writeFile(t, path, secondLine+shortLine, 0o644)
		time.Sleep(2 * time.Second)
		check("others may read the file", first, "first", "")
		if !tokens.Stale() {
			t.Error("nothing tells that the file is not read")
		}
		writeFile(t, path, firstLine+secondLine+"damaged\n"+shortLine, 0o600)
		time.Sleep(2 * time.Second)
		check("a line is damaged", second, "second", "")
		if tokens.Stale() || endOf("first")+endOf("short") != "" {
			t.Errorf("stale %v, ended %q %q", tokens.Stale(), endOf("first"), endOf("short"))
		}
		writeFile(t, path, secondLine+shortLine, 0o600)
		time.Sleep(2 * time.Second)
		check("the first is revoked", first, "first", "the token is not known, or was revoked")
		if endOf("first") != "the credential was revoked" {
			t.Errorf("ended: %q %q", endOf("first"), endOf("short"))
		}
		time.Sleep(time.Minute)
		check("the short one has expired", short, "short", "the credential has expired")
		if endOf("short") != "the credential has expired" {
			t.Errorf("ended: %q %q", endOf("first"), endOf("short"))
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Second)
		check("the file is gone", second, "second", "")
	})
}

func TestToken_AGroupMayReadAFileOfRootOnly(t *testing.T) {
	_, line := newToken(t, "ci", nil, time.Time{})
	path := filepath.Join(t.TempDir(), "tokens")
	writeFile(t, path, line, 0o440)
	_, err := identity.OpenTokens(t.Context(), path, zap.NewNop())
	if root := os.Geteuid() == 0; root != (err == nil) {
		t.Errorf("it belongs to root: %v, and the error is %v", root, err)
	}
	if os.Chown(path, 65532, 65532) != nil {
		return // only root can give files to others
	}
	if _, err = identity.OpenTokens(t.Context(), path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "0640 if it belongs to root") {
		t.Errorf("it belongs to somebody else: %v", err)
	}
}

func TestToken_AFileOfTokensThatCannotBeReadIsRefusedAtTheStart(t *testing.T) {
	_, line := newToken(t, "ci", nil, time.Time{})
	path := filepath.Join(t.TempDir(), "tokens")
	if _, err := identity.OpenTokens(t.Context(), path, zap.NewNop()); err == nil {
		t.Error("a file that is not there is accepted")
	}
	for _, mode := range []os.FileMode{0o644, 0o604, 0o660, 0o620} {
		writeFile(t, path, line, mode)
		if _, err := identity.OpenTokens(t.Context(), path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "0600 is accepted") {
			t.Errorf("a file of mode %04o: %v", mode, err)
		}
	}
	writeFile(t, path, strings.Repeat("#", identity.MaxTokensFile+1), 0o600)
	if _, err := identity.OpenTokens(t.Context(), path, zap.NewNop()); err == nil || !strings.Contains(err.Error(), "8388608 bytes") {
		t.Errorf("a file that is too large: %v", err)
	}
}

func TestToken_AFileTellsHowManyAreValidAndWhenTheNextEnds(t *testing.T) {
	now := time.Now().Truncate(time.Second)
	path := filepath.Join(t.TempDir(), "tokens")
	var file strings.Builder
	for name, end := range map[string]time.Time{
		"ever": {}, "over": now.Add(-time.Hour), "soon": now.Add(time.Hour), "later": now.Add(2 * time.Hour),
	} {
		_, line := newToken(t, name, nil, end)
		file.WriteString(line)
	}
	if err := os.WriteFile(path, []byte(file.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	tokens, err := identity.OpenTokens(t.Context(), path, zap.NewNop())
	if err != nil {
		t.Fatal(err)
	}
	if valid, next := tokens.Valid(now); valid != 3 || !next.Equal(now.Add(time.Hour)) {
		t.Errorf("%d are valid, the next ends at %v", valid, next)
	}
	if valid, next := tokens.Valid(now.Add(3 * time.Hour)); valid != 1 || !next.IsZero() {
		t.Errorf("later: %d are valid, the next ends at %v", valid, next)
	}
}
