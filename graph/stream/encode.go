package stream

import (
	"bytes"
	"encoding/json"

	"github.com/99designs/gqlgen/graphql"
)

// Encode returns a response as JSON in new memory, since gqlgen uses the memory of Data again. The response to a
// request that was not executed has no member "data".
func Encode(res *graphql.Response) []byte {
	var out bytes.Buffer
	out.Grow(len(res.Data) + 32)
	separator := byte('{')
	add := func(key string, data []byte) {
		out.WriteByte(separator)
		separator = ','
		out.WriteString(`"` + key + `":`)
		out.Write(data)
	}
	if len(res.Errors) > 0 {
		add("errors", encoded(res.Errors))
	}
	if res.Data != nil {
		add("data", res.Data)
	}
	if len(res.Extensions) > 0 {
		add("extensions", encoded(res.Extensions))
	}
	out.WriteByte('}')
	return out.Bytes()
}

// encoded returns a value as JSON; null if it cannot be encoded.
func encoded(value any) []byte {
	data, err := json.Marshal(value)
	if err != nil {
		return []byte("null")
	}
	return data
}
