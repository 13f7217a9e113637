package service_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/kind"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestWrite_EveryConstraintRefusesAndAccepts(t *testing.T) {
	for _, c := range []struct{ field, good, bad, rule string }{
		{"title", `"ten chars!"`, `"eleven char"`, "maxLength"},
		{"title", `"x"`, `""`, "minLength"},
		{"title", `"ab"`, `"a,b"`, "pattern"},
		{"title", `"ab"`, `7`, "type"},
		{"colour", `"dark-red"`, `"DARK_RED"`, "enum"},
		{"weight", `68`, `67`, "min"},
		{"weight", `9216`, `9217`, "max"},
		{"weight", `100`, `4294967296123`, "type"},
		{"weight", `100`, `100.5`, "type"},
		{"bytes", `9007199254740991`, `9007199254740992`, "type"},
		{"bytes", `-9007199254740991`, `-9007199254740992`, "type"},
		{"heavy", `true`, `"true"`, "type"},
		{"tags", `["a","b","c"]`, `["a","b","c","d"]`, "maxItems"},
		{"tags", `["a","b"]`, `["a","a"]`, "unique"},
		{"tags", `["a"]`, `[null]`, "type"},
		{"tags", `["a"]`, `"a"`, "type"},
		{"parts", `[{"slot":"a"},{"slot":"b"}]`, `[{"slot":"a"},{"slot":"a"}]`, "unique"},
		{"parts", `[{"slot":"a"}]`, `[{"serial":"1"}]`, "required"},
		{"box", `{"import":true}`, `{}`, "minProperties"},
		{"box", `{"import":true}`, `{"import":true,"id":"123e4567-e89b-12d3-a456-426614174000"}`, "maxProperties"},
		{"box", `{"id":"123e4567-e89b-12d3-a456-426614174000"}`, `{"id":"not-a-uuid"}`, "format"},
		{"box", `{"import":true}`, `{"import":false}`, "rule"},
		{"notes", `{"ab":"x"}`, `{}`, "minProperties"},
		{"notes", `{"ab":"x","cd":""}`, `{"ab":"","cd":"","ef":""}`, "maxProperties"},
		{"notes", `{"ab":"12345"}`, `{"ab":"123456"}`, "maxLength"},
		{"notes", `{"ab":"x"}`, `{"a":"x"}`, "keyMinLength"},
		{"notes", `{"abcd":"x"}`, `{"abcde":"x"}`, "keyMaxLength"},
		{"notes", `{"ab":"x"}`, `{"AB":"x"}`, "keyPattern"},
		{"notes", `{"ab":"x"}`, `{"ab":1}`, "type"},
		{"ratio", `1`, `0.5`, "rule"},
		{"every", `"1h30m"`, `"1 hour"`, "format"},
		{"titel", `null`, `"A"`, "unknown"},
	} {
		t.Run(c.field+" "+c.rule, func(t *testing.T) {
			f := setup(t)
			send := func(name, value string) error {
				spec := map[string]json.RawMessage{"title": json.RawMessage(`"A"`)}
				spec[c.field] = json.RawMessage(value)
				_, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: servicetest.Named(name), Spec: spec})
				return err
			}
			if err := send("good", c.good); err != nil {
				t.Errorf("%s is refused: %v", c.good, err)
			}
			e := servicetest.WantCode(t, send("bad", c.bad), failure.CodeValidationFailed)
			if len(e.Violations) != 1 || e.Violations[0].Rule != c.rule {
				t.Errorf("%s: violations %s, want one of %s", c.bad, servicetest.ViolationPaths(e), c.rule)
			}
		})
	}
}

func TestWrite_AllViolationsComeAtOnce(t *testing.T) {
	f := setup(t)
	_, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: servicetest.Named("a"), Spec: json.RawMessage(`{"title":"","weight":1,"tagz":[],"box":{"id":"x"}}`)})
	e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
	if got := servicetest.ViolationPaths(e); got != "spec.tagz unknown; spec.title minLength; spec.weight min; spec.box.id format" {
		t.Errorf("violations %s", got)
	}
	if got := len(e.Split()); got != 4 {
		t.Errorf("%d errors, want 4", got)
	}
	if !strings.Contains(e.Split()[0].Message, `did you mean "tags"?`) {
		t.Errorf("message %q", e.Split()[0].Message)
	}
}

func TestWrite_RulesSeeEffectiveDefaults(t *testing.T) {
	f := setup(t)
	f.CreateWidget("a", `{"title":"A","heavy":true}`) // colour is blue by default
	_, err := f.Writer.Create(context.Background(), service.CreateRequest{Identity: servicetest.Named("b"), Spec: json.RawMessage(`{"title":"A","heavy":true,"colour":"dark-red"}`)})
	e := servicetest.WantCode(t, err, failure.CodeValidationFailed)
	if e.Violations[0].Message != "only a blue widget may say whether it is heavy" || e.Violations[0].Path != "spec" {
		t.Errorf("violation %+v", e.Violations[0])
	}
}

func TestWrite_ImmutableFieldsCompareEffectiveValues(t *testing.T) {
	f := setup(t)
	r := f.CreateWidget("a", `{"title":"A","zones":["x","y"],"parts":[{"slot":"s","serial":"1"}]}`).Resource.Stored.Revision.String()
	for spec, want := range map[string]string{
		`{"title":"A","colour":"dark-red"}`:                              "spec.colour immutable",
		`{"title":"A","zones":["x"]}`:                                    "spec.zones immutable",
		`{"title":"A","parts":[{"slot":"t"},{"slot":"s","serial":"2"}]}`: "spec.parts[1].serial immutable",
		`{"title":"A","colour":"dark-red","zones":["x","z"],"weight":1}`: "spec.weight min; spec.colour immutable; spec.zones immutable",
	} {
		_, err := f.UpdateWidget("a", r, spec)
		if got := servicetest.ViolationPaths(servicetest.WantCode(t, err, failure.CodeValidationFailed)); got != want {
			t.Errorf("%s: %s, want %s", spec, got, want)
		}
	}
	// The default written out, a set in another order, an optional field removed and added.
	for _, spec := range []string{`{"title":"A","colour":"blue","zones":["y","x"]}`, `{"title":"A"}`, `{"title":"A","zones":["new"]}`} {
		out, err := f.UpdateWidget("a", r, spec)
		if err != nil {
			t.Fatalf("%s: %v", spec, err)
		}
		r = out.Resource.Stored.Revision.String()
	}
}

func TestWrite_NamesAreCheckedBeforeAnythingElse(t *testing.T) {
	f := setup(t)
	empty, upper := "", "Upper"
	for _, id := range []kind.Identity{
		{Kind: "Widget", Name: ""}, {Kind: "Widget", Name: "Upper"}, {Kind: "Widget", Name: "a_b"}, {Kind: "Widget", Name: "-a"}, {Kind: "Widget", Name: strings.Repeat("a", 254)},
		{Kind: "Widget", Name: "a", Namespace: &empty}, {Kind: "Widget", Name: "a", Namespace: &upper},
	} {
		_, err := f.Reader.Get(context.Background(), id)
		servicetest.WantCode(t, err, failure.CodeValidationFailed)
	}
	if res, err := f.Reader.Get(context.Background(), servicetest.Named(strings.Repeat("a", 63)+"."+strings.Repeat("b", 63))); res != nil || err != nil {
		t.Errorf("what is absent is %v, %v", res, err)
	}
}
