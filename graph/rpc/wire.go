package rpc

import (
	"cmp"
	"errors"
	"regexp"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/failure"
)

// MaxValues is the maximum number of values in a request. A value may have only one byte in the request, but need more
// than fifty bytes in memory.
const MaxValues = 200_000

// errTooMany returns the error for a message with too many values.
func errTooMany() error {
	return failure.BadInput("", "the message has more than the %d values that are accepted", MaxValues)
}

// malformed returns the error for a message that cannot be decoded.
func malformed(err error) error {
	return failure.BadInput("", "the body is no message of this method: %v", err)
}

// noMessage is the empty message that package connect reads, see [incoming].
type noMessage struct{}

// codecs returns the codecs for answers.
func codecs() connect.HandlerOption {
	return connect.WithHandlerOptions(
		connect.WithCodec(binaryCodec{}),
		connect.WithCodec(jsonCodec{name: codecJSON}),
		connect.WithCodec(jsonCodec{name: codecJSON + "; charset=" + contentCharset}),
	)
}

// binaryCodec encodes messages in binary form.
type binaryCodec struct{}

var _ connect.Codec = binaryCodec{}

// Name implements [connect.Codec].
func (binaryCodec) Name() string { return codecProto }

// Marshal implements [connect.Codec].
func (binaryCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(protobuf.Message)
	if !ok {
		return nil, errors.New("no message")
	}
	return protobuf.Marshal(m)
}

// Unmarshal implements [connect.Codec]. It does nothing, because v is a [noMessage].
func (binaryCodec) Unmarshal([]byte, any) error { return nil }

// jsonCodec encodes messages as JSON.
type jsonCodec struct{ name string }

var _ connect.Codec = jsonCodec{}

// Name implements [connect.Codec].
func (c jsonCodec) Name() string { return c.name }

// Marshal implements [connect.Codec].
func (jsonCodec) Marshal(v any) ([]byte, error) {
	m, ok := v.(protobuf.Message)
	if !ok {
		return nil, errors.New("no message")
	}
	return protojson.Marshal(m)
}

// Unmarshal implements [connect.Codec]. It does nothing, because v is a [noMessage].
func (jsonCodec) Unmarshal([]byte, any) error { return nil }

// maxMessageDepth is the maximum depth of nested messages.
const maxMessageDepth = 100

// countValues counts the values in an encoded message, and subtracts their number from *left. It returns an error if
// *left becomes negative, or if messages are nested more than depth levels deep.
func countValues(of protoreflect.MessageDescriptor, data []byte, left *int, depth int) error {
	if depth == 0 {
		return failure.BadInput("", "the message is nested in more than the %d levels that are accepted", maxMessageDepth)
	}
	for len(data) > 0 {
		number, typ, n := protowire.ConsumeTag(data)
		if n < 0 {
			return malformed(protowire.ParseError(n))
		}
		data = data[n:]
		n = protowire.ConsumeFieldValue(number, typ, data)
		if n < 0 {
			return malformed(protowire.ParseError(n))
		}
		*left--
		if f := of.Fields().ByNumber(number); f != nil && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := countInside(f, value, left, depth); err != nil {
				return err
			}
		}
		if *left < 0 {
			return errTooMany()
		}
		data = data[n:]
	}
	return nil
}

// countInside counts the values within a field if it is a message or a packed list, and subtracts their number from
// *left.
func countInside(f protoreflect.FieldDescriptor, value []byte, left *int, depth int) error {
	switch {
	case f.Message() != nil:
		return countValues(f.Message(), value, left, depth-1)
	case !f.IsList():
		return nil
	}
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
	case protoreflect.DoubleKind:
		*left -= len(value) / 8
	default: // each varint ends with a byte below 0x80
		for _, b := range value {
			if b < 0x80 {
				*left--
			}
		}
	}
	return nil
}

// jsonErrorForm matches the position and the description in an error of protojson. Quoted text of the message may
// follow.
var jsonErrorForm = regexp.MustCompile(`\(line (\d+:\d+)\): ` +
	`(unknown field "(?:[^"\\]|\\.)*"|invalid value for \w+ (?:field \w+|key)|` +
	`invalid [\w.]+ value|duplicate field|duplicate map key)?`)

// withoutValues returns an error of protojson without quoted values. They may be secret or long.
func withoutValues(err error) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // protojson uses both kinds of spaces
	found := jsonErrorForm.FindStringSubmatch(text)
	if found == nil {
		return failure.BadInput("", "the body is no JSON of this message")
	}
	what := failure.ShortenPath(cmp.Or(found[2], "something else is accepted here"))
	return failure.BadInput("", "line %s: %s", found[1], what)
}

// jsonValues returns an upper bound for the number of values in JSON: the number of commas and opening brackets outside
// of strings.
func jsonValues(data []byte) int {
	count := 0
	inString := false
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			inString = !inString
		case '\\':
			i++ // in a string; elsewhere it is no JSON
		case ',', '{', '[':
			if !inString {
				count++
			}
		}
	}
	return count
}
