package coercion

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// InputError is an error about a value in a request. Its message describes only the input and may be shown to the
// client.
type InputError struct{ Message string }

func (e *InputError) Error() string { return e.Message }

// Refuse returns an [*InputError] with a formatted message.
func Refuse(format string, args ...any) error {
	return &InputError{Message: fmt.Sprintf(format, args...)}
}

// JSONType returns the name of the JSON type of a value.
func JSONType(v any) string {
	switch v.(type) {
	case nil:
		return "null"
	case string:
		return "a string"
	case bool:
		return "a Boolean"
	case []any:
		return "a list"
	case map[string]any:
		return "an object"
	}
	return "a number"
}

// scalar coerces a value that is not null to a scalar. JSON has only one type of numbers, so 10.0 and 1e1 are also the
// Int 10. Integers are converted to digits. A scalar with an unknown name accepts every value.
func scalar(name string, value any) (any, error) {
	switch name {
	case "String":
		if _, ok := value.(string); !ok {
			return nil, refuseType(name, value)
		}
	case "Boolean":
		if _, ok := value.(bool); !ok {
			return nil, refuseType(name, value)
		}
	case "ID":
		return id(value)
	case "Int":
		number, ok := value.(json.Number)
		if !ok {
			return nil, refuseType(name, value)
		}
		i, whole := jsontree.Integer(number)
		if !whole || i < math.MinInt32 || i > math.MaxInt32 {
			return nil, refuseType(name, value)
		}
		return integer(i), nil
	case "SafeInt":
		i, err := SafeInt(value)
		if err != nil {
			return nil, err
		}
		return integer(i), nil
	case "Float":
		return float(value)
	case "Time":
		t, err := Time(value)
		if err != nil {
			return nil, err
		}
		return descriptor.FormatTime(t), nil
	}
	return value, nil
}

func integer(i int64) json.Number { return json.Number(strconv.FormatInt(i, 10)) }

// id coerces a value to an ID. It accepts a string, or an integer, which becomes a string (section 3.5.5).
func id(value any) (any, error) {
	switch value := value.(type) {
	case string:
		return value, nil
	case json.Number:
		if !strings.ContainsAny(value.String(), ".eE") {
			return value.String(), nil
		}
		if i, whole := jsontree.Integer(value); whole {
			return strconv.FormatInt(i, 10), nil
		}
		// Larger integers are not exact in all readers of JSON.
		if x, err := value.Float64(); err == nil && math.Abs(x) > jsontree.MaxSafeInteger {
			return strconv.FormatFloat(x, 'f', 0, 64), nil
		}
	}
	return nil, refuseType("ID", value)
}

// float coerces a value to a Float of 64 bits.
func float(value any) (any, error) {
	number, ok := value.(json.Number)
	if !ok {
		return nil, refuseType("Float", value)
	}
	x, err := number.Float64()
	if err != nil {
		return nil, refuseType("Float", value)
	}
	raw, err := json.Marshal(x)
	return json.Number(raw), err
}

// SafeInt returns the value of the scalar SafeInt: a whole number within +-[jsontree.MaxSafeInteger].
func SafeInt(value any) (int64, error) {
	number, ok := value.(json.Number)
	if !ok {
		return 0, Refuse(
			"%s is no SafeInt: a whole number within +-%d is accepted",
			JSONType(value),
			jsontree.MaxSafeInteger,
		)
	}
	i, whole := jsontree.Integer(number)
	if !whole {
		return 0, Refuse("%.40s is no SafeInt: a whole number within +-%d is accepted", number, jsontree.MaxSafeInteger)
	}
	return i, nil
}

// Time returns the value of the scalar Time: a time in RFC 3339 form.
func Time(value any) (time.Time, error) {
	text, ok := value.(string)
	if !ok {
		return time.Time{}, Refuse(
			"%s is no Time: a time in RFC 3339 form is accepted, like \"2026-01-31T12:00:00Z\"",
			JSONType(value),
		)
	}
	t, err := descriptor.ParseTime(text)
	if err != nil {
		return time.Time{}, Refuse("%q is no Time: %s", failure.Shorten(text), err)
	}
	return t, nil
}

// refuseType returns an error with the accepted type, and the type of the value. It does not contain the value, which
// may be a secret.
func refuseType(typ string, value any) error {
	given := JSONType(value)
	switch value.(type) {
	case string:
		given = "this string"
	case json.Number:
		given = "this number"
	}
	return Refuse("%s is accepted here, not %s", typ, given)
}
