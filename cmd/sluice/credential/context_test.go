package credential_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/cmd/sluice/credential"
)

func write(t *testing.T, text string, mode os.FileMode) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := errors.Join(os.WriteFile(path, []byte(text), mode), os.Chmod(path, mode)); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	path := filepath.Join(t.TempDir(), "sluice", "contexts.yaml")
	want := &credential.File{Current: "prod", Contexts: map[string]credential.Context{
		"prod": {Server: "https://a", Namespace: "web", Access: credential.Access{CA: "/ca.pem", TokenCommand: []string{"vault", "read"}, ClientCert: "/c", ClientKey: "/k"}},
		"test": {Server: "http://b", Access: credential.Access{TokenFile: "/t", PlaintextToken: true}},
	}}
	if err := credential.UpdateContexts(t.Context(), path, func(f *credential.File) error {
		f.Current, f.Contexts = want.Current, want.Contexts
		return nil
	}); err != nil {
		t.Fatal(err)
	}
	got, err := credential.ReadContexts(path)
	if err != nil || !cmp.Equal(got, want) {
		t.Errorf("%v %s", err, cmp.Diff(want, got))
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info, err)
	}
}

func TestPathsBeginAtTheFolderOfTheFile(t *testing.T) {
	path := write(t, "contexts: {a: {ca: ca.pem, token-file: /t}}", 0o600)
	f, err := credential.ReadContexts(path)
	if err != nil || f.Contexts["a"].CA != filepath.Join(filepath.Dir(path), "ca.pem") || f.Contexts["a"].TokenFile != "/t" {
		t.Errorf("%+v %v", f, err)
	}
}

func TestAFileThatCannotBeMeantIsRefused(t *testing.T) {
	for text, says := range map[string]string{
		"contexts: {a: {sever: x}}":                          "line 1: field sever not found",
		"contexts: {a: {token-file: x, token-command: [y]}}": "a: token-file, token-command: only one",
		"contexts: {a: {client-cert: x}}":                    "a: client-cert, client-key: each needs the other",
		"contexts: {a: {token-command: ['']}}":               "the program has no name",
		"contexts: {'a b': {}}":                              `"a b" is no name`,
		"contexts: [":                                        "line 1",
	} {
		if _, err := credential.ReadContexts(write(t, text, 0o600)); err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "\n") || strings.Contains(err.Error(), "in type") {
			t.Errorf("%s: %v", text, err)
		}
	}
	for _, mode := range []os.FileMode{0o644, 0o620, 0o606} {
		if _, err := credential.ReadContexts(write(t, "", mode)); err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if f, err := credential.ReadContexts(filepath.Join(t.TempDir(), "none")); err != nil || len(f.Contexts) > 0 {
		t.Errorf("no file: %v %v", f, err)
	}
}

func TestAnUnknownContextIsAnsweredWithThoseThatAreKnown(t *testing.T) {
	f := credential.File{Contexts: map[string]credential.Context{"b": {}, "a": {}}}
	if _, err := f.Find("c"); err == nil || !strings.Contains(err.Error(), `there is no such context as "c"; known: a, b`) {
		t.Errorf("%v", err)
	}
}

func TestATokenFileIsReadEachTime(t *testing.T) {
	a := credential.Access{TokenFile: write(t, "one\n", 0o600)}
	source := a.TokenSource(nil)
	for _, text := range []string{"one\n", "two", "", "a b", strings.Repeat("x", 70_000)} {
		if err := os.WriteFile(a.TokenFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		token, err := source(t.Context(), "")
		if want := strings.TrimSpace(text); err == nil && token != want || (err != nil) == (text == "one\n" || text == "two") {
			t.Errorf("%.10q: %q %v", text, token, err)
		}
	}
}

func TestACommandIsRunAgainWhenItsTokenIsRefused(t *testing.T) {
	count := filepath.Join(t.TempDir(), "count")
	a := credential.Access{TokenCommand: []string{"sh", "-c", `echo run >> "$1"; echo "token-$(wc -l < "$1" | tr -d ' ')"; echo said >&2`, "x", count}}
	var said bytes.Buffer
	source := a.TokenSource(&said)
	for _, c := range []struct{ refused, token string }{{"", "token-1"}, {"", "token-1"}, {"token-1", "token-2"}, {"token-1", "token-2"}, {"", "token-2"}} {
		if token, err := source(t.Context(), c.refused); err != nil || token != c.token {
			t.Errorf("refused %q: %q %v, want %s", c.refused, token, err, c.token)
		}
	}
	if said.String() != "said\nsaid\n" {
		t.Errorf("%q", &said)
	}
}

func TestACommandThatPrintsNoTokenSaysSoWithoutItsArguments(t *testing.T) {
	for script, says := range map[string]string{
		"echo out; exit 3; secret":                        "token-command: sh: exit status 3",
		"true; : secret":                                  "what sh printed has no token",
		"echo out word; : secret":                         "what sh printed has more than a token",
		"head -c 100000 /dev/zero | tr '\\0' x; : secret": "what sh printed has more than a token",
	} {
		a := credential.Access{TokenCommand: []string{"sh", "-c", script}}
		_, err := a.TokenSource(nil)(t.Context(), "")
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "secret") || strings.Contains(err.Error(), "out") {
			t.Errorf("%s: %v", script, err)
		}
	}
	a := credential.Access{TokenCommand: []string{"/nowhere/program"}}
	if _, err := a.TokenSource(nil)(t.Context(), ""); err == nil || !strings.Contains(err.Error(), "/nowhere/program") {
		t.Errorf("%v", err)
	}
	ctx, stop := context.WithCancel(t.Context())
	stop()
	a.TokenCommand = []string{"sleep", "60"}
	if _, err := a.TokenSource(nil)(ctx, ""); !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}
}
