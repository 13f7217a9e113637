package service_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// TestPatch_SaysWhatItCleared: a client that sends null for what is not set is found out.
func TestPatch_SaysWhatItCleared(t *testing.T) {
	k := nestedWidget()
	k.Spec.Field("fixed").Immutable = false
	for patch, want := range map[string]string{
		`{"colour":null}`:                        "spec.colour",
		`{"colour":null,"weight":null}`:          "spec.colour", // there is no weight
		`{"title":"B"}`:                          "",
		`{"fixed":{"x":null}}`:                   "spec.fixed.x",
		`{"tags":null,"fixed":null,"weight":68}`: "spec.fixed,spec.tags",
		`{"elements":[{"id":null}]}`:             "", // a list is replaced as a whole
		`{"notes":{"aa":null,"cc":null}}`:        "spec.notes.aa",
	} {
		f := setupKinds(t, k)
		f.CreateWidget("a", `{"title":"A","colour":"blue","fixed":{"x":"1"},"tags":["x"],"notes":{"aa":"1","bb":"2"},"elements":[{"id":"1"}]}`)
		out, err := f.patch("a", f.Stored("a").Revision.String(), patch)
		if err != nil {
			t.Fatal(patch, err)
		}
		var paths []string
		for _, w := range out.Warnings {
			if w.Code == failure.WarningCleared && w.Message == w.Path+" was cleared: the patch has null for it" {
				paths = append(paths, w.Path)
			}
		}
		if got := strings.Join(paths, ","); got != want {
			t.Errorf("%s cleared %q, want %q", patch, got, want)
		}
	}
}

func TestPatch_SaysAtMostTenThatItCleared(t *testing.T) {
	k, most := nestedWidget(), 20
	k.Spec.Field("notes").Constraint = descriptor.Constraint{MaxItems: &most, MaxLength: &most}
	f := setupKinds(t, k)
	entries, nulls := []string{}, []string{}
	for i := range 12 {
		entries = append(entries, fmt.Sprintf(`"k%d":"v"`, i))
		nulls = append(nulls, fmt.Sprintf(`"k%d":null`, i))
	}
	f.CreateWidget("a", `{"title":"A","notes":{`+strings.Join(entries, ",")+`}}`)
	out, err := f.patch("a", f.Stored("a").Revision.String(), `{"notes":{`+strings.Join(nulls, ",")+`}}`)
	if err != nil || len(out.Warnings) != 10 {
		t.Errorf("%v %v", out, err)
	}
}
