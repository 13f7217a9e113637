package remote

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/types/known/structpb"

	"github.com/sluicegw/sluice/backend/service/owner"
)

// inexactError is the error for a number that the contract cannot express exactly.
type inexactError struct {
	path, number string
}

func (e *inexactError) Error() string { return fmt.Sprintf("%s: %s", e.path, e.message()) }

func (e *inexactError) message() string {
	return fmt.Sprintf("the service cannot be sent the number %s exactly; 64-bit floating point is accepted, so "+
		"integers up to 2^53", cut(e.number, maxErrorText/2))
}

// answer returns the answer to a write that has the number.
func (e *inexactError) answer() owner.Answer {
	return owner.Answer{
		Outcome:    owner.Invalid,
		Violations: []owner.Violation{{Path: e.path, Rule: "range", Message: e.message()}},
	}
}

// parseObject parses a JSON object. path is the path of the object for errors.
func parseObject(raw []byte, path string) (*structpb.Struct, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var value any
	if err := d.Decode(&value); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, fmt.Errorf("%s: there is something after the JSON object", path)
	}
	object, ok := value.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("%s: it is no JSON object", path)
	}
	return objectOf(object, path)
}

func objectOf(object map[string]any, path string) (*structpb.Struct, error) {
	out := &structpb.Struct{Fields: make(map[string]*structpb.Value, len(object))}
	for name, value := range object {
		v, err := valueOf(value, path+"."+name)
		if err != nil {
			return nil, err
		}
		out.Fields[name] = v
	}
	return out, nil
}

func valueOf(value any, path string) (*structpb.Value, error) {
	switch value := value.(type) {
	case nil:
		return structpb.NewNullValue(), nil
	case bool:
		return structpb.NewBoolValue(value), nil
	case string:
		return structpb.NewStringValue(value), nil
	case json.Number:
		n, err := numberOf(value.String())
		if err != nil {
			return nil, &inexactError{path, value.String()}
		}
		return structpb.NewNumberValue(n), nil
	case []any:
		list := &structpb.ListValue{Values: make([]*structpb.Value, len(value))}
		for i, element := range value {
			v, err := valueOf(element, path+"["+strconv.Itoa(i)+"]")
			if err != nil {
				return nil, err
			}
			list.Values[i] = v
		}
		return structpb.NewListValue(list), nil
	case map[string]any:
		object, err := objectOf(value, path)
		if err != nil {
			return nil, err
		}
		return structpb.NewStructValue(object), nil
	}
	return nil, fmt.Errorf("%s: a %T is no JSON", path, value)
}

// numberOf parses a number. It returns an error for an integer that a 64-bit float cannot express exactly. It rounds
// fractions, as all JSON decoders do.
func numberOf(text string) (float64, error) {
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, err
	}
	if !strings.ContainsAny(text, ".eE") && strconv.FormatFloat(n, 'f', -1, 64) != text {
		return 0, errors.New("out of range")
	}
	return n, nil
}

// printObject returns an object as JSON, with sorted names. For nil it returns nil.
func printObject(object *structpb.Struct) ([]byte, error) {
	if object == nil {
		return nil, nil
	}
	return appendObject(nil, object)
}

func appendObject(out []byte, object *structpb.Struct) ([]byte, error) {
	out = append(out, '{')
	for i, name := range slices.Sorted(maps.Keys(object.GetFields())) {
		if i > 0 {
			out = append(out, ',')
		}
		var err error
		if out, err = appendString(out, name); err != nil {
			return nil, err
		}
		out = append(out, ':')
		if out, err = appendValue(out, object.Fields[name]); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

func appendValue(out []byte, value *structpb.Value) ([]byte, error) {
	switch value := value.GetKind().(type) {
	case *structpb.Value_BoolValue:
		return strconv.AppendBool(out, value.BoolValue), nil
	case *structpb.Value_NumberValue:
		raw, err := json.Marshal(value.NumberValue) // which refuses what is no number
		return append(out, raw...), err
	case *structpb.Value_StringValue:
		return appendString(out, value.StringValue)
	case *structpb.Value_StructValue:
		return appendObject(out, value.StructValue)
	case *structpb.Value_ListValue:
		out = append(out, '[')
		for i, element := range value.ListValue.GetValues() {
			if i > 0 {
				out = append(out, ',')
			}
			var err error
			if out, err = appendValue(out, element); err != nil {
				return nil, err
			}
		}
		return append(out, ']'), nil
	}
	return append(out, "null"...), nil
}

// appendString appends a JSON string. It does not escape characters that are only special in HTML.
func appendString(out []byte, text string) ([]byte, error) {
	plain := func(b byte) bool { return b >= ' ' && b < utf8.RuneSelf && b != '"' && b != '\\' }
	for i := range len(text) {
		if plain(text[i]) {
			continue
		}
		var buffer bytes.Buffer
		e := json.NewEncoder(&buffer)
		e.SetEscapeHTML(false)
		err := e.Encode(text)
		return append(out, bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))...), err
	}
	out = append(out, '"')
	out = append(out, text...)
	return append(out, '"'), nil
}
