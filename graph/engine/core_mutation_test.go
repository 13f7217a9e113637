package engine_test

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// TestCoreMutation_ThatPanics is told as an error of its field, with what is known of its change. The fields beside it
// are answered.
func TestCoreMutation_ThatPanics(t *testing.T) {
	const write = `mutation {
  a: updateKind(input: {kind: "Network", controlled: false}) { clientMutationId }
  b: updateKind(input: {kind: "Network", controlled: true}) { kind { name rebinding } }
  c: updateKind(input: {kind: "Subnet", controlled: true}) { kind { name } }
}`
	for name, c := range map[string]struct {
		reading             bool
		outcome, path, data string
	}{
		"when its answer is read": {true, failure.OutcomeApplied, "b.kind.rebinding", `{"kind":{"name":"Network","rebinding":null}}`},
		"while it is written":     {false, failure.OutcomeUnknown, "b", "null"},
	} {
		t.Run(name, func(t *testing.T) {
			store := &panicking{batch: 1, reading: c.reading}
			g := newGateway(t, networks(t), func(s backend.Store) backend.Store {
				store.Store = s
				return store
			})
			var panics []string
			g.exec.SetRecoverFunc(func(_ context.Context, v any) error {
				panics = append(panics, fmt.Sprint(v))
				return &failure.Error{Code: failure.CodeInternal, Message: "internal error"}
			})
			got := g.do(write, nil)
			if want := `{"a":{"clientMutationId":null},"b":` + c.data + `,"c":{"kind":{"name":"Subnet"}}}`; string(got.Data) != want {
				t.Errorf("%s, want %s", got.Data, want)
			}
			if len(got.Errors) != 1 || len(panics) != 1 {
				t.Fatalf("%v, panics %q", got.Errors, panics)
			}
			err := got.Errors[0]
			outcome, _ := err.Extensions["outcome"].(string)
			if known, ok := errors.AsType[*failure.Error](err); ok && outcome == "" {
				outcome = known.Outcome
			}
			if outcome != c.outcome || err.Path.String() != c.path || err.Message != "internal error" {
				t.Errorf("%v, outcome %s", err, outcome)
			}
		})
	}
}
