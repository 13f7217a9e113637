package catalogue_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/catalogue"
	"github.com/sluicegw/sluice/backend/descriptor"
)

// purge purges what one catalogue does not name; what is like "Shelf" or "Shelf.spec.owner".
func (f *fixture) purge(what string, served []descriptor.Kind, dry bool) (catalogue.Purged, error) {
	f.Helper()
	kind, path, _ := strings.Cut(what, ".")
	return f.gate.Purge(f.Context(), catalogue.Purge{Kind: kind, Path: path, Served: catalogue.OutlineOf(served), Actor: "somebody", DryRun: dry})
}

func (f *fixture) count(kind string) int {
	f.Helper()
	page, err := f.store.Range(f.Context(), backend.Range{Kind: kind, Count: true})
	if err != nil {
		f.Fatal(err)
	}
	return page.Count
}

// bind lets one shelf rely on another one.
func (f *fixture) bind(name, to string) {
	f.Helper()
	key := backend.Key{Kind: "Shelf", Namespace: "default", Name: name}
	put := backend.Put{UID: name, Body: backend.EncodeBody([]byte(`{"spec":{"width":1}}`)), Declared: "d", Refs: []backend.Ref{{Key: backend.Key{Kind: "Shelf", Namespace: "default", Name: to}, Bound: true}}}
	if _, err := f.store.Apply(f.Context(), backend.Batch{RequestID: name + " on " + to, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}}}); err != nil {
		f.Fatal(err)
	}
}

func TestPurge_RemovesTheResourcesOfAKindThatNoCatalogueNames(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	for i := range 1100 { // more than two pages
		f.put(fmt.Sprintf("s%04d", i), `{"spec":{"width":1}}`)
	}
	f.labelled("x", "l")
	f.bind("s0001", "s0500") // held by one that comes before it
	f.bind("s0900", "s0002")
	_ = f.accept(other(), true)
	dry, err := f.purge("Shelf", other(), true)
	if err != nil || dry.Removed != 1101 || dry.Kept != 0 || f.count("Shelf") != 1101 {
		t.Fatalf("a dry run: %+v %v, %d left", dry, err, f.count("Shelf"))
	}
	out, err := f.purge("Shelf", other(), false)
	if err != nil || out.Removed != 1101 || out.Kept != 0 || f.count("Shelf") != 0 || f.count("Label") != 1 {
		t.Errorf("%+v %v, %d left, labels %d", out, err, f.count("Shelf"), f.count("Label"))
	}
}

func TestPurge_KeepsWhatOthersRelyOnAndWhatFinalizersHold(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.labelled("a", "l") // the Label is of the kind that goes
	one := 1
	key := backend.Key{Kind: "Label", Namespace: "default", Name: "final"}
	put := backend.Put{UID: "final", Finalizers: &one, Body: backend.EncodeBody([]byte(`{"spec":{}}`))}
	if _, err := f.store.Apply(t.Context(), backend.Batch{RequestID: "final", Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}}}); err != nil {
		t.Fatal(err)
	}
	for _, dry := range []bool{true, false} {
		out, err := f.purge("Label", shelf(nil), dry)
		why := strings.Join(out.Why, "; ")
		if err != nil || out.Removed != 0 || out.Kept != 2 || why != "Label/default/final has finalizers: serve its kind again, and let its controller remove them; Label/default/l is held by Shelf/default/a" {
			t.Errorf("dry run %v: %+v %v", dry, out, err)
		}
	}
	if n := f.count("Label"); n != 2 {
		t.Errorf("%d are left", n)
	}
}

