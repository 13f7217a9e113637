package service_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// part is the type of objects in these tests; its values have no limits in the first catalogue.
func ratchetPart(tight bool) *descriptor.Shape {
	s := &descriptor.Shape{Name: "Part", Fields: []descriptor.Field{
		{Name: "at", Type: descriptor.TypeString}, {Name: "x", Type: descriptor.TypeInt}, {Name: "y", Type: descriptor.TypeInt}, {Name: "z", Type: descriptor.TypeInt, Default: json.Number("1")},
	}}
	if tight {
		most := 9.0
		s.Fields[1].Constraint.Max = &most
		s.Rules = []descriptor.Rule{
			{CEL: "!has(self.x) || !has(self.y) || self.x < self.y", Message: "x is less than y"},
			{CEL: "!has(oldSelf.y) || !has(self.y) || self.y > oldSelf.y", Message: "y grows with every change"},
		}
	}
	return s
}

// ratchetKind is a kind with one field "v", and a field "title" besides.
func ratchetKind(v descriptor.Field, rules ...descriptor.Rule) descriptor.Kind {
	k := servicetest.Widget()
	v.Name = "v"
	k.FilterableFields = nil
	k.Spec = &descriptor.Shape{Name: "WidgetSpec", Rules: rules, Fields: []descriptor.Field{
		{Name: "title", Type: descriptor.TypeString}, v, {Name: "low", Type: descriptor.TypeInt}, {Name: "high", Type: descriptor.TypeInt, Default: json.Number("5")},
	}}
	return k
}

