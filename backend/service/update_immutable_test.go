package service_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
	"github.com/sluicegw/sluice/graph/kinds/kindstest"
)

// fixed is an immutable field: two specs that are acceptable by themselves and
// differ in it alone.
type fixed struct {
	// path is the path of the violation: the outermost immutable field.
	path        string
	first, then map[string]any
}

// fixedIn are the immutable fields of an object at a place, and those without two values.
func fixedIn(s *descriptor.Shape, a spot, above string) (out []fixed, single []string) {
	for i := range s.Fields {
		f := &s.Fields[i]
		within := spot{path: a.path + "." + f.Name, put: func(v any) any { return a.put(object(s, f.Name, v)) }}
		reportedPath := above
		if f.Immutable && reportedPath == "" {
			reportedPath = within.path
		}
		if f.Immutable {
			first, then, ok := two(f)
			switch {
			case f.Name == "managementPolicy": // a value asks for other fields
				out = append(out, fixed{reportedPath, object(s, "", nil), object(s, "import", sample(s.Field("import"), 0))})
			case !ok:
				single = append(single, within.path)
			default:
				out = append(out, fixed{reportedPath, within.put(first).(map[string]any), within.put(then).(map[string]any)})
			}
		}
		if f.Type == descriptor.TypeObject && !f.List {
			more, none := fixedIn(f.Shape, within, reportedPath)
			out, single = append(out, more...), append(single, none...)
		}
	}
	return out, single
}

// two are different values of a field, if it has so many.
func two(f *descriptor.Field) (any, any, bool) {
	switch {
	case f.List:
		return list(f, 1), list(f, 0), true
	case f.Type == descriptor.TypeBoolean:
		return true, false, true
	case f.Type == descriptor.TypeEnum:
		values := f.Enum.Values
		return values[0].Stored, values[len(values)-1].Stored, len(values) > 1
	case f.Type == descriptor.TypeMap:
		return mapping(f, 1), mapping(f, 2), true
	case f.Type != descriptor.TypeObject:
		return element(f, 0), element(f, 2), true
	}
	for i := range f.Shape.Fields {
		name := f.Shape.Fields[i].Name
		if first, then, ok := two(&f.Shape.Fields[i]); ok {
			return object(f.Shape, name, first), object(f.Shape, name, then), true
		}
	}
	return nil, nil, false
}

// TestUpdate_EveryImmutableFieldStaysAsItIs asks every immutable field of every kind:
// what it was is accepted again, another value is refused by its path, in an update and in a patch.
func TestUpdate_EveryImmutableFieldStaysAsItIs(t *testing.T) {
	store, err := memory.Open(memory.Config{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = store.Close() }()
	s, err := service.New(service.Config{Kinds: kindstest.Kinds(t), Store: store})
	if err != nil {
		t.Fatal(err)
	}
	ctx, checked := context.Background(), 0
	for _, k := range kindstest.Kinds(t) {
		all, single := fixedIn(k.Spec, spot{path: "spec", put: func(v any) any { return v }}, "")
		if k.Name != "RouterInterface" && len(single) > 0 || k.Name == "RouterInterface" && !slices.Equal(single, []string{"spec.type"}) {
			t.Errorf("%s: no two values of %v", k.Name, single)
		}
		for i, f := range all {
			checked++
			id := kind.Identity{Kind: k.Name, Name: fmt.Sprint("n", i)}
			made, err := s.Writer.Create(ctx, service.CreateRequest{Identity: id, Spec: f.first})
			if err != nil {
				t.Errorf("%s %s: %s is refused: %v", k.Name, f.path, shown(f.first), err)
				continue
			}
			revision := made.Resource.Stored.Revision.String()
			if out, err := s.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: f.first}); err != nil || out.Outcome != service.Unchanged {
				t.Errorf("%s %s: the same again: %+v %v", k.Name, f.path, out, err)
			}
			patch := maps.Clone(f.then)
			for name := range f.first {
				if _, ok := patch[name]; !ok {
					patch[name] = nil
				}
			}
			_, updated := s.Writer.Update(ctx, service.UpdateRequest{Identity: id, ExpectedRevision: revision, Spec: f.then})
			_, patched := s.Writer.Patch(ctx, service.PatchRequest{Identity: id, ExpectedRevision: revision, Patch: patch})
			for verb, err := range map[string]error{"update": updated, "patch": patched} {
				if err == nil {
					t.Errorf("%s %s: an %s to %s is accepted", k.Name, f.path, verb, shown(f.then))
					continue
				}
				e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
				if len(e.Violations) != 1 || e.Violations[0].Path != f.path || e.Violations[0].Rule != "immutable" {
					t.Errorf("%s %s: an %s to %s is told as %+v", k.Name, f.path, verb, shown(f.then), e.Violations)
				}
			}
		}
	}
	if checked < 90 {
		t.Errorf("the kinds have %d immutable fields", checked)
	}
}
