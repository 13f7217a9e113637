package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/zap"
	"go.uber.org/zap/zaptest/observer"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/keyring"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// keysOf is a keyring with a key for each id, nil for none.
func keysOf(t *testing.T, ids ...string) *keyring.Keyring {
	t.Helper()
	if len(ids) == 0 {
		return nil
	}
	var keys []keyring.Key
	for _, id := range ids {
		k := keyring.Key{ID: id}
		copy(k.Secret[:], strings.Repeat(id, keyring.KeyBytes))
		keys = append(keys, k)
	}
	r, err := keyring.New(keys...)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// sealed is a gateway over a store of safes, with keys; its log is told too.
func sealed(t *testing.T, store *memory.Store, ids ...string) (*fixture, *observer.ObservedLogs) {
	t.Helper()
	core, logs := observer.New(zap.DebugLevel)
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{sensitiveSafe()}, Store: store, Keys: keysOf(t, ids...), Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}, logs
}

// sensitiveSafe is a safe whose write-only values lie apart.
func sensitiveSafe() descriptor.Kind {
	k := safe()
	k.Sensitive = true
	return k
}

func memoryStore(t *testing.T) *memory.Store {
	t.Helper()
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	return store
}

// pin is the revealed pin.
func (f *fixture) pin() string {
	f.T.Helper()
	got, err := f.Reveal(f.T.Context(), safeNamed())
	if err != nil {
		f.T.Fatal(err)
	}
	for _, v := range got.Values {
		if v.Path.Text(failure.StoredNames) == "spec.pin" {
			return v.Value
		}
	}
	return ""
}

// sealedWith is the id of the key that has encrypted the values, empty for none.
func (f *fixture) sealedWith() string {
	f.T.Helper()
	body := f.get(safeKey().Sensitive()).Body
	if body[0] != backend.BodySealed {
		return ""
	}
	return string(body[3 : 3+body[2]])
}

func TestReseal_ValuesAreEncryptedByTheFirstKeyAndDecryptedByAll(t *testing.T) {
	store := memoryStore(t)
	for _, step := range []struct {
		keys  []string
		write bool
		with  string
	}{
		{nil, true, ""},
		{[]string{"a"}, false, ""}, // plain stays readable
		{[]string{"a"}, true, "a"}, // and is encrypted by the next write
		{[]string{"a", "b"}, false, "a"},
		{[]string{"b", "a"}, false, "a"},
		{[]string{"b", "a"}, true, "b"},
		{[]string{"b"}, true, "b"},
	} {
		f, _ := sealed(t, store, step.keys...)
		if step.write {
			f.upsertSafe(`{"owner":"` + fmt.Sprint(len(step.keys), step.with) + `","pin":"1234","door":{"code":"77"}}`)
			f.upsertSafe(`{"owner":"again","door":{}}`) // keeps both
		}
		if with := f.sealedWith(); with != step.with || f.pin() != "1234" {
			t.Errorf("keys %v: encrypted with %q, pin %q", step.keys, with, f.pin())
		}
		if body := string(f.get(safeKey().Sensitive()).Body); step.with != "" && (strings.Contains(body, "1234") || strings.Contains(body, "pin")) {
			t.Errorf("keys %v: stored is %q", step.keys, body)
		}
	}
}

func TestReseal_TheSameAgainIsUnchangedWhereValuesAreEncrypted(t *testing.T) {
	f, _ := sealed(t, memoryStore(t), "a")
	f.upsertSafe(fullSafe)
	if w := f.upsertSafe(fullSafe); w.Outcome != service.Unchanged {
		t.Errorf("%+v", w)
	}
}