func TestUpdate_WhatWasTightenedIsJudgedWhereItChanges(t *testing.T) {
	n := func(i int) *int { return &i }
	x := func(f float64) *float64 { return &f }
	text := func(c descriptor.Constraint) descriptor.Field {
		return descriptor.Field{Type: descriptor.TypeString, Constraint: c}
	}
	list := func(typ descriptor.FieldType, of descriptor.ListType, c descriptor.Constraint, s *descriptor.Shape) descriptor.Field {
		return descriptor.Field{Type: typ, List: true, ListType: of, Constraint: c, Shape: s, Keys: []string{"at"}}
	}
	type field = descriptor.Field
	type constraint = descriptor.Constraint
	colours := func(names ...string) field {
		e := &descriptor.Enum{Name: "Colour"}
		for _, name := range names {
			e.Values = append(e.Values, descriptor.EnumValue{Name: strings.ToUpper(name), Stored: name})
		}
		return field{Type: descriptor.TypeEnum, Enum: e}
	}
	pairs := func(c constraint) field { return field{Type: descriptor.TypeMap, Constraint: c} }
	object := func(least, most int) field {
		s := ratchetPart(false)
		s.MinProperties, s.MaxProperties = least, most
		return field{Type: descriptor.TypeObject, Shape: s}
	}
	parts := func(of descriptor.ListType, tight bool) field {
		return list(descriptor.TypeObject, of, constraint{}, ratchetPart(tight))
	}
	for name, c := range map[string]struct {
		before, after field
		stored        string
		kept, refused []string
		rule          string
	}{
		"minLength":                  {text(constraint{}), text(constraint{MinLength: n(3)}), `"a"`, []string{`"abc"`}, []string{`"b"`}, "minLength"},
		"maxLength":                  {text(constraint{}), text(constraint{MaxLength: n(3)}), `"long"`, []string{`"abc"`}, []string{`"lang"`}, "maxLength"},
		"pattern":                    {text(constraint{}), text(constraint{Pattern: "^a"}), `"b"`, []string{`"a"`}, []string{`"c"`}, "pattern"},
		"format":                     {text(constraint{}), text(constraint{Format: descriptor.FormatCIDR}), `"b"`, []string{`"10.0.0.0/8"`}, []string{`"c"`}, "format"},
		"in":                         {text(constraint{}), text(constraint{In: []string{"a"}}), `"b"`, []string{`"a"`}, []string{`"c"`}, "in"},
		"min":                        {field{Type: descriptor.TypeInt}, field{Type: descriptor.TypeInt, Constraint: constraint{Min: x(3)}}, `1`, []string{`3`, `1.0`}, []string{`2`}, "min"},
		"max":                        {field{Type: descriptor.TypeFloat}, field{Type: descriptor.TypeFloat, Constraint: constraint{Max: x(3)}}, `9.5`, []string{`3`, `9.50`}, []string{`9.4`}, "max"},
		"enum":                       {colours("red", "blue"), colours("blue"), `"red"`, []string{`"blue"`}, []string{`"green"`}, "enum"},
		"minItems":                   {list(descriptor.TypeInt, descriptor.ListAtomic, constraint{}, nil), list(descriptor.TypeInt, descriptor.ListAtomic, constraint{MinItems: n(3)}, nil), `[1,2]`, []string{`[1,2,3]`, `[2,1]`}, []string{`[1]`}, "minItems"},
		"maxItems":                   {list(descriptor.TypeInt, descriptor.ListAtomic, constraint{}, nil), list(descriptor.TypeInt, descriptor.ListAtomic, constraint{MaxItems: n(1)}, nil), `[1,2,3]`, []string{`[1]`, `[4,5,6]`}, []string{`[1,2]`, `[1,2,3,4]`}, "maxItems"},
		"unique":                     {list(descriptor.TypeInt, descriptor.ListAtomic, constraint{}, nil), list(descriptor.TypeInt, descriptor.ListAtomic, constraint{Unique: true}, nil), `[1,1,2]`, []string{`[2,1,1]`, `[1,3]`, `[1,1]`}, []string{`[1,1,1]`, `[2,2]`}, "unique"},
		"elements of an ATOMIC list": {list(descriptor.TypeInt, descriptor.ListAtomic, constraint{}, nil), list(descriptor.TypeInt, descriptor.ListAtomic, constraint{Max: x(3)}, nil), `[1,9]`, []string{`[1,2]`}, []string{`[2,9]`}, "max"},
		"elements of a SET":          {list(descriptor.TypeInt, descriptor.ListSet, constraint{}, nil), list(descriptor.TypeInt, descriptor.ListSet, constraint{Max: x(3)}, nil), `[1,9]`, []string{`[9,1]`, `[2,9]`, `[9,1,3]`, `[1]`}, []string{`[9,8]`, `[1,9,9]`}, ""},
		"elements of a MAP": {parts(descriptor.ListMap, false), parts(descriptor.ListMap, true), `[{"at":"a","x":99},{"at":"b","x":1}]`,
			[]string{`[{"at":"b","x":1},{"at":"a","x":99}]`, `[{"at":"a","x":99,"z":2}]`, `[{"at":"a","x":99},{"at":"c","x":2}]`, `[{"at":"a","x":99,"z":1}]`},
			[]string{`[{"at":"a","x":98}]`, `[{"at":"b","x":99}]`, `[{"at":"c","x":99}]`}, "max"},
		"objects of an ATOMIC list": {parts(descriptor.ListAtomic, false), parts(descriptor.ListAtomic, true), `[{"at":"a","x":99},{"at":"b"}]`, []string{`[{"at":"b"}]`}, []string{`[{"at":"a","x":99}]`}, "max"},
		"keys of a MAP":             {parts(descriptor.ListAtomic, false), parts(descriptor.ListMap, false), `[{"at":"a","x":1},{"at":"a","x":2}]`, []string{`[{"at":"a","x":3},{"at":"a","x":2}]`, `[{"at":"a"}]`}, []string{`[{"at":"a"},{"at":"a"},{"at":"a"}]`, `[{"at":"b"},{"at":"b"}]`}, "unique"},
		"minProperties":             {object(0, 0), object(2, 0), `{"x":1}`, []string{`{"x":2}`, `{"x":1,"y":1}`}, []string{`{"y":1}`, `{}`}, "minProperties"},
		"maxProperties":             {object(0, 0), object(0, 1), `{"x":1,"y":2}`, []string{`{"x":2,"y":2}`, `{"x":1}`}, []string{`{"x":1,"z":2}`}, "maxProperties"},
		"minProperties of a map":    {pairs(constraint{}), pairs(constraint{MinItems: n(2)}), `{"a":"1"}`, []string{`{"b":"2"}`, `{"a":"1","b":"2"}`}, []string{`{}`}, "minProperties"},
		"maxProperties of a map":    {pairs(constraint{}), pairs(constraint{MaxItems: n(1)}), `{"a":"1","b":"2"}`, []string{`{"a":"1","b":"3"}`, `{"a":"1"}`}, []string{`{"a":"1","b":"2","c":"3"}`}, "maxProperties"},
		"values of a map":           {pairs(constraint{}), pairs(constraint{MaxLength: n(2)}), `{"a":"long","b":"x"}`, []string{`{"a":"long","b":"y"}`, `{"a":"ok"}`}, []string{`{"a":"lang"}`, `{"a":"long","b":"long"}`}, "maxLength"},
		"keys of a map":             {pairs(constraint{}), pairs(constraint{KeyPattern: "^[a-z]$"}), `{"A":"1","b":"x"}`, []string{`{"A":"1","b":"y"}`, `{"b":"x"}`}, []string{`{"A":"2"}`, `{"A":"1","B":"1"}`}, "keyPattern"},
		"a field of an object":      {field{Type: descriptor.TypeObject, Shape: ratchetPart(false)}, field{Type: descriptor.TypeObject, Shape: ratchetPart(true)}, `{"x":99}`, []string{`{"x":99,"z":3}`, `{"x":1}`}, []string{`{"x":98}`}, "max"},
		"a rule of an object":       {field{Type: descriptor.TypeObject, Shape: ratchetPart(false)}, field{Type: descriptor.TypeObject, Shape: ratchetPart(true)}, `{"x":9,"y":1}`, []string{`{"x":9,"y":10}`, `{"x":9}`}, []string{`{"x":8,"y":1}`, `{"x":9,"y":2}`, `{"x":9,"y":1,"z":3}`}, "rule"},
	} {
		t.Run(name, func(t *testing.T) {
			before := setupKinds(t, ratchetKind(c.before))
			before.CreateWidget("a", `{"title":"A","v":`+c.stored+`}`)
			f := before.with(t, ratchetKind(c.after))
			f.touchesNoSpec()
			f.accepts(`{"title":"B","v":` + c.stored + `}`)
			f.accepts(`{"title":"B"}`)
			for _, v := range c.kept {
				f.restore(c.stored)
				f.accepts(`{"title":"B","v":` + v + `}`)
			}
			for _, v := range c.refused {
				f.restore(c.stored)
				spec := `{"title":"B","v":` + v + `}`
				_, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), spec)
				if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); e != nil && c.rule != "" && e.Violations[0].Rule != c.rule {
					t.Errorf("%s: %v", v, e)
				}
				if _, err := f.Writer.Upsert(t.Context(), service.UpsertRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(spec)}); servicetest.CodeOf(err) != failure.CodeValidationFailed {
					t.Errorf("an upsert of %s: %v", v, err)
				}
			}
			if _, err := f.Writer.Create(t.Context(), service.CreateRequest{Identity: servicetest.Named("new"), Spec: json.RawMessage(`{"title":"A","v":` + c.stored + `}`)}); c.rule != "unique" && name != "a rule of an object" && servicetest.CodeOf(err) != failure.CodeValidationFailed {
				t.Errorf("a new resource: %v", err)
			}
			f.restore(c.stored)
			if _, err := f.Writer.Delete(t.Context(), service.DeleteRequest{Identity: servicetest.Named("a")}); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestUpdate_ARuleIsJudgedIfWhatItMentionsChanges(t *testing.T) {
	value := descriptor.Field{Type: descriptor.TypeInt}
	for cel, c := range map[string]struct{ kept, refused []string }{
		"!has(self.low) || self.low < self.high": {
			[]string{`{"title":"B","low":7}`, `{"title":"B","low":7,"high":5}`, `{"v":1,"low":7}`, `{"low":1}`, `{"low":7,"high":9}`},
			[]string{`{"low":8}`, `{"low":7,"high":6}`},
		},
		"self.title != 'A' || self == {}":             {[]string{`{"title":"B"}`, `{"title":"A","low":7,"high":5}`}, []string{`{"title":"A","low":8}`, `{"title":"A"}`}},
		"self['title'] != 'A'":                        {[]string{`{"title":"B"}`, `{"title":"A","low":7}`}, []string{`{"title":"A","low":8}`}},
		"has(self.v) && !has(self.low)":               {[]string{`{"title":"B","low":7}`, `{"title":"B","low":8}`, `{"v":1}`}, []string{`{"v":1,"low":7}`, `{"title":"B"}`}},
		"!has(oldSelf.low) || self.low > oldSelf.low": {[]string{`{"title":"A","low":7}`, `{"title":"A","low":8}`}, []string{`{"title":"B","low":7}`, `{"title":"A","low":6}`}},
	} {
		t.Run(cel, func(t *testing.T) {
			before := setupKinds(t, ratchetKind(value))
			const stored = `{"title":"A","low":7}`
			before.CreateWidget("a", stored)
			f := before.with(t, ratchetKind(value, descriptor.Rule{CEL: cel, Message: "broken"}))
			f.touchesNoSpec()
			set := func() {
				t.Helper()
				f.Rewrite("a", true, func(body map[string]any) {
					body["spec"] = map[string]any{"title": "A", "low": json.Number("7")}
				})
			}
			for _, spec := range c.kept {
				set()
				f.accepts(spec)
			}
			for _, spec := range c.refused {
				set()
				_, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), spec)
				if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); e != nil && e.Violations[0].Rule != "rule" {
					t.Errorf("%s: %v", spec, e)
				}
			}
		})
	}
}

