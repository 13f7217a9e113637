package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestReveal_ShowsEveryWriteOnlyValue(t *testing.T) {
	f := safes(t, true)
	if got, err := f.Reveal(t.Context(), safeNamed()); got != nil || err != nil {
		t.Errorf("what is absent is revealed as %v, %v", got, err)
	}
	w := f.upsertSafe(fullSafe)
	got, err := f.Reveal(t.Context(), safeNamed())
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"spec.pin 1234", "spec.door.code 77", "spec.pair.left l", "spec.pair.right r", "spec.codes[0] a"}
	var values []string
	for _, v := range got.Values {
		values = append(values, v.Path.Text(failure.StoredNames)+" "+v.Value)
		if v.Key != nil || v.Base64 {
			t.Errorf("%+v", v)
		}
	}
	if diff := cmp.Diff(want, values); diff != "" || got.Resource.Revision != w.Resource.Stored.Revision || got.Resource.UID != w.Resource.Stored.UID {
		t.Errorf("of %v (-want +got):\n%s", got.Resource, diff)
	}
	f.upsertSafe(`{"owner":"ada","pin":"","door":null,"pair":null,"codes":null}`)
	if got, err = f.Reveal(t.Context(), safeNamed()); err != nil || len(got.Values) != 0 {
		t.Errorf("what was cleared is revealed as %v, %v", got, err)
	}
}

func TestReveal_IsForSensitiveKindsThatOfferIt(t *testing.T) {
	plain, closed := safe(), safe()
	plain.Name, plain.Singular, plain.Plural = "Box", "box", "boxes"
	closed.Name, closed.Singular, closed.Plural, closed.Sensitive = "Crypt", "crypt", "crypts", true
	closed.Verbs = closed.Verbs[:len(closed.Verbs)-1]
	sensitive := safe()
	sensitive.Sensitive = true
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	for _, c := range []struct {
		kinds []descriptor.Kind
		kind  string
		says  string
	}{
		{[]descriptor.Kind{plain, closed, sensitive}, "Box", "kind Box is not sensitive, so it has no values to reveal; sensitive kinds: Crypt, Safe"},
		{[]descriptor.Kind{plain, closed, sensitive}, "Nothing", `kind "Nothing" is not known; sensitive kinds: Crypt, Safe`},
		{[]descriptor.Kind{plain}, "box", "kind Box is not sensitive, so it has no values to reveal; sensitive kinds: there are none"},
		{[]descriptor.Kind{closed}, "crypts", "kind Crypt does not offer REVEAL"},
	} {
		s, err := service.New(service.Config{Kinds: c.kinds, Store: store})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Reveal(t.Context(), kind.Identity{Kind: c.kind, Name: "s"})
		if e := servicetest.WantCode(t, err, failure.CodeBadUserInput); e.Message != c.says {
			t.Errorf("%s: %s", c.kind, e.Message)
		}
	}
}

// TestReveal_ValuesAreOfOneRevision writes, deletes and creates a resource whose owner and
// write-only values are one number, and reveals it meanwhile: all that is revealed is
// of one number, and that of the revision that is told.
func TestReveal_ValuesAreOfOneRevision(t *testing.T) {
	f := safes(t, true)
	var written sync.Map // the number of a revision
	var stop atomic.Bool
	var writers, readers sync.WaitGroup
	for n := range 3 {
		writers.Go(func() {
			for i := range 300 {
				number := fmt.Sprintf("%d-%d", n, i)
				w, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(`{"owner":"` + number + `","pin":"` + number + `","door":{"code":"` + number + `"}}`)})
				if err != nil {
					t.Error(err)
					return
				}
				written.Store(w.Resource.Stored.Revision.String(), number)
				if i%20 == 19 {
					_, _ = f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}) // another may have deleted it
				}
			}
		})
	}
	type seen struct{ revision, number string }
	var all [3][]seen
	for n := range all {
		readers.Go(func() {
			for !stop.Load() {
				got, err := f.Reveal(t.Context(), safeNamed())
				if err != nil {
					t.Error(err)
					return
				}
				if got == nil {
					continue
				}
				if len(got.Values) != 2 || got.Values[0].Value != got.Values[1].Value || !strings.Contains(string(got.Resource.Body), `"`+got.Values[0].Value+`"`) {
					t.Errorf("%+v of %s", got.Values, got.Resource.Body)
					return
				}
				all[n] = append(all[n], seen{got.Resource.Revision.String(), got.Values[0].Value})
			}
		})
	}
	writers.Wait()
	stop.Store(true)
	readers.Wait()
	looked := 0
	for _, list := range all {
		for _, s := range list {
			looked++
			if number, ok := written.Load(s.revision); !ok || number != s.number {
				t.Fatalf("revision %s is revealed with %s, and was written with %v", s.revision, s.number, number)
			}
		}
	}
	if looked == 0 {
		t.Error("nothing was revealed")
	}
}

func TestReveal_ValuesOfAnotherResourceAreNotRevealed(t *testing.T) {
	f := safes(t, true)
	f.upsertSafe(fullSafe)
	was := f.get(safeKey().Sensitive())
	if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: safeNamed()}); err != nil {
		t.Fatal(err)
	}
	f.upsertSafe(`{"owner":"ada"}`)
	f.remove(was.Key)
	f.Put(was.Key, backend.Put{UID: was.UID, Body: was.Body}) // as it was when another resource had the name
	_, err := f.Reveal(t.Context(), safeNamed())
	servicetest.WantCode(t, err, failure.CodeUnreadable)
}
