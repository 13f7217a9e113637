package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
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

// safe is a kind with write-only fields.
func safe() descriptor.Kind {
	text := func(name string, hidden bool) descriptor.Field {
		return descriptor.Field{Name: name, Type: descriptor.TypeString, WriteOnly: hidden, Constraint: descriptor.Constraint{MaxLength: new(20)}}
	}
	door := &descriptor.Shape{Name: "Door", Fields: []descriptor.Field{text("colour", false), text("code", true)}}
	pair := &descriptor.Shape{Name: "Pair", Fields: []descriptor.Field{text("left", false), text("right", false)}}
	return descriptor.Kind{
		Name: "Safe", Singular: "safe", Plural: "safes", Group: "example.org", Version: "v1", Scope: descriptor.Namespaced,
		Verbs: []descriptor.Verb{descriptor.VerbGet, descriptor.VerbCreate, descriptor.VerbUpdate, descriptor.VerbPatch, descriptor.VerbUpsert, descriptor.VerbFinalize, descriptor.VerbDelete, descriptor.VerbReveal},
		Spec: &descriptor.Shape{Name: "SafeSpec", MinProperties: 1, Fields: []descriptor.Field{
			text("owner", false), text("pin", true),
			{Name: "door", Type: descriptor.TypeObject, Shape: door},
			{Name: "pair", Type: descriptor.TypeObject, Shape: pair, WriteOnly: true},
			{Name: "codes", Type: descriptor.TypeString, List: true, ListType: descriptor.ListSet, WriteOnly: true, Constraint: descriptor.Constraint{MaxItems: new(3), MaxLength: new(20)}},
		}},
	}
}

const fullSafe = `{"owner":"ada","pin":"1234","door":{"colour":"red","code":"77"},"pair":{"left":"l","right":"r"},"codes":["a"]}`

func TestWrite_WhatIsLeftOutOfAWriteOnlyFieldIsKept(t *testing.T) {
	manifest := func(spec string) string {
		return `{"apiVersion":"example.org/v1","kind":"Safe","metadata":{"name":"s"},"spec":` + spec + `}`
	}
	for name, c := range map[string]struct{ patch, spec, want string }{
		"nothing is given":                        {"", `{"owner":"bob"}`, `{"owner":"bob","pin":"1234","pair":{"left":"l","right":"r"},"codes":["a"]}`},
		"the spec has nothing but what is kept":   {"", `{}`, `{"pin":"1234","pair":{"left":"l","right":"r"},"codes":["a"]}`},
		"an object is there":                      {"", `{"door":{"colour":"blue"}}`, `{"door":{"colour":"blue","code":"77"},"pin":"1234","pair":{"left":"l","right":"r"},"codes":["a"]}`},
		"an object is empty":                      {"", `{"door":{}}`, `{"door":{"code":"77"},"pin":"1234","pair":{"left":"l","right":"r"},"codes":["a"]}`},
		"null clears":                             {"", `{"owner":"bob","pin":null,"door":{"code":null},"pair":null,"codes":null}`, `{"owner":"bob","door":{}}`},
		"what is empty clears":                    {"", `{"owner":"bob","pin":"","door":{"code":""},"pair":{},"codes":[]}`, `{"owner":"bob","door":{}}`},
		"an object of nulls clears":               {"", `{"owner":"bob","pin":"1","pair":{"left":null},"codes":["b"]}`, `{"owner":"bob","pin":"1","codes":["b"]}`},
		"an object is replaced":                   {"", `{"pin":"","codes":[],"pair":{"left":"x"}}`, `{"pair":{"left":"x"}}`},
		"a patch keeps":                           {`{"owner":"bob"}`, "", `{"owner":"bob","pin":"1234","door":{"colour":"red","code":"77"},"pair":{"left":"l","right":"r"},"codes":["a"]}`},
		"a patch clears by null":                  {`{"pin":null,"door":{"code":null},"pair":null,"codes":null}`, "", `{"owner":"ada","door":{"colour":"red"}}`},
		"a patch clears by what is empty":         {`{"pin":"","door":{"code":""},"codes":[]}`, "", `{"owner":"ada","door":{"colour":"red"},"pair":{"left":"l","right":"r"}}`},
		"a patch merges an object, empty or not":  {`{"pair":{"left":"x"},"door":{}}`, "", `{"owner":"ada","pin":"1234","door":{"colour":"red","code":"77"},"pair":{"left":"x","right":"r"},"codes":["a"]}`},
		"a patch of an object with nothing in it": {`{"pair":{}}`, "", fullSafe},
	} {
		for _, sensitive := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, sensitive %v", name, sensitive), func(t *testing.T) {
				for verb, write := range map[string]func(f *fixture, revision string) (*service.Written, error){
					"update": func(f *fixture, revision string) (*service.Written, error) {
						return f.Writer.Update(t.Context(), service.UpdateRequest{Identity: safeNamed(), ExpectedRevision: revision, Spec: json.RawMessage(c.spec)})
					},
					"upsert": func(f *fixture, _ string) (*service.Written, error) {
						return f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: safeNamed(), Spec: json.RawMessage(c.spec)})
					},
					"apply": func(f *fixture, _ string) (*service.Written, error) {
						return f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: manifest(c.spec)})
					},
					"patch": func(f *fixture, revision string) (*service.Written, error) {
						return f.Writer.Patch(t.Context(), service.PatchRequest{Identity: safeNamed(), ExpectedRevision: revision, Patch: json.RawMessage(c.patch)})
					},
				} {
					if (verb == "patch") != (c.patch != "") {
						continue
					}
					f := safes(t, sensitive)
					was, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: safeNamed(), Spec: json.RawMessage(fullSafe)})
					if err != nil {
						t.Fatal(err)
					}
					if _, err = write(f, was.Resource.Stored.Revision.String()); err != nil {
						t.Fatalf("%s: %v", verb, err)
					}
					found, err := f.Store.Get(t.Context(), was.Resource.Stored.Key)
					if err != nil {
						t.Fatal(err)
					}
					shown, hidden := f.parts(was.Resource.Stored.Key)
					if sensitive && strings.Contains(shown, "1234") {
						t.Errorf("%s: the resource has a sensitive value: %s", verb, shown)
					}
					if diff := cmp.Diff(tree(t, c.want), merged(tree(t, shown), tree(t, hidden))); diff != "" {
						t.Errorf("%s (-want +got):\n%s", verb, diff)
					}
					text, err := f.Manifest(found[0], service.JSON)
					if err != nil {
						t.Fatal(err)
					}
					for _, hidden := range []string{"pin", "code", "pair", "codes"} {
						if strings.Contains(text, `"`+hidden+`"`) {
							t.Errorf("%s: the manifest has %s: %s", verb, hidden, text)
						}
					}
					if out, err := f.Writer.Apply(t.Context(), service.ApplyRequest{Manifest: text}); err != nil || out.Outcome != service.Unchanged {
						t.Errorf("%s: the manifest is applied as %+v, error %v", verb, out, err)
					}
				}
			})
		}
	}
}