func TestReseal_AMissingKeyLosesNothing(t *testing.T) {
	store := memoryStore(t)
	was, _ := sealed(t, store, "a")
	revision := was.upsertSafe(fullSafe).Resource.Stored.Revision.String()
	for name, keys := range map[string][]string{"none": nil, "another": {"b"}} {
		f, logs := sealed(t, store, keys...)
		for verb, write := range map[string]func() error{
			"reveal": func() error { _, err := f.Reveal(t.Context(), safeNamed()); return err },
			"upsert": func() error {
				_, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(`{"owner":"bob"}`)})
				return err
			},
			"patch": func() error {
				_, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, Patch: json.RawMessage(`{"owner":"bob"}`)})
				return err
			},
		} {
			e := servicetest.WantCode(t, write(), failure.CodeUnreadable)
			if want := `Safe "s" in namespace "default" has values that this gateway cannot decrypt: encrypted with key "a", which this gateway does not have`; e.Message != want {
				t.Errorf("keys %s, %s: %s", name, verb, e.Message)
			}
		}
		if n := logs.FilterMessage("stored resource is unreadable").Len(); n != 1 {
			t.Errorf("%d lines in the log, want one of the resource", n)
		}
		if got, err := f.Reader.Get(t.Context(), safeNamed()); err != nil || got == nil {
			t.Errorf("what is shown cannot be read: %v", err)
		}
	}
	if was.pin() != "1234" {
		t.Error("the values are lost")
	}
	f, _ := sealed(t, store)
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil || f.get(safeKey().Sensitive()) != nil {
		t.Errorf("it cannot be deleted: %v", err)
	}
}

func TestReseal_AGatewayWithoutKeysSaysThatValuesAreEncrypted(t *testing.T) {
	store := memoryStore(t)
	was, _ := sealed(t, store, "a")
	was.upsertSafe(fullSafe)
	f, logs := sealed(t, store)
	const says = "sensitive values are encrypted, and this gateway has no keys: what it writes is stored in plain form"
	f.runUntil(logs, says)
	if line := logs.FilterMessage(says).All()[0].ContextMap(); fmt.Sprint(line["keys"]) != "[a]" {
		t.Errorf("%v", line)
	}
}

func TestReseal_WithoutTheKeyMetadataCanBeChanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memoryStore(t)
		was, _ := sealed(t, store, "a")
		revision := was.upsertSafe(fullSafe).Resource.Stored.Revision.String()
		f, _ := sealed(t, store, "b")
		patch := func(m service.MetadataPatch) {
			t.Helper()
			w, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, MetadataPatch: m})
			if err != nil {
				t.Fatal(err)
			}
			revision = w.Resource.Stored.Revision.String()
		}
		patch(servicetest.Labelled("a", "b"))
		if got := was.pin(); got != "1234" {
			t.Errorf("pin %q", got)
		}
		w, err := f.Writer.Update(t.Context(), service.UpdateRequest{
			Identity: safeNamed(), ExpectedRevision: revision, Spec: json.RawMessage(`{"owner":"ada","door":{"colour":"red"}}`),
			Metadata: service.Metadata{Description: service.Optional[string]{Set: true, Value: "of ada"}},
		})
		if err != nil || was.pin() != "1234" {
			t.Fatalf("what says the same of the spec: %v, pin %q", err, was.pin())
		}
		revision = w.Resource.Stored.Revision.String()
		patch(finalizers("example.org/x"))
		if w, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil || w.Deletion != service.Finalizing {
			t.Fatalf("%+v, %v", w, err)
		}
		revision = f.get(safeKey()).Revision.String()
		patch(without("example.org/x"))
		h := &house{&servicetest.House{Service: f.Service, T: t, Store: store}}
		defer h.Start()()
		h.Until("it is gone", func() bool { return f.get(safeKey()) == nil && f.get(safeKey().Sensitive()) == nil })
	})
}

