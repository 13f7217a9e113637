package read

import (
	"testing"

	"github.com/sluicegw/sluice/graph/client"
)

func TestServiceText_SaysHowFarTheCopyIs(t *testing.T) {
	for _, c := range []struct {
		service *client.KindService
		want    string
	}{
		{nil, ""},
		{&client.KindService{Name: "crm", State: "FOLLOWED", Followed: true, LagSeconds: 0.3}, "crm (followed)"},
		{&client.KindService{Name: "crm", State: "FOLLOWED"}, "crm (compared)"},
		{&client.KindService{Name: "crm", State: "UNAVAILABLE", LagSeconds: 61.2}, "crm (unavailable, 61 s behind)"},
	} {
		if got := serviceText(c.service); got != c.want {
			t.Errorf("%+v: %q, want %q", c.service, got, c.want)
		}
	}
}
