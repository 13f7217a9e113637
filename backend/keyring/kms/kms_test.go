package kms_test

import (
	"bytes"
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/keyring/kms"
	"github.com/sluicegw/sluice/backend/keyring/kms/kmstest"
)

// open returns the client of a plugin, with a timeout.
func open(t *testing.T, socket string, timeout time.Duration) *kms.Plugin {
	t.Helper()
	p, err := kms.New(kms.Config{Socket: socket, Timeout: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

var secret = []byte("0123456789abcdef0123456789abcdef")

func TestPlugin_UnwrapsWhatItHasWrappedWithAnyKey(t *testing.T) {
	server := kmstest.Start(t, "first")
	p := open(t, server.Socket, time.Minute)
	wrapped, err := p.Wrap(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(wrapped, secret) {
		t.Errorf("%q has the key", wrapped)
	}
	server.SetKey("second")
	if id, err := p.KeyID(t.Context()); err != nil || id != "second" {
		t.Errorf("the current key is %q: %v", id, err)
	}
	again, err := p.Wrap(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	for want, wrapped := range map[string][]byte{"first": wrapped, "second": again} {
		got, err := p.Unwrap(t.Context(), wrapped)
		if err != nil || !bytes.Equal(got, secret) {
			t.Errorf("wrapped with the %s: %v", want, err)
		}
		if id, err := p.WrappingKeyID(wrapped); err != nil || id != want {
			t.Errorf("wrapped with %q, not with the %s: %v", id, want, err)
		}
	}
}

func TestPlugin_ASocketIsAPathOrAURL(t *testing.T) {
	server := kmstest.Start(t, "first")
	for _, socket := range []string{server.Socket, "unix:" + server.Socket, "unix://" + server.Socket} {
		if _, err := open(t, socket, time.Minute).KeyID(t.Context()); err != nil {
			t.Errorf("%s: %v", socket, err)
		}
	}
	for _, socket := range []string{"", "unix://", "http://127.0.0.1:1"} {
		if _, err := kms.New(kms.Config{Socket: socket}); err == nil || !strings.Contains(err.Error(), "/run/kms/plugin.sock") {
			t.Errorf("%q: %v", socket, err)
		}
	}
}

func TestPlugin_SaysWhyItCannotBeUsed(t *testing.T) {
	folder := t.TempDir()
	file := filepath.Join(folder, "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		socket  string
		change  func(*kmstest.Plugin)
		timeout time.Duration
		says    []string
	}{
		"nothing is there":    {socket: filepath.Join(folder, "none"), says: []string{"cannot be asked", "no such file"}},
		"no socket":           {socket: file, says: []string{"cannot be asked", "connection refused"}},
		"another version":     {change: func(p *kmstest.Plugin) { p.SetStatus("v3", "ok") }, says: []string{`version "v3"`, "v2 is accepted"}},
		"a plugin that ails":  {change: func(p *kmstest.Plugin) { p.SetStatus("v2", "token expired") }, says: []string{"does not work", `"token expired"`}},
		"a plugin that fails": {change: func(p *kmstest.Plugin) { p.SetFailure(errors.New("no\nroute")) }, says: []string{"refuses with internal", `"no\nroute"`}},
		"a plugin that hangs": {change: (*kmstest.Plugin).Hang, timeout: time.Millisecond, says: []string{"has not answered within 1ms", "see whether it and the KMS"}},
		"a key without an id": {change: func(p *kmstest.Plugin) { p.SetKey("") }, says: []string{"the id of its key has 0 bytes"}},
		"an id that is long":  {change: func(p *kmstest.Plugin) { p.SetKey(strings.Repeat("x", 1025)) }, says: []string{"the id of its key has 1025 bytes"}},
		"more than it may":    {change: func(p *kmstest.Plugin) { p.SetKey(strings.Repeat("x", 1<<20)) }, says: []string{"cannot be asked"}},
		"a long text":         {change: func(p *kmstest.Plugin) { p.SetFailure(errors.New(strings.Repeat("x", 4000))) }, says: []string{`xxx..."`}},
	} {
		t.Run(name, func(t *testing.T) {
			server := kmstest.Start(t, "first")
			if c.change != nil {
				c.change(server)
			}
			if c.socket == "" {
				c.socket = server.Socket
			}
			if c.timeout == 0 {
				c.timeout = time.Minute
			}
			_, err := open(t, c.socket, c.timeout).KeyID(t.Context())
			if err == nil {
				t.Fatal("it can be used")
			}
			for _, want := range append(c.says, c.socket) {
				if !strings.Contains(err.Error(), want) {
					t.Errorf("%v\ndoes not say %s", err, want)
				}
			}
			if len(err.Error()) > 700 || strings.Contains(err.Error(), "\n") {
				t.Errorf("it says too much: %v", err)
			}
		})
	}
}

func TestPlugin_ErrorsHaveNothingOfAKey(t *testing.T) {
	server := kmstest.Start(t, "first")
	p := open(t, server.Socket, time.Minute)
	wrapped, err := p.Wrap(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	server.SetFailure(errors.New("out of order"))
	_, err = p.Unwrap(t.Context(), wrapped)
	if err == nil || strings.Contains(err.Error(), "0123") || !strings.Contains(err.Error(), "out of order") {
		t.Errorf("%v", err)
	}
	server.SetFailure(nil)
	server.RefuseToEncrypt() // and it quotes the key
	_, err = p.Wrap(t.Context(), secret)
	if err == nil || strings.Contains(err.Error(), "0123") || !strings.Contains(err.Error(), "refuses with internal") ||
		!strings.Contains(err.Error(), server.Socket) || !strings.Contains(err.Error(), "see its log") {
		t.Errorf("%v", err)
	}
}

func TestPlugin_NamesTheRightsOfAKeyOnlyIfItRefuses(t *testing.T) {
	server := kmstest.Start(t, "first")
	p := open(t, server.Socket, time.Minute)
	wrapped, err := p.Wrap(t.Context(), secret)
	if err != nil {
		t.Fatal(err)
	}
	const rights = "that key must be enabled in the KMS"
	server.SetFailure(errors.New("disabled"))
	if _, err := p.Unwrap(t.Context(), wrapped); err == nil || !strings.Contains(err.Error(), rights) {
		t.Errorf("a plugin that refuses: %v", err)
	}
	absent := open(t, server.Socket+".none", time.Minute)
	_, err = absent.Unwrap(t.Context(), wrapped)
	if err == nil || strings.Contains(err.Error(), rights) || !strings.Contains(err.Error(), `with the key "first"`) {
		t.Errorf("no plugin: %v", err)
	}
}

func TestPlugin_AKeyThatIsNotThatOfItsStatusWrapsNothing(t *testing.T) {
	server := kmstest.Start(t, "first")
	server.EncryptWith("second")
	wrapped, err := open(t, server.Socket, time.Minute).Wrap(t.Context(), secret)
	if err == nil || wrapped != nil {
		t.Fatalf("%q %v", wrapped, err)
	}
	for _, want := range []string{server.Socket, `with the key "second"`, `its status names the key "first"`, "try again later"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%v\ndoes not say %s", err, want)
		}
	}
}

func TestPlugin_ACallEndsWithItsContext(t *testing.T) {
	server := kmstest.Start(t, "first")
	server.Hang()
	ctx, cancel := context.WithCancel(t.Context())
	time.AfterFunc(time.Millisecond, cancel)
	if _, err := open(t, server.Socket, time.Hour).KeyID(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}
