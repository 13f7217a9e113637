package resolvers_test

import (
	"testing"

	"github.com/sluicegw/sluice/backend/service/failure"
)

func TestUnreadables_AreOfAKnownKind(t *testing.T) {
	w := setup(t)
	found, err := w.Query().Unreadables(t.Context(), "networks", nil)
	if err != nil || found == nil || len(found) != 0 {
		t.Errorf("%v %v", found, err)
	}
	_, err = w.Query().Unreadables(t.Context(), "Nothing", nil)
	w.refused("an unknown kind", err, failure.CodeBadUserInput, "kind")
}
