package standard

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// maxSafe is the largest integer that is exact in all readers of JSON.
const maxSafe = 1<<53 - 1

// decode converts those fields of m that the shape has to JSON values. The error names a value that JSON cannot
// express.
func (s *shape) decode(m protoreflect.Message) (map[string]any, error) {
	out := map[string]any{}
	for _, f := range s.fields {
		value, err := f.decode(m)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", f.name, err)
		}
		if value != nil {
			out[f.name] = value
		}
	}
	return out, nil
}

// decode returns the value of a field as a JSON value; nil if there is none.
func (f *field) decode(m protoreflect.Message) (any, error) {
	switch {
	case f.form == formMap:
		return f.decodeMap(m.Get(f.FieldDescriptor).Map())
	case f.form == formEntries:
		return f.decodeEntries(m.Get(f.FieldDescriptor).Map())
	case f.list:
		list := m.Get(f.FieldDescriptor).List()
		if list.Len() == 0 && !f.required {
			return nil, nil
		}
		out := make([]any, list.Len())
		for i := range out {
			value, err := f.decodeValue(list.Get(i))
			if err != nil {
				return nil, fmt.Errorf("[%d]: %w", i, err)
			}
			out[i] = value
		}
		return out, nil
	case !m.Has(f.FieldDescriptor) && !f.zero:
		return nil, nil
	}
	return f.decodeValue(m.Get(f.FieldDescriptor))
}

// decodeValue converts a value that is neither a list nor a map.
func (f *field) decodeValue(v protoreflect.Value) (any, error) {
	if f.wrapped {
		inner := v.Message()
		v = inner.Get(inner.Descriptor().Fields().ByNumber(1))
	}
	switch f.form {
	case formBool:
		return v.Bool(), nil
	case formInt, formSafe, formText64:
		return f.decodeWhole(v)
	case formFloat:
		return f.decodeFloat(v)
	case formBytes:
		return base64.StdEncoding.EncodeToString(v.Bytes()), nil
	case formEnum:
		value := f.Enum().Values().ByNumber(v.Enum())
		if value == nil {
			return nil, fmt.Errorf("the enum %s has no value %d", f.Enum().Name(), v.Enum())
		}
		return string(value.Name()), nil
	case formTime:
		return decodeTime(v.Message())
	case formDuration:
		return decodeDuration(v.Message())
	case formMessage:
		return f.shape.decode(v.Message())
	}
	if text := v.String(); utf8.ValidString(text) {
		return text, nil
	}
	return nil, fmt.Errorf("it is no UTF-8")
}

func (f *field) decodeWhole(v protoreflect.Value) (any, error) {
	unsigned, is := v.Interface().(uint64)
	if !is {
		if short, ok := v.Interface().(uint32); ok {
			unsigned = uint64(short)
			is = true
		}
	}
	switch {
	case f.form == formText64 && is:
		return strconv.FormatUint(unsigned, 10), nil
	case f.form == formText64:
		return strconv.FormatInt(v.Int(), 10), nil
	case is && unsigned <= maxSafe:
		return json.Number(strconv.FormatUint(unsigned, 10)), nil
	case !is && v.Int() <= maxSafe && v.Int() >= -maxSafe:
		return json.Number(strconv.FormatInt(v.Int(), 10)), nil
	}
	return nil, fmt.Errorf("%v is not within 2^53; name the field under text in the mapping", v.Interface())
}

func (f *field) decodeFloat(v protoreflect.Value) (any, error) {
	n := v.Float()
	if math.IsNaN(n) || math.IsInf(n, 0) {
		return nil, fmt.Errorf("%v cannot be expressed", n)
	}
	bits := 64
	if _, short := v.Interface().(float32); short {
		bits = 32
	}
	raw, err := json.Marshal(n)
	if bits == 32 {
		raw, err = json.Marshal(float32(n))
	}
	return json.Number(raw), err
}