// TestUpdate_WhatBecameFilterableLaterCanBeLabelled: a resource may have more values in the fields
// of indexes than one can be written with.
func TestUpdate_WhatBecameFilterableLaterCanBeLabelled(t *testing.T) {
	k := ratchetKind(descriptor.Field{Type: descriptor.TypeInt, List: true, ListType: descriptor.ListSet})
	before := setupKinds(t, k)
	many := make([]string, 2000)
	for i := range many {
		many[i] = fmt.Sprint(i)
	}
	all := strings.Join(many, ",")
	before.CreateWidget("a", `{"v":[`+all+`]}`)
	k.FilterableFields = []descriptor.FilterableField{{Path: "spec.v"}}
	f := before.with(t, k)
	f.touchesNoSpec()
	f.accepts(`{"title":"B","v":[` + all + `]}`)
	f.accepts(`{"v":[` + strings.Join(many[1:], ",") + `]}`)
	if _, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), `{"v":[`+all+`]}`); servicetest.CodeOf(err) != failure.CodeLimitExceeded {
		t.Errorf("one value more: %v", err)
	}
}

// with serves other kinds from the same store.
func (f *fixture) with(t *testing.T, kinds ...descriptor.Kind) *fixture {
	t.Helper()
	s, err := service.New(service.Config{Kinds: kinds, Store: f.Store})
	if err != nil {
		t.Fatal(err)
	}
	next := *f.Fixture
	next.Service = s
	next.T = t
	return &fixture{&next}
}

