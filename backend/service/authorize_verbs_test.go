package service_test

import (
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/servicetest"
)

func TestAuthorize_FinalizersAndControllersWantVerbsOfTheirOwn(t *testing.T) {
	kinds := servicetest.Building()
	kinds[0].Verbs = slices.DeleteFunc(slices.Clone(kinds[0].Verbs), func(v descriptor.Verb) bool { return v == descriptor.VerbFinalize || v == descriptor.VerbControl })
	h := openHouseOf(t, servicetest.OpenMemory(t), kinds)
	h.Create("Room", "r", `{}`)
	if err := h.patch("Room", "r", "", servicetest.Labelled("a", "b")); err != nil {
		t.Error(err)
	}
	for _, m := range []service.MetadataPatch{finalizers("example.org/x"), without("example.org/x")} {
		if err := h.patch("Room", "r", "", m); servicetest.CodeOf(err) != failure.CodeBadUserInput {
			t.Errorf("a patch of finalizers: %v", err)
		}
	}
	if err := h.Writer.SetControlled(t.Context(), "Room", true); servicetest.CodeOf(err) != failure.CodeBadUserInput {
		t.Errorf("a controller: %v", err)
	}
}
