package kind_test

import (
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"testing"

	"github.com/sluicegw/sluice/backend"
	"github.com/sluicegw/sluice/backend/body"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/backend/service/kind"
)

// bodies as they are, and as they should not be.
func bodies() []string {
	return []string{
		`{"version":"v1","metadata":{"generation":3,"labels":{"a":"b","é":"\u00e9"},"annotations":{},"description":"d","judged":"x","waits":["A/b/c"],"finalizers":["f"]},"spec":{"a":[1,{"b":null}]},"status":{"id":"x"}}`,
		`{"metadata":null,"spec":{}}`,
		`{"metadata":{"labels":null,"annotations":{"a":null},"description":null,"generation":null,"finalizers":null},"spec":{}}`,
		`{"metadata":{"labels":{"a":"b"}},"metadata":{"generation":2},"spec":{}}`,
		`{"metadata":{"labels":{"a":"b","a":null},"labels":{"c":"d"}},"spec":{"x":1},"spec":{}}`,
		`{"metadata":{"deletionRequestedAt":"2026-01-02T03:04:05.678Z","finalizing":true},"subKind":"S","spec":{}}`,
		`{"metadata":{"labels":{"a":1}},"spec":{}}`, `{"metadata":{"labels":[]},"spec":{}}`, `{"metadata":[],"spec":{}}`, `{"metadata":{"generation":1.5},"spec":{}}`,
		`{"metadata":{"deletionRequestedAt":"yesterday"},"spec":{}}`, `{"metadata":{"finalizers":["a",1]},"spec":{}}`, `{"metadata":{}}`, `{"metadata":nul,"spec":{}}`,
		`{"metadata":{"labels":{"a":"b"}`, `{"spec":{},"status":[]}`, `{"spec":null}`, `{"spec":{"a":"\`, `{"subKind":1,"spec":{}}`, ``, `[]`,
	}
}

// checkState holds a state against the tree of its body, and reads what it writes.
func checkState(t *testing.T, raw string) {
	t.Helper()
	st, err := kind.StateOf(&backend.Resource{Body: backend.EncodeBody([]byte(raw))})
	if err != nil {
		if !errors.Is(err, backend.ErrUnreadable) {
			t.Errorf("%q: %v", raw, err)
		}
		return
	}
	tree, err := jsontree.Parse(raw)
	if err != nil {
		t.Fatalf("%q is no body: %v", raw, err)
	}
	var parts struct{ Metadata json.RawMessage }
	if err := json.Unmarshal([]byte(raw), &parts); err != nil {
		t.Fatalf("%q is no body: %v", raw, err)
	}
	var want body.Metadata
	if err := json.Unmarshal(parts.Metadata, &want); parts.Metadata != nil && err != nil || !reflect.DeepEqual(st.Meta, want) {
		t.Errorf("%q: metadata %+v, want %+v: %v", raw, st.Meta, want, err)
	}
	if !reflect.DeepEqual(any(st.Spec), tree["spec"]) || st.Status() != nil && !reflect.DeepEqual(any(st.Status()), tree["status"]) {
		t.Errorf("%q: spec %v, status %v", raw, st.Spec, st.Status())
	}
	put, err := st.Put(&kind.Kind{Kind: new(kindOf("Widget", nil))}, backend.Key{}, nil, failure.StoredNames)
	if err != nil {
		t.Fatalf("%q: %v", raw, err)
	}
	again, err := kind.StateOf(&backend.Resource{Body: put.Body})
	if err != nil || !jsontree.Equal(again.Spec, st.Spec) || !again.SameBesides(st) || !slices.Equal(again.Meta.Waits, st.Meta.Waits) || again.Meta.Finalizing != st.Meta.Finalizing {
		t.Errorf("%q is written as %s and read as %+v: %v", raw, put.Body, again, err)
	}
}

func TestState_IsWhatItsBodySays(t *testing.T) {
	for _, raw := range bodies() {
		checkState(t, raw)
	}
}

func FuzzState(f *testing.F) {
	for _, raw := range bodies() {
		f.Add(raw)
	}
	f.Fuzz(checkState)
}
