package engine

import (
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// MarshalTime writes a time in RFC 3339 form; the zero time is null.
func MarshalTime(t time.Time) graphql.Marshaler {
	if t.IsZero() {
		return graphql.Null
	}
	return graphql.WriterFunc(func(w io.Writer) { _, _ = io.WriteString(w, strconv.Quote(t.Format(time.RFC3339Nano))) })
}

// UnmarshalTime reads a time in RFC 3339 form.
func UnmarshalTime(v any) (time.Time, error) {
	text, ok := v.(string)
	if !ok {
		return time.Time{}, refuseInput("%s is no Time: a time in RFC 3339 form is accepted, like \"2026-01-31T12:00:00Z\"", jsonKind(v))
	}
	t, err := descriptor.ParseTime(text)
	if err != nil {
		return time.Time{}, refuseInput("%q is no Time: %s", failure.Shorten(text), err)
	}
	return t, nil
}
