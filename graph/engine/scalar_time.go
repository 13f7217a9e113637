package engine

import (
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/graph/coercion"
)

// MarshalTime writes a time in RFC 3339 form; the zero time as null.
func MarshalTime(t time.Time) graphql.Marshaler {
	if t.IsZero() {
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(t.Format(time.RFC3339Nano))) })
}

// UnmarshalTime reads a time in RFC 3339 form.
func UnmarshalTime(v any) (time.Time, error) { return coercion.Time(v) }
