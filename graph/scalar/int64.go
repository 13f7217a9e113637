// Package scalar holds the Go side of the API's own scalars.
package scalar

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"
)

// MaxInt64 is the greatest value of the scalar Int64, and -MaxInt64 the least:
// integers up to it are exact in every reader of JSON (RFC 8259, section 6).
const MaxInt64 = 1<<53 - 1

// MarshalInt64 writes a JSON number.
func MarshalInt64(i int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(i, 10)) })
}

// UnmarshalInt64 reads a whole JSON number, or an integer of a document.
func UnmarshalInt64(v any) (int64, error) {
	var i int64
	switch v := v.(type) {
	case int64:
		i = v
	case int:
		i = int64(v)
	case json.Number:
		n, err := v.Int64()
		if err != nil {
			return 0, Refuse("%.40s is no Int64: a whole number within +-%d is accepted", v, MaxInt64)
		}
		i = n
	default:
		return 0, Refuse("%s is no Int64: a whole number within +-%d is accepted", describe(v), MaxInt64)
	}
	if i > MaxInt64 || i < -MaxInt64 {
		return 0, Refuse("%d is no Int64: a whole number within +-%d is accepted", i, MaxInt64)
	}
	return i, nil
}
