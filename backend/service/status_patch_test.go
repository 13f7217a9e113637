package service_test

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/tidwall/gjson"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/memory"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// setupConditions is a fixture whose widgets have conditions.
func setupConditions(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{withConditions(widget())}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{Service: s, t: t, store: store}
}

// status returns the stored status of a widget.
func (f *fixture) status(name string) gjson.Result {
	f.t.Helper()
	body, err := backend.DecodeBody(f.stored(name).Body)
	if err != nil {
		f.t.Fatal(err)
	}
	return gjson.GetBytes(body, "status")
}

func TestControllersThatPatchDifferentConditionsKeepEachOthers(t *testing.T) {
	f := setupConditions(t)
	f.create("a", `{"title":"t"}`)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for _, status := range []string{"False", "True"} {
				patch := fmt.Sprintf(`{"conditions":[{"type":"Type%d","status":%q}]}`, i, status)
				if _, err := f.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: named("a"), Patch: raw(patch)}); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
	var got []string
	for _, c := range f.status("a").Get("conditions").Array() {
		if c.Get("type").Str[:4] == "Type" {
			got = append(got, c.Get("type").Str+c.Get("status").Str)
		}
	}
	slices.Sort(got)
	if len(slices.Compact(got)) != 20 || !slices.Contains(got, "Type7True") {
		t.Errorf("%v", got)
	}
}

func TestAStatusIsPatchedAsRFC7386Says(t *testing.T) {
	f := setupConditions(t)
	f.create("a", `{"title":"t"}`)
	current := func() string { return f.stored("a").Revision.String() }
	patch := func(text string, revision *string) error {
		_, err := f.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: named("a"), Patch: raw(text), ExpectedRevision: revision})
		return err
	}
	if err := patch(`{"id":"x","conditions":[{"type":"One","status":"True"}]}`, new(current())); err != nil {
		t.Fatal(err)
	}
	if err := patch(`{"conditions":[{"type":"Two","status":"True"},{"type":"One","status":"False"}]}`, nil); err != nil {
		t.Fatal(err)
	}
	kept := f.status("a")
	if kept.Get("id").Str != "x" || kept.Get(`conditions.#(type=="One").status`).Str != "False" || kept.Get(`conditions.#(type=="Two").status`).Str != "True" {
		t.Error(kept.Raw)
	}
	specRevision := f.stored("a").SpecRevision
	if err := patch(`{"id":null}`, nil); err != nil || f.status("a").Get("id").Exists() {
		t.Errorf("null clears: %v %s", err, f.status("a").Raw)
	}
	if f.stored("a").SpecRevision != specRevision {
		t.Error("who changes the spec is disturbed")
	}
	wantCode(t, patch(`{"id":"y"}`, new("1-1")), failure.CodeConflict)
	for text, path := range map[string]string{
		`{"id":1}`:                    "status.id type",
		`{"nothing":1}`:               "status.nothing unknown",
		`{"conditions":{}}`:           "status.conditions type",
		`{"conditions":["x"]}`:        "status.conditions[0] type",
		`{"conditions":[{"type":1}]}`: "status.conditions[0].type type",
		`{"conditions":[{"type":"Two","status":"True"},{"type":"One","x":1}]}`: "status.conditions[1].x unknown",
		`{"conditions":[{"type":"Two"},{"type":"One"},{"type":"Two"}]}`:        "status.conditions[2] unique",
	} {
		if e := wantCode(t, patch(text, nil), failure.CodeValidationFailed); e != nil && paths(e) != path {
			t.Errorf("%s: path %q, want %q", text, paths(e), path)
		}
	}
	wantCode(t, patch(`null`, nil), failure.CodeBadUserInput)
	wantCode(t, patch(`[]`, nil), failure.CodeBadUserInput)
	_, err := f.UpdateStatus(t.Context(), service.StatusRequest{Identity: named("a"), ExpectedRevision: current(), Status: raw(`{"id":1}`), Untyped: true})
	wantCode(t, err, failure.CodeValidationFailed)
}

func TestAWholeStatusHasEachTypeOfConditionOnce(t *testing.T) {
	f := setupConditions(t)
	f.create("a", `{"title":"t"}`)
	before := f.stored("a").Revision.String()
	status := raw(`{"conditions":[{"type":"One","status":"True"},{"type":"Two","status":"True"},{"type":"One","status":"False"}]}`)
	for _, untyped := range []bool{false, true} {
		for _, dry := range []bool{false, true} {
			_, err := f.UpdateStatus(t.Context(), service.StatusRequest{Identity: named("a"), ExpectedRevision: before, Status: status, Untyped: untyped, DryRun: dry})
			if e := wantCode(t, err, failure.CodeValidationFailed); e != nil && paths(e) != "status.conditions[2] unique" {
				t.Errorf("untyped %v: %s", untyped, paths(e))
			}
		}
	}
	if f.stored("a").Revision.String() != before {
		t.Error("something was written")
	}
}

func TestAPatchOfAConditionReplacesAllOfItsType(t *testing.T) {
	f := setupConditions(t)
	f.create("a", `{"title":"t"}`)
	whole := `{"conditions":[{"type":"One","status":"True"},{"type":"Two","status":"True"}]}`
	if _, err := f.UpdateStatus(t.Context(), service.StatusRequest{Identity: named("a"), ExpectedRevision: f.stored("a").Revision.String(), Status: raw(whole)}); err != nil {
		t.Fatal(err)
	}
	patch := raw(`{"conditions":[{"type":"Three","status":"True"},{"type":"One","status":"Unknown"}]}`)
	if _, err := f.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: named("a"), Patch: patch}); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, c := range f.status("a").Get("conditions").Array() {
		if typ := c.Get("type").Str; typ == "One" || typ == "Two" || typ == "Three" {
			got = append(got, typ+c.Get("status").Str)
		}
	}
	if want := []string{"OneUnknown", "TwoTrue", "ThreeTrue"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
}