// secondsOf returns the seconds and nanoseconds of a timestamp or duration.
func secondsOf(m protoreflect.Message) (seconds, nanos int64) {
	fields := m.Descriptor().Fields()
	for _, of := range []struct {
		number protoreflect.FieldNumber
		kind   protoreflect.Kind
		to     *int64
	}{{1, protoreflect.Int64Kind, &seconds}, {2, protoreflect.Int32Kind, &nanos}} {
		if f := fields.ByNumber(of.number); f != nil && f.Kind() == of.kind && !f.IsList() {
			*of.to = m.Get(f).Int()
		}
	}
	return seconds, nanos
}

// The first second of the year 1, and the last second of the year 9999.
const (
	leastSecond = -62135596800
	mostSecond  = 253402300799
)

// timeOf converts a timestamp. It returns an error unless the time is between the years 1 and 9999.
func timeOf(m protoreflect.Message) (time.Time, error) {
	seconds, nanos := secondsOf(m)
	if seconds < leastSecond || seconds > mostSecond || nanos < 0 || nanos >= 1e9 {
		return time.Time{}, fmt.Errorf("%d s and %d ns are no time between the years 1 and 9999", seconds, nanos)
	}
	return time.Unix(seconds, nanos).UTC(), nil
}

func decodeTime(m protoreflect.Message) (any, error) {
	at, err := timeOf(m)
	if err != nil {
		return nil, err
	}
	return at.Format(time.RFC3339Nano), nil
}

func decodeDuration(m protoreflect.Message) (any, error) {
	seconds, nanos := secondsOf(m)
	const most = math.MaxInt64 / int64(time.Second)
	if seconds > most-1 || seconds < -most+1 || nanos <= -1e9 || nanos >= 1e9 {
		return nil, fmt.Errorf("%d s and %d ns are no duration of less than 292 years", seconds, nanos)
	}
	text := (time.Duration(seconds)*time.Second + time.Duration(nanos)).String()
	for _, end := range []string{"0s", "0m"} { // 1h0m0s is 1h
		short, ok := strings.CutSuffix(text, end)
		if ok && short != "" && (strings.HasSuffix(short, "m") || strings.HasSuffix(short, "h")) {
			text = short
		}
	}
	return text, nil
}

func (f *field) decodeMap(m protoreflect.Map) (any, error) {
	if m.Len() == 0 && !f.required {
		return nil, nil
	}
	return textMap(m)
}

// textMap converts a map from strings to strings. It returns an error if one of the strings is not UTF-8.
func textMap(m protoreflect.Map) (map[string]any, error) {
	out := make(map[string]any, m.Len())
	valid := true
	m.Range(func(k protoreflect.MapKey, v protoreflect.Value) bool {
		valid = utf8.ValidString(k.String()) && utf8.ValidString(v.String())
		out[k.String()] = v.String()
		return valid
	})
	if !valid {
		return nil, fmt.Errorf("it has a text that is no UTF-8")
	}
	return out, nil
}

// decodeEntries converts a map to the list of its entries, sorted by key.
func (f *field) decodeEntries(m protoreflect.Map) (any, error) {
	if m.Len() == 0 && !f.required {
		return nil, nil
	}
	var keys []protoreflect.MapKey
	m.Range(func(k protoreflect.MapKey, _ protoreflect.Value) bool {
		keys = append(keys, k)
		return true
	})
	slices.SortFunc(keys, func(a, b protoreflect.MapKey) int { return strings.Compare(a.String(), b.String()) })
	out := make([]any, len(keys))
	for i, key := range keys {
		entry := map[string]any{}
		for part, v := range map[*field]protoreflect.Value{f.shape.fields[0]: key.Value(), f.shape.fields[1]: m.Get(key)} {
			value, err := part.decodeValue(v)
			if err != nil {
				return nil, fmt.Errorf("[%d].%s: %w", i, part.name, err)
			}
			entry[part.name] = value
		}
		out[i] = entry
	}
	return out, nil
}
