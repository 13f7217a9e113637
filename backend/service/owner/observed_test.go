package owner_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/owner"
	"github.com/sluicegw/sluice/backend/service/owner/ownertest"
)

func TestObserved_TellsOfEachCallWithItsOutcome(t *testing.T) {
	var seen []string
	inner := ownertest.New("crm", ownertest.Full("Account"))
	s := owner.Observed(inner, func(method, outcome string) { seen = append(seen, method+" "+outcome) })
	key := backend.Key{Kind: "Account", Name: "a"}
	ctx := t.Context()
	all := func(ctx context.Context) {
		_, _ = s.Describe(ctx)
		_, _ = s.List(ctx, "Account", "", 10)
		_, _ = s.Get(ctx, []backend.Key{key})
		_, _ = s.Changes(ctx, "", 0)
		_, _ = s.Write(ctx, owner.Write{Resource: owner.Resource{Key: key, Spec: []byte(`{}`)}, IfAbsent: true})
		_, _ = s.Delete(ctx, owner.Delete{Key: key})
	}
	wants := func(want ...string) {
		t.Helper()
		if !slices.Equal(seen, want) {
			t.Errorf("it was told %q, want %q", seen, want)
		}
		seen = nil
	}
	all(ctx)
	wants("Describe OK", "List OK", "Get OK", "Changes OK", "Write DONE", "Delete DONE")
	_, _ = s.Delete(ctx, owner.Delete{Key: key})
	wants("Delete ABSENT")
	for outcome, err := range map[string]error{
		owner.CallNotSent:       fmt.Errorf("crm: %w", owner.ErrNotSent),
		owner.CallUnimplemented: owner.ErrUnimplemented,
		owner.CallLost:          errors.New("broken"),
	} {
		inner.SetHooks(ownertest.Hooks{Before: func(context.Context, ownertest.Call) error { return err }})
		all(ctx)
		wants("Describe "+outcome, "List "+outcome, "Get "+outcome, "Changes "+outcome, "Write "+outcome, "Delete "+outcome)
	}
	gone, leave := context.WithCancel(ctx)
	leave()
	inner.SetHooks(ownertest.Hooks{})
	_, _ = s.Get(gone, []backend.Key{key})
	wants("Get " + owner.CallCancelled)
}
