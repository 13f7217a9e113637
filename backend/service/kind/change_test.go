package kind_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// thing is a kind with many fields, one of them write-only.
func thing(t *testing.T) *kind.Kind {
	t.Helper()
	inner := &descriptor.Shape{Name: "Inner"}
	for i := range 100 {
		inner.Fields = append(inner.Fields, descriptor.Field{Name: fmt.Sprint("f", i), Type: descriptor.TypeString})
	}
	spec := &descriptor.Shape{Name: "ThingSpec", Fields: []descriptor.Field{
		{Name: "a", Type: descriptor.TypeString}, {Name: "secret", Type: descriptor.TypeString, WriteOnly: true},
		{Name: "inner", Type: descriptor.TypeObject, Shape: inner}, {Name: "list", Type: descriptor.TypeString, List: true},
	}}
	status := &descriptor.Shape{Name: "ThingStatus", Fields: []descriptor.Field{{Name: "id", Type: descriptor.TypeString}}}
	kinds, err := kind.Compile([]descriptor.Kind{{Name: "Thing", Singular: "thing", Plural: "things", Spec: spec, Status: status}})
	if err != nil {
		t.Fatal(err)
	}
	return kinds.All()[0]
}

func encoded(json string) []byte { return backend.EncodeBody([]byte(json)) }

// event is a change from one body to another as the log tells it.
func event(k *kind.Kind, was, now string) *backend.Event {
	return &backend.Event{
		Type: backend.Modified, Resource: &backend.Resource{Key: backend.Key{Kind: "Thing", Name: "x"}, Body: encoded(now)},
		Before: &backend.Before{Revision: backend.Revision{Epoch: 1, Seq: 1}}, Change: k.ChangeOf(encoded(was), encoded(now)),
	}
}

func TestChange_AChangeNamesPathsAndTellsTheStateBefore(t *testing.T) {
	k := thing(t)
	for _, c := range []struct{ was, now, before, paths string }{
		{`{"metadata":{"generation":1},"spec":{"a":"1"}}`, `{"metadata":{"generation":2},"spec":{"a":"2"}}`, `{"metadata":{"generation":1},"spec":{"a":"1"}}`, "metadata.generation spec.a"},
		{`{"spec":{"a":"1"}}`, `{"spec":{"a":"1"},"status":{"id":"x"}}`, `{"spec":{"a":"1"}}`, "status"},
		{`{"spec":{"a":"1"},"status":{"id":"x"}}`, `{"spec":{"a":"1"}}`, `{"spec":{"a":"1"},"status":{"id":"x"}}`, "status"},
		{`{"spec":{"inner":{"f1":"a","f2":"b"},"list":["a"]}}`, `{"spec":{"inner":{"f1":"a","f2":"c"},"list":["b"]}}`, `{"spec":{"inner":{"f1":"a","f2":"b"},"list":["a"]}}`, "spec.inner.f2 spec.list"},
		{`{"spec":{"a":"1","secret":"hidden"}}`, `{"spec":{"a":"2"}}`, `{"spec":{"a":"1"}}`, "spec.a spec.secret"},
	} {
		e := event(k, c.was, c.now)
		if got := strings.Join(kind.ChangedPaths(e), " "); got != c.paths {
			t.Errorf("%s: paths %q, want %q", c.was, got, c.paths)
		}
		r, known := kind.Before(e)
		if !known || string(r.Body) != string(encoded(c.before)) || r.Revision != e.Before.Revision {
			t.Errorf("%s: before %v %v, want %s", c.was, known, r, c.before)
		}
		was, now, known := kind.StatusChange(e)
		if changed := strings.Contains(c.paths, "status"); !known || (was != now) != changed {
			t.Errorf("%s: the status before is %q, after it %q, %v", c.was, was, now, known)
		}
		if strings.Contains(string(e.Change), "hidden") {
			t.Errorf("%s has a write-only value", e.Change)
		}
	}
}

func TestChange_AChangeOfManyFieldsNamesTheirParents(t *testing.T) {
	fields := func(value string) string {
		var all []string
		for i := range 100 {
			all = append(all, fmt.Sprintf(`"f%d":%q`, i, value))
		}
		return strings.Join(all, ",")
	}
	k := thing(t)
	e := event(k, `{"spec":{"a":"1","inner":{`+fields("a")+`}}}`, `{"spec":{"a":"2","inner":{`+fields("b")+`}}}`)
	if got := kind.ChangedPaths(e); !slices.Equal(got, []string{"spec.a", "spec.inner"}) {
		t.Errorf("%q", got)
	}
}

func TestChange_AChangeThatCannotBeReadIsUnknown(t *testing.T) {
	k := thing(t)
	if e := event(k, `{"spec":{"a":"`+strings.Repeat("x", backend.MaxChange)+`"}}`, `{"spec":{"a":"2"}}`); e.Change != nil {
		t.Errorf("a change of %d bytes", len(e.Change))
	}
	for _, change := range []string{``, `{}`, `{"other":1}`, `[]`, `{"before":1}`, `{"before":{}},"pa`, `{"before":{"spec":`} {
		e := event(k, `{"spec":{"a":"1"}}`, `{"spec":{"a":"2"}}`)
		e.Change = []byte(change)
		_, known := kind.Before(e)
		if _, _, status := kind.StatusChange(e); known || status {
			t.Errorf("%q tells a state", change)
		}
	}
}