// touchesNoSpec writes everything but the spec of widget a.
func (f *fixture) touchesNoSpec() {
	f.T.Helper()
	was := string(f.Stored("a").Body)
	patch := func(m service.MetadataPatch) {
		f.T.Helper()
		if _, err := f.Writer.Patch(f.T.Context(), service.PatchRequest{Identity: servicetest.Named("a"), ExpectedRevision: f.Stored("a").Revision.String(), MetadataPatch: m}); err != nil {
			f.T.Error(err)
		}
	}
	patch(servicetest.Labelled("stage", "prod"))
	patch(finalizers("example.org/x"))
	if _, err := f.Writer.UpdateStatus(f.T.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: f.Stored("a").Revision.String(), Status: json.RawMessage(`{"id":"1"}`)}); err != nil {
		f.T.Error(err)
	}
	patch(without("example.org/x"))
	text, err := f.Manifest(f.Stored("a"), service.YAML)
	if err != nil {
		f.T.Fatal(err)
	}
	if out, err := f.apply(strings.Replace(text, "stage: prod", "stage: test", 1)); err != nil || out.Outcome != service.Updated {
		f.T.Errorf("an apply with another label: %+v %v", out, err)
	}
	_, spec, _ := strings.Cut(was, `"spec":`)
	if now := string(f.Stored("a").Body); !strings.Contains(now, strings.TrimSuffix(spec, "}")) {
		f.T.Errorf("the spec is another now: %s, it was %s", now, was)
	}
}

// accepts updates widget a.
func (f *fixture) accepts(spec string) {
	f.T.Helper()
	if _, err := f.UpdateWidget("a", f.Stored("a").Revision.String(), spec); err != nil {
		f.T.Errorf("%s: %v", spec, err)
	}
}

// restore stores a value of the field "v" again, which may not be valid.
func (f *fixture) restore(v string) {
	f.T.Helper()
	f.Rewrite("a", true, func(body map[string]any) {
		dec := json.NewDecoder(strings.NewReader(v))
		dec.UseNumber()
		var value any
		if err := dec.Decode(&value); err != nil {
			f.T.Fatal(err)
		}
		body["spec"] = map[string]any{"title": "A", "v": value}
	})
}
