package engine_test

import (
	"encoding/json"
	"testing"

	"github.com/sluicegw/sluice/graph/engine"
)

func entry(pairs ...any) map[string]any {
	out := map[string]any{}
	for i := 0; i < len(pairs); i += 2 {
		out[pairs[i].(string)] = pairs[i+1]
	}
	return out
}

func TestAMapIsReadFromEntriesAndStoredAsAnObject(t *testing.T) {
	for want, in := range map[string]any{
		`{"a":"1","b":"2"}`: []any{entry("key", "a", "value", "1"), entry("key", "b", "value", "2")},
		`{"a":"1"}`:         entry("key", "a", "value", "1"), // one value is a list of one, as everywhere in GraphQL
		`{}`:                []any{},
	} {
		var m engine.StringMap
		if err := m.UnmarshalGQL(in); err != nil {
			t.Errorf("%v: %v", in, err)
		}
		if raw, _ := json.Marshal(m); string(raw) != want {
			t.Errorf("%v: %s, want %s", in, raw, want)
		}
	}
}

func TestAPatchOfAMapRemovesAnEntryByNull(t *testing.T) {
	var m engine.StringMapPatch
	if err := m.UnmarshalGQL([]any{entry("key", "a", "value", nil), entry("key", "b", "value", "2"), entry("key", "c")}); err != nil {
		t.Fatal(err)
	}
	if raw, _ := json.Marshal(m); string(raw) != `{"a":null,"b":"2","c":null}` {
		t.Error(string(raw))
	}
}

func TestAMapWithOneKeyTwiceIsRefused(t *testing.T) {
	twice := []any{entry("key", "a", "value", "1"), entry("key", "a", "value", "1")}
	for name, in := range map[string]any{
		"one key twice": twice, "no key": []any{entry("value", "1")}, "no value": []any{entry("key", "a")}, "no entry": []any{"a"},
	} {
		if err := new(engine.StringMap).UnmarshalGQL(in); err == nil {
			t.Errorf("%s was accepted", name)
		}
	}
	if err := new(engine.StringMapPatch).UnmarshalGQL(twice); err == nil {
		t.Error("a patch of one key twice was accepted")
	}
}
