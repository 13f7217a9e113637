package scalar

import (
	"io"
	"strconv"
	"time"

	"github.com/99designs/gqlgen/graphql"
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
	const accepted = `a time in RFC 3339 form is accepted, like "2026-01-31T12:00:00Z"`
	text, ok := v.(string)
	if !ok {
		return time.Time{}, Refuse("%s is no Time: %s", describe(v), accepted)
	}
	t, err := time.Parse(time.RFC3339Nano, text)
	if err != nil {
		return time.Time{}, Refuse("%.40q is no Time: %s", text, accepted)
	}
	if year := t.UTC().Year(); year < 0 || year > 9999 { // RFC 3339 cannot write it
		return time.Time{}, Refuse("%.40q is no Time: years 0000 to 9999 in UTC are accepted", text)
	}
	return t, nil
}
