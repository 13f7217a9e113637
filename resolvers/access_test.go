package resolvers_test

import (
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

func TestAllowed_HasEveryVerbWithoutAccessControl(t *testing.T) {
	w := setup(t)
	k, err := w.svc.Kind("Network")
	if err != nil {
		t.Fatal(err)
	}
	verbs, err := w.Kind().Allowed(t.Context(), k)
	if err != nil || !slices.Contains(verbs, descriptor.VerbCreate) || slices.Contains(verbs, descriptor.VerbReveal) {
		t.Errorf("%v %v", verbs, err)
	}
	of, err := w.Query().Access(t.Context(), &k.Name, nil, nil)
	if err != nil || !slices.Equal(of, verbs) {
		t.Errorf("access: %v %v, want %v", of, err, verbs)
	}
}

func TestAccess_NamesTheArgumentThatIsRefused(t *testing.T) {
	w := setup(t)
	unknown, bad := "Nothing", "-"
	_, err := w.Query().Access(t.Context(), &unknown, nil, nil)
	w.refused("an unknown kind", err, failure.CodeBadUserInput, "kind")
	_, err = w.Query().AccessGrants(t.Context(), descriptor.VerbGet, nil, nil, nil)
	w.refused("no kind", err, failure.CodeBadUserInput, "kind")
	network := "Network"
	_, err = w.Query().AccessGrants(t.Context(), descriptor.VerbGet, &network, &bad, nil)
	w.refused("a bad namespace", err, failure.CodeValidationFailed, "namespace")
}
