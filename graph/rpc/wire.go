package rpc

import (
	"cmp"
	"context"
	"errors"
	"math"
	"regexp"
	"strings"

	"connectrpc.com/connect"
	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/encoding/protowire"
	protobuf "google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/dynamicpb"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// MaxValues is the maximum number of values in a request. A value may have only one byte in the request, but need some
// hundred bytes in memory.
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

// answer is an encoded message, in the form of its request. It is what package connect sends.
type answer struct{ data []byte }

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
	if a, ok := v.(*answer); ok {
		return a.data, nil
	}
	m, ok := v.(protobuf.Message) // the details of an error
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
	a, ok := v.(*answer)
	if !ok {
		return nil, errors.New("no answer")
	}
	return a.data, nil
}

// Unmarshal implements [connect.Codec]. It does nothing, because v is a [noMessage].
func (jsonCodec) Unmarshal([]byte, any) error { return nil }

// maxMessageDepth is the maximum depth of nested messages.
const maxMessageDepth = 100

// valueCounter counts the values in encoded messages.
type valueCounter struct {
	// most is the maximum number of values.
	most int
	// values is the number of all values. messages is the number of those that are messages.
	values, messages int
}

// held returns the size of the dynamic message in bytes, without its texts.
func (c *valueCounter) held() int { return c.values*valueHeld + c.messages*messageHeld }

// tree returns an upper bound for the size of the tree for the service in bytes, without its texts.
func (c *valueCounter) tree() int {
	return c.values*budget.InputHeld + c.messages*(budget.InputHeld+budget.InputObjectHeld)
}

// The sizes of values in memory, in bytes, as measured and rounded up. Texts are not included. valueHeld is for a value
// in a dynamic message, and messageHeld for a dynamic message without its values.
const (
	valueHeld   = 140
	messageHeld = 450
)

// count counts the values in an encoded message. It returns an error if there are too many, or if messages are nested
// more than depth levels deep.
func (c *valueCounter) count(of protoreflect.MessageDescriptor, data []byte, depth int) error {
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
		c.values++
		if f := of.Fields().ByNumber(number); f != nil && typ == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(data)
			if err := c.countInside(f, value, depth); err != nil {
				return err
			}
		}
		if c.values > c.most {
			return errTooMany()
		}
		data = data[n:]
	}
	return nil
}

// countInside counts the values within a field if it is a message or a packed list.
func (c *valueCounter) countInside(f protoreflect.FieldDescriptor, value []byte, depth int) error {
	switch {
	case f.Message() != nil:
		if !f.IsMap() {
			c.messages++
		}
		return c.count(f.Message(), value, depth-1)
	case !f.IsList():
		return nil
	}
	switch f.Kind() {
	case protoreflect.StringKind, protoreflect.BytesKind:
	case protoreflect.DoubleKind:
		c.values += len(value) / 8
	default: // each varint ends with a byte below 0x80
		for _, b := range value {
			if b < 0x80 {
				c.values++
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

// withoutValues returns an error of protojson without quoted values. They may be secret or long. withdrawn is
// [Config.Withdrawn].
func withoutValues(err error, withdrawn string) error {
	text := strings.ReplaceAll(err.Error(), "\u00a0", " ") // protojson uses both kinds of spaces
	found := jsonErrorForm.FindStringSubmatch(text)
	if found == nil {
		return failure.BadInput("", "the body is no JSON of this message")
	}
	what := failure.ShortenPath(cmp.Or(found[2], "something else is accepted here"))
	if !strings.HasPrefix(what, "unknown field") {
		withdrawn = ""
	}
	return failure.BadInput("", "line %s: %s%s", found[1], what, after(withdrawn))
}

// countJSON counts upper bounds for the values in JSON. Commas and opening brackets outside of strings count as values.
// Objects, and strings that may be times, count as messages.
func (c *valueCounter) countJSON(data []byte) error {
	inString := false
	begin := 0
	for i := 0; i < len(data); i++ {
		switch data[i] {
		case '"':
			if inString && mayBeTime(data[begin:i]) {
				c.messages++
			}
			inString = !inString
			begin = i + 1
		case '\\':
			i++ // in a string; elsewhere it is no JSON
		case ',', '{', '[':
			if !inString {
				c.values++
			}
			if !inString && data[i] == '{' {
				c.messages++
			}
		}
	}
	if c.values > c.most {
		return errTooMany()
	}
	return nil
}

// mayBeTime reports whether a string in JSON may be a google.protobuf.Timestamp, such as 2026-01-31T12:00:00Z. An
// escape may stand for a digit.
func mayBeTime(text []byte) bool {
	return len(text) >= len("2026-01-31T12:00:00Z") && (text[0] >= '0' && text[0] <= '9' || text[0] == '\\')
}

// toJSON returns an encoded message as JSON. It charges for the dynamic message that is in memory meanwhile.
func toJSON(ctx context.Context, of protoreflect.MessageDescriptor, data []byte) ([]byte, error) {
	c := valueCounter{most: math.MaxInt}
	if err := c.count(of, data, protowire.DefaultRecursionLimit); err != nil {
		return nil, err
	}
	held := c.held() + len(data)
	spent := budget.From(ctx)
	if err := spent.Expect(ctx, held); err != nil {
		return nil, err
	}
	defer spent.Unexpect(held)
	m := dynamicpb.NewMessage(of)
	if err := protobuf.Unmarshal(data, m); err != nil {
		return nil, err
	}
	return protojson.Marshal(m)
}
