package engine

import (
	"encoding/json"
	"io"
	"strconv"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/service/jsontree"
	"github.com/sluicegw/sluice/graph/coercion"
)

// MaxSafeInt is the greatest value of the scalar SafeInt; the least is -MaxSafeInt.
const MaxSafeInt = jsontree.MaxSafeInteger

// MarshalSafeInt writes a SafeInt as a JSON number.
func MarshalSafeInt(i int64) graphql.Marshaler {
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.FormatInt(i, 10)) })
}

// UnmarshalSafeInt reads a SafeInt from a JSON number without fraction, or from an integer literal.
func UnmarshalSafeInt(v any) (int64, error) {
	switch i := v.(type) {
	case int64:
		v = json.Number(strconv.FormatInt(i, 10))
	case int:
		v = json.Number(strconv.Itoa(i))
	}
	return coercion.SafeInt(v)
}
