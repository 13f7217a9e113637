package body_test

import (
	"encoding/json"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
)

func TestParts(t *testing.T) {
	parts := &body.Parts{
		Version:  "v1",
		Metadata: body.Metadata{Generation: 3, Labels: map[string]string{"b": "2", "a": "1"}, Description: "d"},
		Spec:     json.RawMessage(`{"unknown":[],"z":1,"a":null}`), Status: json.RawMessage(`{"x":1.0}`),
	}
	t.Run("a body comes back with spec and status as they were sent", func(t *testing.T) {
		raw, err := parts.Encode()
		if err != nil {
			t.Fatal(err)
		}
		r := &backend.Resource{Body: raw}
		got, err := body.Decode(r)
		if d := cmp.Diff(parts, got); err != nil || d != "" {
			t.Errorf("error %v:\n%s", err, d)
		}
	})
	t.Run("what is no body is ErrUnreadable", func(t *testing.T) {
		for _, b := range []string{"", "j", "x{}", "j{", `j{"spec":1,"metadata":2}`} {
			r := &backend.Resource{Body: []byte(b)}
			if _, err := body.Decode(r); !errors.Is(err, backend.ErrUnreadable) {
				t.Errorf("%q: error %v", b, err)
			}
		}
	})
}