func TestWrite_ViolationsOfWriteOnlyFieldsTellNothingOfThem(t *testing.T) {
	f := safes(t, false)
	_, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: safeNamed(), Spec: json.RawMessage(
		`{"owner":"xxxxxxxxxxxxxxxxxxxxxxxxx","pin":"1234567890123456789012345","pair":{"secretname":1},"codes":["a","b","c","d"]}`)})
	want := "owner: must have at most 20 characters, has 25; pair: has a field that is none of Pair; its fields are left, right; codes: must have at most 3 elements; pin: must have at most 20 characters"
	var got []string
	for _, v := range servicetest.WantCode(t, err, failure.CodeValidationFailed).Violations {
		got = append(got, strings.TrimPrefix(v.Path, "spec.")+": "+v.Message)
	}
	for _, w := range strings.Split(want, "; ") {
		if !strings.Contains(strings.Join(got, "; "), w) {
			t.Errorf("%q is not among %q", w, got)
		}
	}
	if len(got) != 4 {
		t.Errorf("%q", got)
	}
}

// safes is a service of the kind over memory.
func safes(t *testing.T, sensitive bool) *fixture {
	t.Helper()
	k := safe()
	k.Sensitive = sensitive
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{k}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
}

// parts are the stored spec of a resource, and what lies apart from it.
func (f *fixture) parts(key backend.Key) (shown, hidden string) {
	f.T.Helper()
	b, err := decodeBody(f.get(key))
	if err != nil {
		f.T.Fatal(err)
	}
	hidden = "{}"
	if r := f.get(key.Sensitive()); r != nil {
		raw, err := backend.DecodeBody(r.Body)
		if err != nil {
			f.T.Fatal(err)
		}
		hidden = string(raw)
	}
	return string(b.Spec), hidden
}

// get is what is stored under a key, nil for nothing.
func (f *fixture) get(key backend.Key) *backend.Resource {
	f.T.Helper()
	got, err := f.Store.Get(f.T.Context(), key)
	if err != nil {
		f.T.Fatal(err)
	}
	return got[0]
}

// merged puts the members of one object into another, objects into each other.
func merged(to, from any) any {
	a, ok1 := to.(map[string]any)
	b, ok2 := from.(map[string]any)
	if !ok1 || !ok2 {
		return from
	}
	for name, value := range b {
		a[name] = merged(a[name], value)
	}
	return a
}

func safeNamed() kind.Identity { return kind.Identity{Kind: "Safe", Name: "s"} }

func tree(t *testing.T, text string) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}