func TestReseal_WithoutTheKeyAllValuesCanBeWrittenAnew(t *testing.T) {
	for name, c := range map[string]struct {
		spec string
		ok   bool
	}{
		"each is given":                {`{"owner":"ada","pin":"99","door":{"code":"1"},"pair":{"left":"x"},"codes":["b"]}`, true},
		"an object is left out":        {`{"owner":"ada","pin":"99","pair":{"left":"x"},"codes":["b"]}`, true},
		"some are cleared":             {`{"owner":"ada","pin":"99","pair":null,"codes":[]}`, false},
		"all are cleared":              {`{"owner":"ada","pin":null,"pair":null,"codes":null}`, false},
		"one is left out":              {`{"owner":"ada","pin":"99","pair":{"left":"x"}}`, false},
		"one in an object is left out": {`{"owner":"ada","pin":"99","pair":{"left":"x"},"codes":["b"],"door":{"colour":"red"}}`, false},
	} {
		t.Run(name, func(t *testing.T) {
			store := memoryStore(t)
			was, _ := sealed(t, store, "a")
			was.upsertSafe(fullSafe)
			f, _ := sealed(t, store, "b")
			_, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(c.spec)})
			if !c.ok {
				servicetest.WantCode(t, err, failure.CodeUnreadable)
				if got := was.pin(); got != "1234" {
					t.Errorf("pin %q", got)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			got, err := f.Reveal(t.Context(), safeNamed())
			if err != nil || f.sealedWith() != "b" {
				t.Fatalf("encrypted with %q, %v", f.sealedWith(), err)
			}
			for _, v := range got.Values {
				if v.Value == "1234" || v.Value == "77" || v.Value == "r" {
					t.Errorf("%+v is kept", v)
				}
			}
		})
	}
}

func TestReseal_ValuesAreOfNoUseUnderAnotherNameOrUID(t *testing.T) {
	f, _ := sealed(t, memoryStore(t), "a")
	f.upsertSafe(fullSafe)
	first := f.get(safeKey().Sensitive())
	other := kind.Identity{Kind: "Safe", Name: "other"}
	if _, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: other, Spec: json.RawMessage(`{"owner":"eve","pin":"0"}`)}); err != nil {
		t.Fatal(err)
	}
	key := safeKey()
	key.Name = "other"
	mine := f.get(key.Sensitive())
	for what, uid := range map[string]string{"with the uid of the other": mine.UID, "with its own": first.UID} {
		f.remove(key.Sensitive())
		f.Put(key.Sensitive(), backend.Put{UID: uid, Body: first.Body})
		_, err := f.Reveal(t.Context(), other)
		if servicetest.WantCode(t, err, failure.CodeUnreadable); err != nil && strings.Contains(err.Error(), "1234") {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// remove deletes a record, as nobody does.
func (f *fixture) remove(key backend.Key) {
	f.T.Helper()
	if _, err := f.Store.Apply(f.T.Context(), backend.Batch{RequestID: "remove", Deadline: f.Store.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpDelete}}}); err != nil {
		f.T.Fatal(err)
	}
}

// runUntil runs the service until its log has a line.
func (f *fixture) runUntil(logs *observer.ObservedLogs, message string) {
	f.T.Helper()
	ctx, stop := context.WithTimeout(f.T.Context(), time.Minute)
	ended := make(chan error, 1)
	go func() { ended <- f.Run(ctx) }()
	for logs.FilterMessage(message).Len() == 0 && ctx.Err() == nil {
		_, _ = f.Reader.Get(ctx, safeNamed())
	}
	if ctx.Err() != nil {
		f.T.Errorf("the log never said %q", message)
	}
	stop()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		f.T.Error(err)
	}
}

