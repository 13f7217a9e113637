package keyring_test

import (
	"bytes"
	"encoding/base64"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
)

// secret is the n-th key.
func secret(n byte) (out [keyring.KeyBytes]byte) {
	for i := range out {
		out[i] = n
	}
	return out
}

// ring has a key for each id.
func ring(t *testing.T, ids ...string) *keyring.Keyring {
	t.Helper()
	var keys []keyring.Key
	for _, id := range ids {
		keys = append(keys, keyring.Key{ID: id, Secret: secret(id[0])})
	}
	r, err := keyring.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func place() backend.Key {
	return backend.Key{Kind: "Secret", Namespace: "default", Name: "s"}.Sensitive()
}

func TestKeyring_WhatIsSealedIsOpenedByTheKeyOfItsID(t *testing.T) {
	body := backend.EncodeBody([]byte(`{"data":{"a":"plain text"}}`))
	old := ring(t, "a")
	sealed, err := old.Seal(place(), "u", body)
	if err != nil {
		t.Fatal(err)
	}
	if bytes.Contains(sealed, []byte("plain text")) || sealed[0] != backend.BodySealed {
		t.Errorf("sealed as %q", sealed)
	}
	rotated := ring(t, "b", "a")
	for name, r := range map[string]*keyring.Keyring{"the same": old, "a later one": rotated} {
		if got, err := r.Open(place(), "u", sealed); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	if again, _ := old.Seal(place(), "u", body); bytes.Equal(again, sealed) {
		t.Error("equal bodies are sealed alike")
	}
	if !old.Current(sealed) || rotated.Current(sealed) || rotated.Current(body) || rotated.ID() != "b" {
		t.Error("it is not told which key is the current one")
	}
}

func TestKeyring_PlainBodiesStayReadable(t *testing.T) {
	body := backend.EncodeBody([]byte(`{}`))
	for name, r := range map[string]*keyring.Keyring{"with keys": ring(t, "a"), "without": nil} {
		if got, err := r.Open(place(), "u", body); err != nil || !bytes.Equal(got, body) {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	var none *keyring.Keyring
	if got, err := none.Seal(place(), "u", body); err != nil || !bytes.Equal(got, body) || !none.Current(body) {
		t.Errorf("without keys it is stored as %q, %v", got, err)
	}
}

func TestKeyring_AKeyringThatIsPlainDecryptsAlone(t *testing.T) {
	body := backend.EncodeBody([]byte(`{}`))
	r := ring(t, "a")
	sealed, err := r.Seal(place(), "u", body)
	if err != nil {
		t.Fatal(err)
	}
	r = r.Plain()
	if got, err := r.Open(place(), "u", sealed); err != nil || !bytes.Equal(got, body) {
		t.Errorf("%q, %v", got, err)
	}
	if got, err := r.Seal(place(), "u", body); err != nil || !bytes.Equal(got, body) || r.ID() != "" || !r.Current(body) || r.Current(sealed) {
		t.Errorf("it stores %q, %v", got, err)
	}
}

func TestKeyring_ABodyIsOfUseInItsPlaceAlone(t *testing.T) {
	r := ring(t, "a", "b")
	sealed, err := r.Seal(place(), "u", backend.EncodeBody([]byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	other := place()
	other.Name = "t"
	changed := func(i int) []byte {
		out := bytes.Clone(sealed)
		out[i] ^= 1
		return out
	}
	open := func(what string, r *keyring.Keyring, at backend.Key, uid string, body []byte) error {
		t.Helper()
		_, err := r.Open(at, uid, body)
		if err == nil {
			t.Errorf("%s: it is opened", what)
		}
		return err
	}
	_ = open("another name", r, other, "u", sealed)
	_ = open("another uid", r, place(), "v", sealed)
	for i := range sealed {
		if i > 0 { // the first byte says that it is sealed at all
			_ = open(fmt.Sprint("byte ", i), r, place(), "u", changed(i))
		}
	}
	for n := range len(sealed) {
		if n > 0 {
			_ = open(fmt.Sprint(n, " bytes"), r, place(), "u", sealed[:n])
		}
	}
	renamed := append(append(bytes.Clone(sealed[:3]), 'b'), sealed[4:]...)
	if err := open("another id", r, place(), "u", renamed); !strings.Contains(err.Error(), `"b"`) {
		t.Errorf("it does not name the key: %v", err)
	}
}

func TestKeyring_AMissingKeyIsToldByItsIDAlone(t *testing.T) {
	sealed, err := ring(t, "2025-old").Seal(place(), "u", backend.EncodeBody([]byte(`{}`)))
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range []*keyring.Keyring{nil, ring(t, "new")} {
		_, err := r.Open(place(), "u", sealed)
		var missing *keyring.Error
		if !errors.As(err, &missing) || !missing.Missing || missing.ID != "2025-old" || !errors.Is(err, backend.ErrEncrypted) || errors.Is(err, backend.ErrUnreadable) {
			t.Errorf("%v", err)
		}
	}
}

func TestKeyring_KeysAreRead(t *testing.T) {
	key := func(n byte) string {
		s := secret(n)
		return base64.StdEncoding.EncodeToString(s[:])
	}
	for text, id := range map[string]string{
		"a:" + key(1): "a",
		"# the keys\n\n a : " + key(1) + " # first\nb:" + key(2) + "\n": "a",
		"plain\na:" + key(1):                     "",
		"b:" + key(1) + ", a:" + key(2) + "\r\n": "b",
	} {
		if r, err := keyring.Parse(t.Context(), text, nil); err != nil || r.ID() != id {
			t.Errorf("%q: %v, %v", text, r.ID(), err)
		}
	}
	many := ""
	for i := range 40 {
		many += fmt.Sprintf("k%d:%s\n", i, key(byte(i)))
	}
	for _, c := range []struct{ text, says string }{
		{"", "there is no key"},
		{"# nothing\n", "there is no key"},
		{"plain", "there is no key"},
		{"a:" + key(1) + "\nplain", "key 2, line 2: a key is written id:base64"},
		{key(1), "there is no colon"},
		{"a b:" + key(1), "key 1, line 1: the id is malformed"},
		{":" + key(1), "the id is malformed"},
		{"a:" + key(1) + "\nb:" + key(2)[1:], `key 2, line 2: key "b" is not base64`},
		{"a:" + base64.StdEncoding.EncodeToString([]byte("too short")), `key "a" has 9 bytes; 32 are wanted`},
		{"a:" + key(1) + ",a:" + key(2), `the same id, "a"`},
		{"a:" + key(1) + ",b:" + key(1), `keys "a" and "b" are the same`},
		{many, "more than 32 keys"},
	} {
		_, err := keyring.Parse(t.Context(), c.text, nil)
		if err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: %v, want %q", c.text, err, c.says)
		} else if strings.Contains(err.Error(), key(1)[:8]) || strings.Contains(err.Error(), key(2)[1:9]) {
			t.Errorf("the error has a part of a key: %v", err)
		}
	}
	k := keyring.Key{ID: "a", Secret: secret('x')}
	if text := fmt.Sprintf("%v %+v %#v %s", k, k, k, k); strings.Contains(text, "120") || strings.Contains(text, "xxx") {
		t.Errorf("printed as %s", text)
	}
}

func FuzzOpen(f *testing.F) {
	r, err := keyring.New(keyring.Key{ID: "a", Secret: secret(1)})
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := r.Seal(place(), "u", backend.EncodeBody([]byte(`{}`)))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte("s"))
	f.Add([]byte("s\x01\xff"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, err := r.Open(place(), "u", stored)
		if err == nil && len(stored) > 0 && stored[0] == backend.BodySealed && !bytes.Equal(stored, sealed) {
			t.Errorf("%q is opened as %q", stored, got)
		}
	})
}
