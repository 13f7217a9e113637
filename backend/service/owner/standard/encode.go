package standard

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"google.golang.org/protobuf/reflect/protoreflect"

	"github.com/sluicegw/sluice/backend/service/owner"
)

// maxViolations is the maximum number of violations in an answer.
const maxViolations = 100

// encoder encodes JSON values into messages. It collects a violation for each value that the message cannot express.
type encoder struct {
	violations []owner.Violation
}

// refuse adds a violation. It ignores violations after the first maxViolations.
func (e *encoder) refuse(path, rule, format string, args ...any) {
	if len(e.violations) < maxViolations {
		e.violations = append(e.violations, owner.Violation{Path: path, Rule: rule, Message: fmt.Sprintf(format, args...)})
	}
}

// parseObject parses a JSON object. Numbers keep their text.
func parseObject(raw []byte) (map[string]any, error) {
	if len(bytes.TrimSpace(raw)) == 0 {
		return map[string]any{}, nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out map[string]any
	if err := d.Decode(&out); err != nil {
		return nil, err
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("there is something after the JSON object")
	}
	return out, nil
}

// encode sets the fields of m that the shape has to the values of object, and clears those without a value. Other
// fields do not change.
func (e *encoder) encode(s *shape, m protoreflect.Message, object map[string]any, path string) {
	known := map[string]bool{}
	set := map[protoreflect.FullName]string{}
	for _, f := range s.fields { // before others are set: members of a oneof replace each other
		known[f.name] = true
		if object[f.name] == nil {
			m.Clear(f.FieldDescriptor)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if !known[name] && object[name] != nil {
			e.refuse(path+"."+name, "unknown", "the service has no such field")
		}
	}
	for _, f := range s.fields {
		value := object[f.name]
		if value == nil {
			continue
		}
		at := path + "." + f.name
		if choice := f.ContainingOneof(); choice != nil && !choice.IsSynthetic() {
			if other := set[choice.FullName()]; other != "" {
				e.refuse(at, "oneOf", "only one of %s and %s can be set", other, f.name)
				continue
			}
			set[choice.FullName()] = f.name
		}
		e.encodeField(f, m, value, at)
	}
}

func (e *encoder) encodeField(f *field, m protoreflect.Message, value any, path string) {
	switch {
	case f.form == formMap:
		e.encodeMap(f, m, value, path)
	case f.form == formEntries:
		e.encodeEntries(f, m, value, path)
	case f.list:
		e.encodeList(f, m, value, path)
	case f.form == formMessage:
		object, ok := value.(map[string]any)
		if !ok {
			e.refuse(path, "type", "an object is accepted")
			return
		}
		e.encode(f.shape, m.Mutable(f.FieldDescriptor).Message(), object, path)
	default:
		v, err := f.encodeValue(m.NewField(f.FieldDescriptor), value)
		if err != nil {
			e.refuse(path, "type", "%v", err)
			return
		}
		m.Set(f.FieldDescriptor, v)
	}
}

// encodeValue returns the value of a field whose value is not a message of the API. empty is an empty value of the
// field.
func (f *field) encodeValue(empty protoreflect.Value, value any) (protoreflect.Value, error) {
	if !f.wrapped {
		return f.encodeScalar(f.Kind(), empty, value)
	}
	inner := empty.Message()
	at := inner.Descriptor().Fields().ByNumber(1)
	v, err := f.encodeScalar(at.Kind(), protoreflect.Value{}, value)
	if err == nil {
		inner.Set(at, v)
	}
	return empty, err
}

func (f *field) encodeScalar(kind protoreflect.Kind, empty protoreflect.Value, value any) (out protoreflect.Value, err error) {
	text, isText := value.(string)
	switch f.form {
	case formBool:
		if is, ok := value.(bool); ok {
			return protoreflect.ValueOfBool(is), nil
		}
		return out, errors.New("true and false are accepted")
	case formInt, formSafe:
		if n, ok := value.(json.Number); ok {
			return wholeNumber(kind, n.String())
		}
		return out, errors.New("a whole number is accepted")
	case formText64:
		if isText {
			return wholeNumber(kind, text)
		}
		return out, errors.New("a whole number in a text is accepted")
	case formFloat:
		if n, ok := value.(json.Number); ok {
			return floatNumber(kind, n.String())
		}
		return out, errors.New("a number is accepted")
	}
	if !isText {
		return out, errors.New("a text is accepted")
	}
	switch f.form {
	case formBytes:
		raw, err := base64.StdEncoding.DecodeString(text)
		if err != nil {
			return out, errors.New("base64 with padding is accepted")
		}
		return protoreflect.ValueOfBytes(raw), nil
	case formEnum:
		if v := f.Enum().Values().ByName(protoreflect.Name(text)); v != nil {
			return protoreflect.ValueOfEnum(v.Number()), nil
		}
		return out, fmt.Errorf("the enum %s has no value %q", f.Enum().Name(), shortText(text))
	case formTime:
		at, err := time.Parse(time.RFC3339Nano, text)
		if err != nil {
			return out, errors.New("a time such as 2030-01-02T03:04:05Z is accepted")
		}
		return setSeconds(empty, at.Unix(), int64(at.Nanosecond())), nil
	case formDuration:
		d, err := time.ParseDuration(text)
		if err != nil {
			return out, errors.New("a duration such as 1h30m is accepted")
		}
		return setSeconds(empty, int64(d/time.Second), int64(d%time.Second)), nil
	}
	return protoreflect.ValueOfString(text), nil
}

// setSeconds sets the fields of a timestamp or a duration.
func setSeconds(to protoreflect.Value, seconds, nanos int64) protoreflect.Value {
	m := to.Message()
	fields := m.Descriptor().Fields()
	if f := fields.ByNumber(1); f != nil && f.Kind() == protoreflect.Int64Kind && !f.IsList() {
		m.Set(f, protoreflect.ValueOfInt64(seconds))
	}
	if f := fields.ByNumber(2); f != nil && f.Kind() == protoreflect.Int32Kind && !f.IsList() {
		m.Set(f, protoreflect.ValueOfInt32(int32(nanos)))
	}
	return to
}

// wholeNumber parses an integer. The text may have a fraction or an exponent, such as 1e3.
func wholeNumber(kind protoreflect.Kind, text string) (out protoreflect.Value, err error) {
	if strings.ContainsAny(text, ".eE") {
		n, err := strconv.ParseFloat(text, 64)
		if err != nil || n != math.Trunc(n) || math.Abs(n) > maxSafe {
			return out, errors.New("a whole number is accepted")
		}
		text = strconv.FormatFloat(n, 'f', -1, 64)
	}
	switch kind {
	case protoreflect.Int32Kind, protoreflect.Sint32Kind, protoreflect.Sfixed32Kind:
		n, err := strconv.ParseInt(text, 10, 32)
		if err != nil {
			return out, errors.New("a whole number of 32 bits is accepted")
		}
		return protoreflect.ValueOfInt32(int32(n)), nil
	case protoreflect.Uint32Kind, protoreflect.Fixed32Kind:
		n, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			return out, errors.New("a whole number of 32 bits without a sign is accepted")
		}
		return protoreflect.ValueOfUint32(uint32(n)), nil
	case protoreflect.Uint64Kind, protoreflect.Fixed64Kind:
		n, err := strconv.ParseUint(text, 10, 64)
		if err != nil {
			return out, errors.New("a whole number of 64 bits without a sign is accepted")
		}
		return protoreflect.ValueOfUint64(n), nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return out, errors.New("a whole number of 64 bits is accepted")
	}
	return protoreflect.ValueOfInt64(n), nil
}

func floatNumber(kind protoreflect.Kind, text string) (out protoreflect.Value, err error) {
	if kind == protoreflect.FloatKind {
		n, err := strconv.ParseFloat(text, 32)
		if err != nil {
			return out, errors.New("a number of 32 bits is accepted")
		}
		return protoreflect.ValueOfFloat32(float32(n)), nil
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return out, errors.New("a number of 64 bits is accepted")
	}
	return protoreflect.ValueOfFloat64(n), nil
}

// encodeList replaces a list.
func (e *encoder) encodeList(f *field, m protoreflect.Message, value any, path string) {
	elements, ok := value.([]any)
	if !ok {
		e.refuse(path, "type", "a list is accepted")
		return
	}
	if f.form == formMessage {
		e.encodeMessages(f, m, elements, path)
		return
	}
	next := m.NewField(f.FieldDescriptor)
	list := next.List()
	for i, element := range elements {
		v, err := f.encodeValue(list.NewElement(), element)
		if err != nil {
			e.refuse(path+"["+strconv.Itoa(i)+"]", "type", "%v", err)
			continue
		}
		list.Append(v)
	}
	m.Set(f.FieldDescriptor, next)
}

// encodeMessages replaces a list of messages.
//
// Messages may have fields that their JSON does not show. If a new element equals the JSON of a message, this message
// is kept with its hidden fields. If the list keeps its length, each changed element is encoded into the message at its
// index, which also keeps its hidden fields. If the length changes, it is unknown which message an element belongs to.
// Then a change that would lose hidden fields is a violation.
func (e *encoder) encodeMessages(f *field, m protoreflect.Message, elements []any, path string) {
	was := f.messagesOf(m)
	next := m.NewField(f.FieldDescriptor)
	out := make([]protoreflect.Value, len(elements))
	changed := map[int]map[string]any{}
	objects := 0
	for i, element := range elements {
		object, ok := element.(map[string]any)
		if !ok {
			e.refuse(path+"["+strconv.Itoa(i)+"]", "type", "an object is accepted")
			continue
		}
		objects++
		same, found := was.take(f, next.List(), object)
		if found {
			out[i] = same
		} else {
			changed[i] = object
		}
	}
	if objects < len(elements) {
		return // it was refused
	}
	sameLength := len(elements) == len(was.values)
	if !sameLength && len(changed) > 0 && was.leavesHidden(f) {
		e.refuse(path, "hidden", "elements have fields that are not shown here and would be lost; "+
			"change elements in one write, and add or remove elements in another")
		return
	}
	for i := range out {
		if object, is := changed[i]; is {
			out[i] = next.List().NewElement()
			if sameLength && !was.taken[i] {
				out[i] = was.values[i]
			}
			e.encode(f.shape, out[i].Message(), object, path+"["+strconv.Itoa(i)+"]")
		}
		next.List().Append(out[i])
	}
	m.Set(f.FieldDescriptor, next)
}

// messages are the messages of a list before it is changed.
type messages struct {
	values []protoreflect.Value
	// byJSON maps a JSON object to the indexes of the messages that have this JSON and were not taken. taken reports
	// which messages were taken.
	byJSON map[string][]int
	taken  []bool
}

func (f *field) messagesOf(m protoreflect.Message) *messages {
	list := m.Get(f.FieldDescriptor).List()
	out := &messages{byJSON: map[string][]int{}, taken: make([]bool, list.Len())}
	for i := range list.Len() {
		out.values = append(out.values, list.Get(i))
		object, err := f.shape.decode(list.Get(i).Message())
		if err != nil {
			continue
		}
		if raw, err := json.Marshal(object); err == nil {
			out.byJSON[string(raw)] = append(out.byJSON[string(raw)], i)
		}
	}
	return out
}

// take takes the first message whose JSON equals object. The JSON of a message leaves out some values, such as zeros,
// which object may have. Therefore object is encoded and decoded before the comparison. empty is an empty list of the
// messages' type.
func (w *messages) take(f *field, empty protoreflect.List, object map[string]any) (out protoreflect.Value, found bool) {
	if len(w.values) == 0 {
		return out, false
	}
	e := &encoder{}
	made := empty.NewElement().Message()
	e.encode(f.shape, made, object, "")
	if len(e.violations) > 0 {
		return out, false
	}
	shown, err := f.shape.decode(made)
	if err != nil {
		return out, false
	}
	raw, err := json.Marshal(shown)
	if err != nil || len(w.byJSON[string(raw)]) == 0 {
		return out, false
	}
	at := w.byJSON[string(raw)][0]
	w.byJSON[string(raw)] = w.byJSON[string(raw)][1:]
	w.taken[at] = true
	return w.values[at], true
}

// leavesHidden reports whether a message that was not taken has hidden fields, see [shape.hides].
func (w *messages) leavesHidden(f *field) bool {
	for i, value := range w.values {
		if !w.taken[i] && f.shape.hides(value.Message()) {
			return true
		}
	}
	return false
}

// hides reports whether a message has fields that are not in the shape and that the service does not set itself.
func (s *shape) hides(m protoreflect.Message) bool {
	if len(m.GetUnknown()) > 0 {
		return true
	}
	found := false
	m.Range(func(fd protoreflect.FieldDescriptor, v protoreflect.Value) bool {
		at := slices.IndexFunc(s.fields, func(f *field) bool { return f.Number() == fd.Number() })
		if at < 0 {
			found = !behaves(fd, behaviorOutputOnly)
		} else {
			found = s.fields[at].hides(v)
		}
		return !found
	})
	return found
}

// hides reports whether a message in the value of a field has hidden fields, see [shape.hides].
func (f *field) hides(v protoreflect.Value) bool {
	switch {
	case f.shape == nil:
		return false
	case f.form == formEntries:
		inner := f.shape.fields[1]
		found := false
		v.Map().Range(func(_ protoreflect.MapKey, value protoreflect.Value) bool {
			found = inner.hides(value)
			return !found
		})
		return found
	case f.list:
		list := v.List()
		for i := range list.Len() {
			if f.shape.hides(list.Get(i).Message()) {
				return true
			}
		}
		return false
	}
	return f.shape.hides(v.Message())
}

func (e *encoder) encodeMap(f *field, m protoreflect.Message, value any, path string) {
	object, ok := value.(map[string]any)
	if !ok {
		e.refuse(path, "type", "an object of texts is accepted")
		return
	}
	next := m.NewField(f.FieldDescriptor)
	for key, value := range object {
		text, ok := value.(string)
		if !ok {
			e.refuse(path+"."+key, "type", "a text is accepted")
			continue
		}
		next.Map().Set(protoreflect.ValueOfString(key).MapKey(), protoreflect.ValueOfString(text))
	}
	m.Set(f.FieldDescriptor, next)
}

func (e *encoder) encodeEntries(f *field, m protoreflect.Message, value any, path string) {
	entries, ok := value.([]any)
	if !ok {
		e.refuse(path, "type", "a list of keys and values is accepted")
		return
	}
	was := m.Get(f.FieldDescriptor).Map()
	next := m.NewField(f.FieldDescriptor)
	keyField := f.shape.fields[0]
	valueField := f.shape.fields[1]
	for i, entry := range entries {
		at := path + "[" + strconv.Itoa(i) + "]"
		object, ok := entry.(map[string]any)
		if !ok {
			e.refuse(at, "type", "an object with key and value is accepted")
			continue
		}
		key, err := keyField.encodeScalar(f.MapKey().Kind(), protoreflect.Value{}, object[keyField.name])
		if err != nil {
			e.refuse(at+"."+keyField.name, "type", "%v", err)
			continue
		}
		if next.Map().Has(key.MapKey()) {
			e.refuse(at+"."+keyField.name, "unique", "another entry has the key")
			continue
		}
		v := next.Map().NewValue()
		if valueField.form == formMessage {
			inner, _ := object[valueField.name].(map[string]any)
			if was.Has(key.MapKey()) {
				v = was.Get(key.MapKey())
			}
			e.encode(valueField.shape, v.Message(), inner, at+"."+valueField.name)
		} else if v, err = valueField.encodeValue(v, object[valueField.name]); err != nil {
			e.refuse(at+"."+valueField.name, "type", "%v", err)
			continue
		}
		next.Map().Set(key.MapKey(), v)
	}
	m.Set(f.FieldDescriptor, next)
}

// differing returns the names of the top-level fields in which two messages differ, in the order of the .proto file.
// For a field in inside, it returns the paths of the fields within that field instead.
func differing(a, b protoreflect.Message, inside map[protoreflect.Name]bool) (out []string) {
	fields := a.Descriptor().Fields()
	for i := range fields.Len() {
		f := fields.Get(i)
		if a.Has(f) == b.Has(f) && a.Get(f).Equal(b.Get(f)) {
			continue
		}
		if !inside[f.Name()] {
			out = append(out, string(f.Name()))
			continue
		}
		for _, name := range differing(a.Get(f).Message(), b.Get(f).Message(), nil) {
			out = append(out, string(f.Name())+"."+name)
		}
	}
	return out
}
