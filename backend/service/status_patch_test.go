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
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

// setupConditions is a fixture whose widgets have conditions.
func setupConditions(t *testing.T) *fixture {
	t.Helper()
	store, err := memory.Open(memory.Config{Rand: rand.New(rand.NewPCG(1, 2))})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = store.Close() })
	s, err := service.New(service.Config{Kinds: []descriptor.Kind{servicetest.WithConditions(servicetest.Widget())}, Store: store})
	if err != nil {
		t.Fatal(err)
	}
	return &fixture{&servicetest.Fixture{Service: s, T: t, Store: store}}
}

// status returns the stored status of a widget.
func (f *fixture) status(name string) gjson.Result {
	f.T.Helper()
	body, err := backend.DecodeBody(f.Stored(name).Body)
	if err != nil {
		f.T.Fatal(err)
	}
	return gjson.GetBytes(body, "status")
}

func TestStatus_ControllersThatPatchDifferentConditionsKeepEachOthers(t *testing.T) {
	f := setupConditions(t)
	f.CreateWidget("a", `{"title":"t"}`)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() {
			for _, status := range []string{"False", "True"} {
				patch := fmt.Sprintf(`{"conditions":[{"type":"Type%d","status":%q}]}`, i, status)
				if _, err := f.Writer.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: servicetest.Named("a"), Patch: servicetest.Raw(patch)}); err != nil {
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

func TestStatus_AStatusIsPatchedAsRFC7386Says(t *testing.T) {
	f := setupConditions(t)
	f.CreateWidget("a", `{"title":"t"}`)
	current := func() string { return f.Stored("a").Revision.String() }
	patch := func(text string, revision *string) error {
		_, err := f.Writer.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: servicetest.Named("a"), Patch: servicetest.Raw(text), ExpectedRevision: revision})
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
	specRevision := f.Stored("a").SpecRevision
	if err := patch(`{"id":null}`, nil); err != nil || f.status("a").Get("id").Exists() {
		t.Errorf("null clears: %v %s", err, f.status("a").Raw)
	}
	if f.Stored("a").SpecRevision != specRevision {
		t.Error("who changes the spec is disturbed")
	}
	servicetest.WantCode(t, patch(`{"id":"y"}`, new("1-1")), failure.CodeConflict)
	for text, path := range map[string]string{
		`{"id":1}`:                    "status.id type",
		`{"nothing":1}`:               "status.nothing unknown",
		`{"conditions":{}}`:           "status.conditions type",
		`{"conditions":["x"]}`:        "status.conditions[0] type",
		`{"conditions":[{"type":1}]}`: "status.conditions[0].type type",
		`{"conditions":[{"type":"Two","status":"True"},{"type":"One","x":1}]}`: "status.conditions[1].x unknown",
		`{"conditions":[{"type":"Two"},{"type":"One"},{"type":"Two"}]}`:        "status.conditions[2] unique",
	} {
		if e := servicetest.WantCode(t, patch(text, nil), failure.CodeValidationFailed); e != nil && servicetest.ViolationPaths(e) != path {
			t.Errorf("%s: path %q, want %q", text, servicetest.ViolationPaths(e), path)
		}
	}
	servicetest.WantCode(t, patch(`null`, nil), failure.CodeBadUserInput)
	servicetest.WantCode(t, patch(`[]`, nil), failure.CodeBadUserInput)
	_, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: current(), Status: servicetest.Raw(`{"id":1}`), Untyped: true})
	servicetest.WantCode(t, err, failure.CodeValidationFailed)
}

func TestStatus_AWholeStatusHasEachTypeOfConditionOnce(t *testing.T) {
	f := setupConditions(t)
	f.CreateWidget("a", `{"title":"t"}`)
	before := f.Stored("a").Revision.String()
	status := servicetest.Raw(`{"conditions":[{"type":"One","status":"True"},{"type":"Two","status":"True"},{"type":"One","status":"False"}]}`)
	for _, untyped := range []bool{false, true} {
		for _, dry := range []bool{false, true} {
			_, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: before, Status: status, Untyped: untyped, DryRun: dry})
			if e := servicetest.WantCode(t, err, failure.CodeValidationFailed); e != nil && servicetest.ViolationPaths(e) != "status.conditions[2] unique" {
				t.Errorf("untyped %v: %s", untyped, servicetest.ViolationPaths(e))
			}
		}
	}
	if f.Stored("a").Revision.String() != before {
		t.Error("something was written")
	}
}

func TestStatus_APatchOfAConditionReplacesAllOfItsType(t *testing.T) {
	f := setupConditions(t)
	f.CreateWidget("a", `{"title":"t"}`)
	whole := `{"conditions":[{"type":"One","status":"True"},{"type":"Two","status":"True"}]}`
	if _, err := f.Writer.UpdateStatus(t.Context(), service.StatusRequest{Identity: servicetest.Named("a"), ExpectedRevision: f.Stored("a").Revision.String(), Status: servicetest.Raw(whole)}); err != nil {
		t.Fatal(err)
	}
	patch := servicetest.Raw(`{"conditions":[{"type":"Three","status":"True"},{"type":"One","status":"Unknown"}]}`)
	if _, err := f.Writer.PatchStatus(t.Context(), service.StatusPatchRequest{Identity: servicetest.Named("a"), Patch: patch}); err != nil {
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
