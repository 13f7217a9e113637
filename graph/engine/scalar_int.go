package engine

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// MaxSafeInt is the greatest value of the scalar SafeInt, and -MaxSafeInt the least:
// integers up to it are exact in every reader of JSON (RFC 8259, section 6).
const MaxSafeInt = 1<<53 - 1

// MarshalSafeInt writes a JSON number.
func MarshalSafeInt(i int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(i, 10)) })
}

// UnmarshalSafeInt reads a whole JSON number, or an integer of a document.
func UnmarshalSafeInt(v any) (int64, error) {
	var i int64
	switch v := v.(type) {
	case int64:
		i = v
	case int:
		i = int64(v)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return 0, refuseInput("%.40s is no SafeInt: a whole number within +-%d is accepted", v, MaxSafeInt)
		}
		i = n
	default:
		return 0, refuseInput("%s is no SafeInt: a whole number within +-%d is accepted", jsonKind(v), MaxSafeInt)
	}
	if i > MaxSafeInt || i < -MaxSafeInt {
		return 0, refuseInput("%d is no SafeInt: a whole number within +-%d is accepted", i, MaxSafeInt)
	}
	return i, nil
}
