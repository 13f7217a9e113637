package kit_test

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/kit"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

// teams describes the kind of the tests.
func teams() descriptor.Kind {
	least := 0.0
	return descriptor.Kind{
		Name: "Team", Scope: descriptor.Namespaced,
		Spec: &descriptor.Shape{Name: "TeamSpec", Fields: []descriptor.Field{
			{Name: "email", Type: descriptor.TypeString, Required: true},
			{Name: "size", Type: descriptor.TypeInt, Constraint: descriptor.Constraint{Min: &least}},
		}},
	}
}

// admit judges writes as a service does whose rules are not in the SDL.
func admit(w owner.Write) *owner.Answer {
	var spec struct{ Email any }
	if err := json.Unmarshal(w.Resource.Spec, &spec); err != nil {
		return invalid("spec", err.Error())
	}
	if text, ok := spec.Email.(string); !ok || !strings.Contains(text, "@") {
		return invalid("spec.email", "no mail address")
	}
	return nil
}

func invalid(path, message string) *owner.Answer {
	return &owner.Answer{Outcome: owner.Invalid, Violations: []owner.Violation{{Path: path, Rule: "address", Message: message}}}
}

func newService() *ownertest.Service {
	s := ownertest.New("teams", ownertest.Full("Team"))
	s.SetHooks(ownertest.Hooks{Write: admit})
	return s
}

// results runs the kit in a bubble, and returns what it found by promise.
func results(t *testing.T, c kit.Config) map[string]kit.Result {
	t.Helper()
	out := map[string]kit.Result{}
	c.Descriptors = []descriptor.Kind{teams()}
	synctest.Test(t, func(t *testing.T) {
		found, err := kit.Run(t.Context(), c)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range found {
			if out[r.Promise].Status != kit.Failed {
				out[r.Promise] = r
			}
		}
	})
	return out
}