func TestReseal_WhatIsStoredIsEncryptedAnew(t *testing.T) {
	store := memoryStore(t)
	plain, _ := sealed(t, store)
	revision := plain.upsertSafe(fullSafe).Resource.Stored.Revision
	for i := range 150 {
		id := kind.Identity{Kind: "Safe", Name: fmt.Sprint("n", i)}
		if _, err := plain.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: id, Spec: json.RawMessage(`{"owner":"ada","pin":"planted"}`)}); err != nil {
			t.Fatal(err)
		}
	}
	const done = "sensitive values are encrypted"
	for _, keys := range [][]string{{"a"}, {"b", "a"}, {"b"}} {
		f, logs := sealed(t, store, keys...)
		f.runUntil(logs, done)
		line := logs.FilterMessage(done).All()[0].ContextMap()
		want := map[bool]int64{true: 0, false: 151}[len(keys) == 1 && keys[0] == "b"]
		if line["key"] != keys[0] || line["encryptedNow"] != want || line["leftAsTheyAre"] != int64(0) {
			t.Errorf("keys %v: %v", keys, line)
		}
		page, err := store.Range(t.Context(), backend.Range{Kind: backend.SensitiveKind("Safe"), Limit: 1000})
		if err != nil || len(page.Resources) != 151 {
			t.Fatalf("%d records, %v", len(page.Resources), err)
		}
		for _, r := range page.Resources {
			if !keysOf(t, keys...).Current(r.Body) {
				t.Errorf("keys %v: %s is stored as %.20q", keys, r.Key, r.Body)
			}
		}
		if got := f.get(safeKey()); got.Revision != revision || f.pin() != "1234" {
			t.Errorf("keys %v: the resource has changed", keys)
		}
	}
	decrypting, err := service.New(service.Config{Kinds: []descriptor.Kind{sensitiveSafe()}, Store: store, Keys: keysOf(t, "b").Plain()})
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{&servicetest.Fixture{Service: decrypting, T: t, Store: store}}
	f.upsertSafe(`{"owner":"plain","pin":"1234"}`)
	if f.sealedWith() != "" {
		t.Error("a keyring that decrypts alone has encrypted")
	}
	b, _ := sealed(t, store, "b")
	b.upsertSafe(`{"owner":"sealed"}`)
	if got, _ := b.Reveal(t.Context(), kind.Identity{Kind: "Safe", Name: "n0"}); got == nil || got.Values[0].Value != "planted" {
		t.Errorf("%+v", got)
	}
	f, logs := sealed(t, store, "c") // b is gone
	f.runUntil(logs, done)
	if line := logs.FilterMessage(done).All()[0].ContextMap(); line["leftAsTheyAre"] != int64(151) {
		t.Errorf("%v", line)
	}
	if b, _ := sealed(t, store, "b"); b.pin() != "1234" {
		t.Error("what could not be decrypted was changed")
	}
	other := keyring.Key{ID: "b"} // other bytes
	ring, err := keyring.New(other)
	if err != nil {
		t.Fatal(err)
	}
	core, logs := observer.New(zap.DebugLevel)
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{sensitiveSafe()}, Store: store, Keys: ring, Logger: zap.New(core)})
	if err != nil {
		t.Fatal(err)
	}
	(&fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}).runUntil(logs, done)
	if line := logs.FilterMessage(done).All()[0].ContextMap(); line["leftAsTheyAre"] != int64(151) {
		t.Errorf("with another key of the same id: %v", line)
	}
}

func TestReseal_WithoutTheKeyValuesKeepTheirExpiry(t *testing.T) {
	store := memoryStore(t)
	k := sensitiveSafe()
	k.Expires = true
	serve := func(id string) *fixture {
		s, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: store, Keys: keysOf(t, id)})
		if err != nil {
			t.Fatal(err)
		}
		return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
	}
	was, f := serve("a"), serve("b")
	revision := was.upsertSafe(fullSafe).Resource.Stored.Revision.String()
	later := service.MetadataPatch{ExpiresAt: service.ExpiresAt(time.Now().Add(time.Hour))}
	patch := func(f *fixture) error {
		_, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, MetadataPatch: later})
		return err
	}
	servicetest.WantCode(t, patch(f), failure.CodeUnreadable)
	if err := patch(was); err != nil {
		t.Fatal(err)
	}
	if a, b := f.get(safeKey()).ExpiresAt, f.get(safeKey().Sensitive()).ExpiresAt; a.IsZero() || !a.Equal(b) {
		t.Errorf("the resource expires at %v, its values at %v", a, b)
	}
}
