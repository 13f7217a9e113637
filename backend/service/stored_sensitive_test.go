package service_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func safeKey() backend.Key { return backend.Key{Kind: "Safe", Namespace: "default", Name: "s"} }

// upsertSafe replaces the spec of the one safe.
func (f *fixture) upsertSafe(spec string) *service.Written {
	f.T.Helper()
	out, err := f.Writer.Upsert(f.T.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(spec)})
	if err != nil {
		f.T.Fatal(err)
	}
	return out
}

func TestStored_ASensitiveValueLivesAndDiesWithItsResource(t *testing.T) {
	f := safes(t, true)
	first := f.upsertSafe(fullSafe).Resource.Stored
	if _, hidden := f.parts(safeKey()); hidden != `{"codes":["a"],"door":{"code":"77"},"pair":{"left":"l","right":"r"},"pin":"1234"}` {
		t.Errorf("apart lies %s", hidden)
	}
	if f.upsertSafe(fullSafe).Outcome != service.Unchanged {
		t.Error("the same again is a change")
	}
	second := f.upsertSafe(strings.Replace(fullSafe, "1234", "4321", 1)).Resource.Stored
	if second.Revision == first.Revision || second.SpecRevision != second.Revision {
		t.Errorf("another sensitive value is no change of the resource: %v, then %v", first.Revision, second.Revision)
	}
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil {
		t.Fatal(err)
	}
	if f.get(safeKey()) != nil || f.get(safeKey().Sensitive()) != nil {
		t.Error("something is left after the delete")
	}
	f.upsertSafe(`{"owner":"bob"}`)
	if _, hidden := f.parts(safeKey()); hidden != `{}` {
		t.Errorf("a namesake has %s", hidden)
	}
}

func TestStored_TheLogHasNoSensitiveValue(t *testing.T) {
	f := safes(t, true)
	w, err := f.Store.Watch(t.Context(), backend.Watch{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	f.upsertSafe(fullSafe)
	f.upsertSafe(strings.Replace(fullSafe, "1234", "4321", 1))
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil {
		t.Fatal(err)
	}
	var events []backend.Event
	for len(events) < 3 {
		d, err := w.Next(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		events = append(events, d.Events...)
	}
	for _, e := range events {
		if e.Resource.Key != safeKey() || strings.Contains(string(e.Resource.Body), "1234") || strings.Contains(string(e.Resource.Body), "4321") {
			t.Errorf("%v of %s: %s", e.Type, e.Resource.Key, e.Resource.Body)
		}
	}
}

func TestStored_WhatANewerGatewayStoresApartIsKept(t *testing.T) {
	f := safes(t, true)
	f.upsertSafe(fullSafe)
	// The newer one has a write-only field that this one cannot name.
	f.overwrite(safeKey().Sensitive(), `{"pin":"1234","seal":"new","door":{"code":"77","bolt":"new"}}`)
	f.upsertSafe(`{"owner":"bob","pin":"9","door":{"colour":"blue"}}`)
	shown, hidden := f.parts(safeKey())
	if strings.Contains(shown, "new") || hidden != `{"door":{"bolt":"new","code":"77"},"pin":"9","seal":"new"}` {
		t.Errorf("the resource has %s, apart lies %s", shown, hidden)
	}
}

func TestStored_AValueInTheResourceIsNewerThanTheOneApart(t *testing.T) {
	f := safes(t, true)
	f.upsertSafe(`{"owner":"ada","pin":"old","door":{"code":"1"}}`)
	// A catalogue in which the pin was not write-only has stored it.
	r := f.get(safeKey())
	f.overwrite(safeKey(), strings.Replace(string(r.Body[1:]), `"owner":"ada"`, `"owner":"ada","pin":"new"`, 1))
	f.upsertSafe(`{"owner":"bob","door":{}}`)
	if shown, hidden := f.parts(safeKey()); hidden != `{"door":{"code":"1"},"pin":"new"}` || strings.Contains(shown, "pin") {
		t.Errorf("the resource has %s, apart lies %s", shown, hidden)
	}
}

func TestStored_SensitiveValuesThatCannotBeRead(t *testing.T) {
	f := safes(t, true)
	revision := f.upsertSafe(fullSafe).Resource.Stored.Revision.String()
	spoil := func() {
		f.overwrite(safeKey().Sensitive(), `[]`)
	}
	spoil()
	_, err := f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, Patch: json.RawMessage(`{"owner":"bob"}`)})
	servicetest.WantCode(t, err, failure.CodeUnreadable)
	if got, err := f.Reader.Get(t.Context(), safeNamed()); err != nil || got == nil {
		t.Errorf("what is shown cannot be read: %v", err)
	}
	f.upsertSafe(`{"owner":"bob","pin":"1"}`)
	if _, hidden := f.parts(safeKey()); hidden != `{"pin":"1"}` {
		t.Errorf("written anew: %s", hidden)
	}
	spoil()
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil {
		t.Fatal(err)
	}
	if f.get(safeKey().Sensitive()) != nil {
		t.Error("it is left after the delete")
	}
}

// overwrite replaces the body of a record, as another gateway would.
func (f *fixture) overwrite(key backend.Key, raw string) {
	f.T.Helper()
	uid := "u"
	if got, err := f.Store.Get(f.T.Context(), key); err == nil && got[0] != nil {
		uid = got[0].UID
	}
	_, err := f.Store.Apply(f.T.Context(), backend.Batch{RequestID: "other", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{
		{Key: key, Op: backend.OpPut, Put: backend.Put{UID: uid, Body: backend.EncodeBody([]byte(raw))}},
	}})
	if err != nil {
		f.T.Fatal(err)
	}
}

func TestStored_WritersOfOneSensitiveResourceLoseNothing(t *testing.T) {
	f := safes(t, true)
	k := safe()
	k.Sensitive = true
	other, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: f.Store})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for n := range 8 {
		s := []*service.Service{f.Service, other}[n%2]
		wg.Go(func() {
			for i := range 50 {
				pin := fmt.Sprintf("%d-%d", n, i)
				_, err := s.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(`{"owner":"` + pin + `","pin":"` + pin + `"}`)})
				if err == nil && i%10 == 9 {
					_, err = s.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()})
				}
				var e *failure.Error
				if err != nil && !(errors.As(err, &e) && e.Code == failure.CodeNotFound) {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	f.upsertSafe(`{"owner":"last"}`) // keeps the pin
	shown, hidden := f.parts(safeKey())
	if shown != `{"owner":"last"}` || !strings.Contains(hidden, "pin") && hidden != "{}" {
		t.Errorf("%s and %s", shown, hidden)
	}
}
