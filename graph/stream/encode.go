package stream

import (
	"bytes"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
)

// Encode returns a response as JSON, in new memory since gqlgen reuses the memory of Data.
// A result without data was not executed and has no key "data".
func Encode(res *graphql.Response) []byte {
	var out bytes.Buffer
	out.Grow(len(res.Data) + 32)
	separator := byte('{')
	add := func(key string, value any) {
		data, err := json.Marshal(value)
		if err != nil {
			data = []byte("null")
		}
		out.WriteByte(separator)
		separator = ','
		out.WriteString(`"` + key + `":`)
		out.Write(data)
	}
	if len(res.Errors) > 0 {
		add("errors", res.Errors)
	}
	if res.Data != nil {
		out.WriteByte(separator)
		separator = ','
		out.WriteString(`"data":`)
		out.Write(res.Data)
	}
	if len(res.Extensions) > 0 {
		add("extensions", res.Extensions)
	}
	out.WriteByte('}')
	return out.Bytes()
}
