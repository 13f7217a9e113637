package resolvers_test

import (
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend/service"
	"github.com/sluicegw/sluice/graph/scalar"
	"github.com/sluicegw/sluice/graph/v1/model"
	resolvers "github.com/sluicegw/sluice/resolvers/v1"
)

func TestAMapIsShownInTheOrderOfItsKeys(t *testing.T) {
	want := []*model.MapEntry{{Key: "a", Value: "1"}, {Key: "b", Value: "2"}}
	if diff := cmp.Diff(want, resolvers.Entries(scalar.StringMap{"b": "2", "a": "1"})); diff != "" {
		t.Error(diff)
	}
	if resolvers.Entries(nil) != nil || resolvers.Entries(scalar.StringMap{}) == nil {
		t.Error("an absent map and an empty one are told apart")
	}
}

func TestWhenAResourceExpiresIsUntouchedClearedOrSet(t *testing.T) {
	at := time.Unix(5, 0)
	for name, c := range map[string]struct {
		in   graphql.Omittable[*time.Time]
		want service.Optional[time.Time]
	}{
		"left out": {},
		"cleared":  {graphql.OmittableOf[*time.Time](nil), service.Optional[time.Time]{Set: true}},
		"set":      {graphql.OmittableOf(&at), service.Optional[time.Time]{Set: true, Value: at}},
	} {
		if got := resolvers.Expiring(service.Metadata{}, c.in).ExpiresAt; got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
	if resolvers.Text(nil) != "" || resolvers.Text(new("x")) != "x" {
		t.Error("a text that is left out is empty")
	}
}