func broken(found map[string]kit.Result) (names []string) {
	for name, r := range found {
		if r.Status == kit.Failed {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestRun_AServiceThatKeepsAllPromisesPasses(t *testing.T) {
	for seed := range uint64(10) {
		s := newService()
		s.Put(owner.Resource{Key: backend.Key{Kind: "Team", Namespace: "x", Name: "other"}, Spec: []byte(`{"email":"a@b"}`)})
		found := results(t, kit.Config{
			Service: s, Seed: seed, Restart: func(context.Context) error { return nil },
			Raw: func(_ context.Context, call string, _ []byte) ([]byte, error) {
				return []byte(`{"kinds":[],"got":[]}`), nil
			},
		})
		for name, r := range found {
			if r.Status != kit.Passed && name != "unreadable" {
				t.Errorf("seed %d: %s is %s: %s", seed, name, r.Status, r.Detail)
			}
		}
		if n := len(s.All()); n != 1 {
			t.Errorf("seed %d: %d resources are left, 1 was there", seed, n)
		}
		if len(found) < 30 {
			t.Errorf("%d promises were tested", len(found))
		}
	}
}

func TestRun_WhatAServiceLacksIsSkippedByName(t *testing.T) {
	s := newService()
	s.SetKinds(owner.Kind{Name: "Team", Writes: true})
	found := results(t, kit.Config{Service: s})
	for name, lacking := range map[string]string{
		"changes-reported": "changes", "if-tag": "conditional", "tag-changes": "conditional", "dry-run": "dry_run",
	} {
		if r := found[name]; r.Status != kit.Skipped || !strings.Contains(r.Detail, "lacks "+lacking) {
			t.Errorf("%s is %s: %s", name, r.Status, r.Detail)
		}
	}
	if names := broken(found); len(names) > 0 {
		t.Errorf("failed: %q, such as %v", names, found[names[0]])
	}
	s.SetKinds(owner.Kind{Name: "Team"})
	s.Put(owner.Resource{Key: backend.Key{Kind: "Team", Namespace: "x", Name: "other"}, Spec: []byte(`{"email":"a@b"}`)})
	s.MakeUnreadable(backend.Key{Kind: "Team", Namespace: "x", Name: "bad"}, "it is damaged")
	found = results(t, kit.Config{Service: s})
	if names := broken(found); len(names) > 0 {
		t.Errorf("failed without writes: %q, such as %v", names, found[names[0]])
	}
	if r := found["unreadable"]; r.Status != kit.Passed {
		t.Errorf("unreadable is %s: %s", r.Status, r.Detail)
	}
}

func TestRun_AnInterruptedRunDeletesWhatItMade(t *testing.T) {
	s := newService()
	synctest.Test(t, func(t *testing.T) {
		ctx, interrupt := context.WithCancel(t.Context())
		s.SetHooks(ownertest.Hooks{Before: func(_ context.Context, c ownertest.Call) error {
			if c.Method == "Delete" && len(s.All()) > 3 {
				interrupt()
			}
			return nil
		}, Write: admit})
		_, err := kit.Run(ctx, kit.Config{Service: s, Descriptors: []descriptor.Kind{teams()}})
		if !errors.Is(err, context.Canceled) {
			t.Errorf("the run ended with %v", err)
		}
	})
	if n := len(s.All()); n != 0 {
		t.Errorf("%d resources are left", n)
	}
}

func TestRun_KindsAndExamplesAreChosen(t *testing.T) {
	s := ownertest.New("teams", ownertest.Full("Team"), ownertest.Full("Club"))
	example := owner.Resource{Key: backend.Key{Kind: "Club", Name: "c"}, Spec: []byte(`{"a":{"b":[1]}}`)}
	found := results(t, kit.Config{
		Service: s, Kinds: []string{"Club"}, Examples: map[string][]owner.Resource{"Club": {example}},
	})
	if names := broken(found); len(names) > 0 {
		t.Errorf("failed: %q, such as %v", names, found[names[0]])
	}
	_, err := kit.Run(t.Context(), kit.Config{Service: s, Kinds: []string{"Pub"}})
	if err == nil || !strings.Contains(err.Error(), `no kind "Pub", but ["Team" "Club"]`) {
		t.Errorf("an unknown kind: %v", err)
	}
	found = results(t, kit.Config{Service: s, Kinds: []string{"Club"}})
	if r := found["accepts"]; !strings.Contains(r.Detail, "there is no example of it") {
		t.Errorf("without SDL and example: %v", r)
	}
}

// flawed is a service with a defect: what it has replaces a method.
type flawed struct {
	*ownertest.Service
	list    func(ctx context.Context, kind, token string, size int) (owner.Page, error)
	get     func(ctx context.Context, keys []backend.Key) ([]owner.Got, error)
	changes func(ctx context.Context, position string, wait time.Duration) (owner.Changes, error)
	write   func(ctx context.Context, w owner.Write) (owner.Answer, error)
	delete  func(ctx context.Context, d owner.Delete) (owner.Answer, error)
	restart func(ctx context.Context) error
}

func (f *flawed) List(ctx context.Context, kind, token string, size int) (owner.Page, error) {
	if f.list != nil {
		return f.list(ctx, kind, token, size)
	}
	return f.Service.List(ctx, kind, token, size)
}

func (f *flawed) Get(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
	if f.get != nil {
		return f.get(ctx, keys)
	}
	return f.Service.Get(ctx, keys)
}

func (f *flawed) Changes(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
	if f.changes != nil {
		return f.changes(ctx, position, wait)
	}
	return f.Service.Changes(ctx, position, wait)
}

func (f *flawed) Write(ctx context.Context, w owner.Write) (owner.Answer, error) {
	if f.write != nil {
		return f.write(ctx, w)
	}
	return f.Service.Write(ctx, w)
}

func (f *flawed) Delete(ctx context.Context, d owner.Delete) (owner.Answer, error) {
	if f.delete != nil {
		return f.delete(ctx, d)
	}
	return f.Service.Delete(ctx, d)
}

// apart checks the condition of a write and writes in two steps, without a lock.
func apart(f *flawed, w owner.Write, condition func(was owner.Resource, there bool) bool) (owner.Answer, bool) {
	was, there := f.Show(w.Resource.Key)
	if !condition(was, there) {
		return owner.Answer{}, false
	}
	time.Sleep(time.Millisecond)
	w.Resource.UID = was.UID
	if admit(w) != nil {
		return owner.Answer{}, false
	}
	r := f.Put(w.Resource)
	return owner.Answer{Outcome: owner.Done, Resource: &r}, true
}

func TestRun_EachDefectIsFoundByTheNameOfItsPromise(t *testing.T) {
	for _, defect := range []struct {
		name  string
		plant func(f *flawed)
		// want are the promises of which it is a defect; others that need them may fail, too.
		want []string
	}{
		{"Get reads a copy that is late", func(f *flawed) {
			var mu sync.Mutex
			late := map[backend.Key]owner.Got{}
			f.get = func(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
				got, err := f.Service.Get(ctx, keys)
				mu.Lock()
				defer mu.Unlock()
				for i, key := range keys {
					was, known := late[key]
					late[key] = got[i]
					if known && len(keys) == 1 {
						got[i] = was
					}
				}
				return got, err
			}
		}, []string{"reads-own-writes"}},
		{"the tag is that of the spec", func(f *flawed) {
			tagged := func(a owner.Answer, err error) (owner.Answer, error) {
				if a.Resource != nil {
					r := *a.Resource
					r.Tag = string(r.Spec)
					a.Resource = &r
				}
				return a, err
			}
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if was, there := f.Show(w.Resource.Key); there && w.IfTag == string(was.Spec) {
					w.IfTag = was.Tag
				}
				return tagged(f.Service.Write(ctx, w))
			}
		}, []string{"tag-changes"}},
		{"positions are told before what they count is there", func(f *flawed) {
			n := 0
			f.changes = func(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
				c, err := f.Service.Changes(ctx, position, wait)
				if len(c.Keys) > 1 {
					n++
					c.Keys = c.Keys[1:]
				}
				return c, err
			}
		}, []string{"changes-parallel"}},
		{"deletes are not told", func(f *flawed) {
			f.changes = func(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
				c, err := f.Service.Changes(ctx, position, wait)
				c.Keys = slices.DeleteFunc(c.Keys, func(key backend.Key) bool {
					_, there := f.Show(key)
					return !there
				})
				return c, err
			}
		}, []string{"changes-reported"}},
		{"an unknown position is the present one", func(f *flawed) {
			f.changes = func(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
				c, err := f.Service.Changes(ctx, position, wait)
				c.Expired = false
				return c, err
			}
		}, []string{"changes-unknown"}},
		{"a page token is a number of resources", func(f *flawed) {
			f.list = func(ctx context.Context, kind, token string, size int) (owner.Page, error) {
				at := 0
				if token != "" {
					var err error
					at, err = strconv.Atoi(token)
					if err != nil || at < 0 {
						return owner.Page{}, errors.New("no such token")
					}
				}
				page, err := f.Service.List(ctx, kind, "", 0)
				all := page.Resources
				page.Resources = all[min(at, len(all)):min(at+size, len(all))]
				if at+size < len(all) {
					page.Next = strconv.Itoa(at + size)
				}
				return page, err
			}
		}, []string{"list-under-writes"}},
		{"if_absent is judged before the write", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if w.IfAbsent && !w.DryRun {
					a, ok := apart(f, w, func(_ owner.Resource, there bool) bool { return !there })
					if ok {
						return a, nil
					}
				}
				return f.Service.Write(ctx, w)
			}
		}, []string{"if-absent-once"}},
		{"if_tag is judged before the write", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if w.IfTag != "" && w.IfUID == "" && !w.DryRun {
					a, ok := apart(f, w, func(was owner.Resource, there bool) bool { return there && was.Tag == w.IfTag })
					if ok {
						return a, nil
					}
				}
				return f.Service.Write(ctx, w)
			}
		}, []string{"if-tag-once"}},
		{"if_uid is not judged", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				w.IfUID = ""
				return f.Service.Write(ctx, w)
			}
		}, []string{"if-uid"}},
		{"an update creates what is absent", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if _, there := f.Show(w.Resource.Key); !there {
					w.IfTag = ""
				}
				return f.Service.Write(ctx, w)
			}
		}, []string{"write-absent"}},
		{"dry_run is not known", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				w.DryRun = false
				return f.Service.Write(ctx, w)
			}
		}, []string{"dry-run"}},
		{"the id of the create stays", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if was, there := f.Show(w.Resource.Key); there && !w.IfAbsent {
					w.Resource.WriteID = was.WriteID
				}
				return f.Service.Write(ctx, w)
			}
		}, []string{"write-id"}},
		{"uids are names", func(f *flawed) {
			named := func(a owner.Answer, err error) (owner.Answer, error) {
				if a.Resource != nil {
					f.Put(owner.Resource{
						Key: a.Resource.Key, UID: a.Resource.Name, WriteID: a.Resource.WriteID, Labels: a.Resource.Labels,
						Annotations: a.Resource.Annotations, Description: a.Resource.Description, Spec: a.Resource.Spec,
						CreatedAt: a.Resource.CreatedAt,
					})
					r, _ := f.Show(a.Resource.Key)
					a.Resource = &r
				}
				return a, err
			}
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				if !w.IfAbsent || w.DryRun {
					return f.Service.Write(ctx, w)
				}
				if _, there := f.Show(w.Resource.Key); there {
					return f.Service.Write(ctx, w)
				}
				return named(f.Service.Write(ctx, w))
			}
		}, []string{"uid"}},
		{"annotations are not kept", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				w.Resource.Annotations = nil
				return f.Service.Write(ctx, w)
			}
		}, []string{"keeps-metadata", "large"}},
		{"violations have no path", func(f *flawed) {
			f.write = func(ctx context.Context, w owner.Write) (owner.Answer, error) {
				a, err := f.Service.Write(ctx, w)
				for i := range a.Violations {
					if w.Resource.Labels["sluice-test"] != "" && !strings.Contains(string(w.Resource.Spec), "example") {
						a.Violations[i].Path = ""
					}
				}
				return a, err
			}
		}, []string{"invalid"}},
		{"absent keys have no answer", func(f *flawed) {
			f.get = func(ctx context.Context, keys []backend.Key) ([]owner.Got, error) {
				got, err := f.Service.Get(ctx, keys)
				if len(got) > 1 {
					got = slices.DeleteFunc(got, func(g owner.Got) bool { return g.Resource == nil })
				}
				return got, err
			}
		}, []string{"get-many"}},
		{"positions are counted anew after a restart", func(f *flawed) {
			behind := 0
			f.restart = func(ctx context.Context) error {
				behind = 1 << 20
				return nil
			}
			f.changes = func(ctx context.Context, position string, wait time.Duration) (owner.Changes, error) {
				if behind == 0 || position == "" {
					return f.Service.Changes(ctx, position, wait)
				}
				return owner.Changes{Position: position}, nil
			}
		}, []string{"restart"}},
		{"a delete does not look at the tag", func(f *flawed) {
			f.delete = func(ctx context.Context, d owner.Delete) (owner.Answer, error) {
				d.IfTag = ""
				return f.Service.Delete(ctx, d)
			}
		}, []string{"delete-if-tag"}},
	} {
		t.Run(defect.name, func(t *testing.T) {
			f := &flawed{Service: newService()}
			defect.plant(f)
			found := results(t, kit.Config{Service: f, Restart: func(ctx context.Context) error {
				if f.restart == nil {
					return nil
				}
				return f.restart(ctx)
			}})
			for _, name := range defect.want {
				if r := found[name]; r.Status != kit.Failed {
					t.Errorf("%s is %s; broken promises: %q", name, r.Status, broken(found))
				}
			}
			if n := len(f.All()); n != 0 {
				t.Errorf("%d resources are left", n)
			}
		})
	}
}
