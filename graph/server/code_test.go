package server_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/graph/kinds"
)

func TestTheEnumOfErrorCodesHasThoseThatAreTold(t *testing.T) {
	catalogue, err := kinds.Embedded()
	if err != nil {
		t.Fatal(err)
	}
	api, err := catalogue.API()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, v := range api.Types["ErrorCode"].EnumValues {
		got = append(got, v.Name)
	}
	for _, code := range failure.Codes() {
		want = append(want, string(code))
	}
	slices.Sort(got)
	slices.Sort(want)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-told +enum):\n%s", diff)
	}
}