func TestPurge_RemovesTheValuesOfAFieldAndNothingElse(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	f.put("a", `{"spec":{"width":1.50,"owner":{"name":"x"},"label":"<é>"}}`)
	f.put("b", `{"spec":{"width":1}}`)
	_ = f.accept(ownerless(), true)
	for _, c := range []struct {
		dry  bool
		body string
	}{{true, `{"spec":{"width":1.50,"owner":{"name":"x"},"label":"<é>"}}`}, {false, `{"spec":{"width":1.50,"label":"<é>"}}`}} {
		out, err := f.purge("Shelf.spec.owner", ownerless(), c.dry)
		if err != nil || out.Removed != 1 || out.Kept != 0 {
			t.Errorf("%+v %v", out, err)
		}
		got, err := f.store.Get(t.Context(), backend.Key{Kind: "Shelf", Namespace: "default", Name: "a"})
		if err != nil {
			t.Fatal(err)
		}
		if body, _ := backend.DecodeBody(got[0].Body); string(body) != c.body {
			t.Errorf("%s, want %s", body, c.body)
		}
	}
}

func TestPurge_RefusesWhatTheCatalogueNames(t *testing.T) {
	f := setup(t)
	_ = f.accept(shelf(nil), false)
	for what, says := range map[string]string{
		"Shelf":            "kind Shelf is in the catalogue",
		"Shelf.spec.owner": "Shelf.spec.owner is in the catalogue",
		"Shelf.spec":       "a path is wanted",
		"Shelf.metadata.a": "a path is wanted",
		"Shelf.spec.x.y":   "Shelf.spec.x is no object of the catalogue",
		"Other.spec.x":     "kind Other is not in the catalogue",
		"_catalogue":       "is no kind",
		"":                 "is no kind",
	} {
		_, err := f.purge(what, shelf(nil), false)
		var refused *catalogue.PurgeError
		if !errors.As(err, &refused) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %s", what, err, says)
		}
	}
	if _, err := f.purge("Shelf", other(), false); err == nil || !strings.Contains(err.Error(), "another gateway serves a newer catalogue") {
		t.Errorf("an older gateway: %v", err)
	}
}

// wrongKeys decrypt nothing.
type wrongKeys struct{ catalogue.Keys }

func (wrongKeys) Open(backend.Key, string, []byte) ([]byte, error) { return nil, backend.ErrEncrypted }

func TestPurge_KeepsSensitiveValuesThatCannotBeRead(t *testing.T) {
	f := setup(t)
	served := shelf(func(k *descriptor.Kind) { k.Sensitive = true })
	_ = f.accept(served, false)
	f.put("a", `{"spec":{"width":1}}`)
	key := backend.Key{Kind: "Shelf", Namespace: "default", Name: "a"}.Sensitive()
	put := backend.Put{UID: "a", Body: backend.EncodeBody([]byte(`{"code":"c","pin":1}`))}
	store := func(id string) {
		t.Helper()
		_, err := f.store.Apply(t.Context(), backend.Batch{
			RequestID: id, Deadline: time.Now().Add(time.Minute), Actions: []backend.Action{{Key: key, Op: backend.OpPut, Put: put}},
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	store("values")
	purge := catalogue.Purge{Kind: "Shelf", Path: "spec.code", Served: catalogue.OutlineOf(served), Keys: wrongKeys{}}
	out, err := f.gate.Purge(t.Context(), purge)
	if err != nil || out.Removed != 0 || fmt.Sprint(out.Why) != "[Shelf/default/a has sensitive values that this gateway cannot decrypt]" {
		t.Errorf("encrypted: %+v %v", out, err)
	}
	purge.Keys = nil
	out, err = f.gate.Purge(t.Context(), purge)
	if err != nil || out.Removed != 1 || out.Kept != 0 {
		t.Errorf("plain: %+v %v", out, err)
	}
	got, err := f.store.Get(t.Context(), key)
	if err != nil || string(got[0].Body[1:]) != `{"pin":1}` {
		t.Errorf("%s %v", got[0].Body, err)
	}
	put.Body = []byte("no body")
	store("damage")
	out, err = f.gate.Purge(t.Context(), purge)
	if err != nil || fmt.Sprint(out.Why) != "[Shelf/default/a has sensitive values that cannot be read]" {
		t.Errorf("damaged: %+v %v", out, err)
	}
}
