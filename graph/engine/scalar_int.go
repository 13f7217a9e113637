package engine

import (
	"encoding/json"
	"fmt"
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
	text := jsonKind(v)
	switch v := v.(type) {
	case int64, int:
		text = fmt.Sprint(v)
	case json.Number:
		text = v.String()
	}
	i, err := strconv.ParseInt(text, 10, 64)
	if err != nil || i > MaxSafeInt || i < -MaxSafeInt {
		return 0, refuseInput("%.40s is no SafeInt: a whole number within +-%d is accepted", text, MaxSafeInt)
	}
	return i, nil
}
