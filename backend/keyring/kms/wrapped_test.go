package kms_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend/keyring/kms"
	"github.com/sluicegw/sluice/backend/keyring/kms/kmstest"
)

func TestWrapped_DamageIsNotSentToThePlugin(t *testing.T) {
	server := kmstest.Start(t, "first")
	p := open(t, server.Socket, time.Minute)
	for name, wrapped := range map[string][]byte{
		"nothing":          {},
		"no message":       []byte("\xff\xff"),
		"no id of the key": []byte("\x0a\x01c"),
		"no ciphertext":    []byte("\x12\x01k"),
		"too large":        append([]byte("\x12\x01k\x0a\x81\x08"), make([]byte, 1025)...),
	} {
		_, err := p.Unwrap(t.Context(), wrapped)
		if err == nil || !strings.Contains(err.Error(), "no wrapped key") {
			t.Errorf("%s: %v", name, err)
		}
	}
	if server.Calls() > 0 {
		t.Errorf("the plugin was asked %d times", server.Calls())
	}
}

func FuzzWrappingKeyID(f *testing.F) {
	p, err := kms.New(kms.Config{Socket: "/nowhere"})
	if err != nil {
		f.Fatal(err)
	}
	f.Add([]byte("\x12\x01k\x0a\x01c\x1a\x06\x0a\x01a\x12\x01b"))
	f.Fuzz(func(t *testing.T, wrapped []byte) {
		id, err := p.WrappingKeyID(wrapped)
		if err == nil && (id == "" || len(id) > 1024) {
			t.Errorf("accepted the id %q", id)
		}
	})
}
