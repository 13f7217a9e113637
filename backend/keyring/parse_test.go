package keyring_test

import (
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/keyring/kms"
	"github.com/sluicegw/sluice/backend/keyring/kms/kmstest"
)

// plugin starts a plugin, and returns it with its client.
func plugin(t *testing.T) (*kmstest.Plugin, *kms.Plugin) {
	t.Helper()
	server := kmstest.Start(t, "kek-1")
	client, err := kms.New(kms.Config{Socket: server.Socket, Timeout: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return server, client
}

func TestParse_WrappedKeysSealAndOpenAsTheKeysThemselvesDo(t *testing.T) {
	_, client := plugin(t)
	plain := keyring.Key{ID: "a", Secret: secret('a')}
	line, err := plain.Wrapped(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(line, "a:kms:") || strings.Contains(line, plain.Line()[2:]) {
		t.Errorf("wrapped as %s", line)
	}
	b := keyring.Key{ID: "b", Secret: secret('b')}
	r, err := keyring.Parse(t.Context(), "# keys\n"+b.Line()+"\n"+line+" # old\n", client)
	if err != nil {
		t.Fatal(err)
	}
	body := backend.EncodeBody([]byte(`{"data":{}}`))
	before, err := ring(t, "a").Seal(place(), "u", body) // by a gateway that has the key without a KMS
	if err != nil {
		t.Fatal(err)
	}
	if got, err := r.Open(place(), "u", before); err != nil || string(got) != string(body) {
		t.Errorf("what was encrypted before the key was wrapped: %q %v", got, err)
	}
	after, err := r.Seal(place(), "u", body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ring(t, "b").Open(place(), "u", after); err != nil || string(got) != string(body) {
		t.Errorf("%q %v", got, err)
	}
}

func TestParse_AWrappedKeyNeedsTheKMSThatHasWrappedIt(t *testing.T) {
	server, client := plugin(t)
	line, err := keyring.Key{ID: "a", Secret: secret('a')}.Wrapped(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	_, err = keyring.Parse(t.Context(), line, nil)
	if err == nil || !strings.Contains(err.Error(), `key 1, line 1: key "a" is wrapped by a KMS`) || !strings.Contains(err.Error(), "encryption-kms") {
		t.Errorf("without a KMS: %v", err)
	}
	var failed *keyring.KMSError
	if errors.As(err, &failed) {
		t.Errorf("no KMS has failed: %v", err)
	}
	server.SetFailure(errors.New("sealed"))
	if _, err = keyring.Parse(t.Context(), "\n"+line, client); !errors.As(err, &failed) ||
		!strings.Contains(err.Error(), `key 1, line 2: key "a": decrypt with the key "kek-1" of the KMS`) {
		t.Errorf("with a KMS that fails: %v", err)
	}
	for text, says := range map[string]string{
		"a:kms:":        `key "a" has nothing behind "kms:"`,
		"a:kms:AAA":     `key "a" is not base64`,
		"a:kms:////":    `key "a": what stands behind kms: is no wrapped key`,
		"a:kms:CgFj":    "the id of its key has 0 bytes",
		"a: kms : CgFj": `key "a" is not base64`,
	} {
		if _, err := keyring.Parse(t.Context(), text, client); err == nil || !strings.Contains(err.Error(), says) || errors.As(err, &failed) {
			t.Errorf("%q: %v, want %s", text, err, says)
		}
	}
}

func TestWrap_WrapsWhatTheCurrentKeyOfTheKMSHasNotAndLeavesTheRest(t *testing.T) {
	server, client := plugin(t)
	a := keyring.Key{ID: "a", Secret: secret('a')}
	b := keyring.Key{ID: "b", Secret: secret('b')}
	text := "# keys of the gateway\nplain\n" + a.Line() + " # since 2026\n\n  " + b.Line() + ",\n"
	first, count, err := keyring.Wrap(t.Context(), text, client, "kek-1")
	if err != nil || count != 2 {
		t.Fatalf("%d %v", count, err)
	}
	shape := regexp.MustCompile(`^# keys of the gateway\nplain\na:kms:\S+ # since 2026\n\n  b:kms:\S+,\n$`)
	if !shape.MatchString(first) || strings.Contains(first, a.Line()[2:]) || strings.Contains(first, b.Line()[2:]) {
		t.Error(first)
	}
	if again, count, err := keyring.Wrap(t.Context(), first, client, "kek-1"); err != nil || count != 0 || again != first {
		t.Errorf("again: %d %v\n%s", count, err, again)
	}
	server.SetKey("kek-2")
	before, err := keyring.Parse(t.Context(), first, client)
	if err != nil || strings.Join(before.WrappedOtherwise("kek-2"), ",") != "a,b" || before.WrappedOtherwise("kek-1") != nil {
		t.Errorf("%v %v", before.WrappedOtherwise("kek-2"), err)
	}
	second, count, err := keyring.Wrap(t.Context(), first, client, "kek-2")
	if err != nil || count != 2 || second == first {
		t.Errorf("%d %v", count, err)
	}
	after, err := keyring.Parse(t.Context(), second, client)
	if err != nil || after.ID() != "" || after.WrappedOtherwise("kek-2") != nil {
		t.Errorf("%q %v %v", after.ID(), after.WrappedOtherwise("kek-2"), err)
	}
	sealed, err := ring(t, "b", "a").Seal(place(), "u", []byte("body"))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := after.Open(place(), "u", sealed); err != nil || string(got) != "body" {
		t.Errorf("%q %v", got, err)
	}
}

func TestWrap_AKMSThatDecryptsSomethingElseIsNotBelieved(t *testing.T) {
	server, client := plugin(t)
	server.Garble(true)
	a := keyring.Key{ID: "a", Secret: secret('a')}
	_, _, err := keyring.Wrap(t.Context(), a.Line(), client, "kek-1")
	var failed *keyring.KMSError
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), "decrypts another key") {
		t.Errorf("%v", err)
	}
	if strings.Contains(err.Error(), a.Line()[2:]) {
		t.Errorf("it has the key: %v", err)
	}
}

func TestParse_AKMSThatDecryptsAnotherKeyIsRefused(t *testing.T) {
	server, client := plugin(t)
	a := keyring.Key{ID: "a", Secret: secret('a')}
	line, err := a.Wrapped(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	unchecked := line[:strings.LastIndex(line, ":")] // as earlier programs wrote it
	for name, c := range map[string]struct {
		text   string
		garble bool
		says   string
	}{
		"the key that was wrapped":      {text: line},
		"without a check value":         {text: unchecked},
		"in capital letters":            {text: unchecked + strings.ToUpper(line[len(unchecked):])},
		"under another id":              {text: "b" + line[1:], says: `key "b": the plugin at ` + server.Socket + ` decrypts another key`},
		"with another check value":      {text: unchecked + ":0123456789abcdef", says: "its check value is another one"},
		"with half a check value":       {text: line[:len(line)-8], says: "that is not 16 hexadecimal digits"},
		"with what is no check value":   {text: unchecked + ":0123456789abcdeg", says: "that is not 16 hexadecimal digits"},
		"the KMS decrypts another key":  {text: line, garble: true, says: `the key of the KMS that has the id "kek-1"`},
		"which nobody can notice":       {text: unchecked, garble: true},
		"and one that is plain besides": {text: "b:" + keyring.Key{ID: "b", Secret: secret('b')}.Line()[2:] + "\n" + line, garble: true, says: "key 2, line 2"},
	} {
		server.Garble(c.garble)
		_, err := keyring.Parse(t.Context(), c.text, client)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
		if err != nil && (strings.Contains(err.Error(), a.Line()[2:10]) || strings.Contains(err.Error(), "aaaa")) {
			t.Errorf("%s: it has a part of the key: %v", name, err)
		}
	}
}

func TestWrap_AddsCheckValues(t *testing.T) {
	_, client := plugin(t)
	line, err := keyring.Key{ID: "a", Secret: secret('a')}.Wrapped(t.Context(), client)
	if err != nil {
		t.Fatal(err)
	}
	unchecked := line[:strings.LastIndex(line, ":")]
	out, count, err := keyring.Wrap(t.Context(), unchecked+" # old", client, "kek-1")
	if err != nil || count != 1 || !strings.HasSuffix(out, line[len(unchecked):]+" # old") {
		t.Errorf("%d %v\n%s", count, err, out)
	}
}

func TestGenerate_MakesKeysThatDiffer(t *testing.T) {
	one, err1 := keyring.Generate("2026-07")
	two, err2 := keyring.Generate("2026-07")
	if err := errors.Join(err1, err2); err != nil || one.Secret == two.Secret {
		t.Errorf("%v", err)
	}
	if r, err := keyring.Parse(t.Context(), one.Line(), nil); err != nil || r.ID() != "2026-07" {
		t.Errorf("%v", err)
	}
	if _, err := keyring.Generate("no id"); err == nil || !strings.Contains(err.Error(), "malformed") {
		t.Errorf("%v", err)
	}
}
