package engine_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sluicegw/sluice/graph/coercion"
	"github.com/sluicegw/sluice/graph/engine"
)

func TestATimeIsReadInRFC3339FormOnly(t *testing.T) {
	for _, text := range []string{"2026-01-31T12:00:00Z", "2026-01-31T13:00:00.5+01:00"} {
		if got, err := engine.UnmarshalTime(text); err != nil || got.IsZero() {
			t.Errorf("%s: %v, %v", text, got, err)
		}
	}
	for _, v := range []any{"2026-01-01", "", "2026-01-31 12:00:00", "yesterday", strings.Repeat("9", 1000), json.Number("1"), true, nil, []any{}, map[string]any{}} {
		var input *coercion.InputError
		if got, err := engine.UnmarshalTime(v); !errors.As(err, &input) || !strings.Contains(err.Error(), "2026-01-31T12:00:00Z") || len(err.Error()) > 200 {
			t.Errorf("%v: %v, %v", v, got, err)
		}
	}
}

func TestATimeIsWrittenAsItIsRead(t *testing.T) {
	at := time.Date(2026, 1, 31, 12, 0, 0, 5, time.UTC)
	var b strings.Builder
	engine.MarshalTime(at).MarshalGQL(&b)
	engine.MarshalTime(time.Time{}).MarshalGQL(&b)
	if b.String() != `"2026-01-31T12:00:00.000000005Z"null` {
		t.Error(b.String())
	}
}

// TestWhatIsWrongIsSaidInTheWordsOfJSON and not in those of Go.
func TestWhatIsWrongIsSaidInTheWordsOfJSON(t *testing.T) {
	for want, v := range map[string]any{
		"a list": []any{}, "an object": map[string]any{}, "a string": "x", "a Boolean": true, "a number": 1.5, "null": nil,
	} {
		if _, err := engine.UnmarshalSafeInt(v); err == nil || !strings.HasPrefix(err.Error(), want+" is no SafeInt") {
			t.Errorf("%v: %v", v, err)
		}
	}
}
