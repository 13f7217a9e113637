package engine_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/sluicegw/sluice/graph/engine"
)

func TestInt64IsAWholeNumberThatEveryReaderKeepsExact(t *testing.T) {
	for _, v := range []any{int64(5), 5, json.Number("5")} {
		if i, err := engine.UnmarshalSafeInt(v); err != nil || i != 5 {
			t.Errorf("%T: %d, %v", v, i, err)
		}
	}
	for _, v := range []any{json.Number("9007199254740991"), json.Number("-9007199254740991")} {
		if _, err := engine.UnmarshalSafeInt(v); err != nil {
			t.Errorf("%v: %v", v, err)
		}
	}
	for _, v := range []any{
		int64(1 << 53), json.Number("-9007199254740992"), json.Number("99999999999999999999"), json.Number("1.5"), "5", true, 1.5, nil,
	} {
		if i, err := engine.UnmarshalSafeInt(v); err == nil || !strings.Contains(err.Error(), "9007199254740991") {
			t.Errorf("%T %v: %d, %v", v, v, i, err)
		}
	}
}

func TestInt64IsWrittenAsANumber(t *testing.T) {
	var b strings.Builder
	engine.MarshalSafeInt(-engine.MaxSafeInt).MarshalGQL(&b)
	if b.String() != "-9007199254740991" {
		t.Error(b.String())
	}
}
