package standard

import (
	"math"

	"google.golang.org/protobuf/reflect/protoreflect"
)

// rules are the bounds of a field that are declared with options of buf.validate or protoc-gen-validate.
type rules struct {
	required           bool
	minLength          *int
	maxLength          *int
	pattern            string
	in                 []string
	uuid               bool
	least, most        *float64
	minItems, maxItems *int
	unique             bool
	// items are the rules for the elements of a list, or for the values of a map. keys are the rules for the keys of a
	// map.
	items, keys *rules
}

// rulesOf returns the bounds of a field; zero if none are declared.
func rulesOf(f protoreflect.FieldDescriptor) rules {
	for _, name := range []protoreflect.FullName{optionBufField, optionPGVRules} {
		if declared := messageOption(f.Options(), name); declared != nil {
			return readRules(declared, 0)
		}
	}
	return rules{}
}

// readRules reads a buf.validate.FieldRules or a validate.FieldRules.
func readRules(m protoreflect.Message, depth int) (out rules) {
	if depth > maxDepth {
		return out
	}
	for _, path := range [][]protoreflect.Name{
		{"required"}, {"message", "required"}, {"timestamp", "required"}, {"duration", "required"},
	} {
		if v, ok := valueAt(m, path...); ok {
			is, _ := v.Interface().(bool)
			out.required = out.required || is
		}
	}
	out.readText(m)
	for _, name := range []protoreflect.Name{
		"int32", "int64", "uint32", "uint64", "sint32", "sint64", "fixed32", "fixed64", "sfixed32", "sfixed64", "float",
		"double",
	} {
		out.readNumber(m, name)
	}
	out.minItems = wholeAt(m, "repeated", "min_items")
	out.maxItems = wholeAt(m, "repeated", "max_items")
	if v, ok := valueAt(m, "repeated", "unique"); ok {
		out.unique, _ = v.Interface().(bool)
	}
	if n := wholeAt(m, "map", "max_pairs"); n != nil {
		out.maxItems = n
	}
	if n := wholeAt(m, "map", "min_pairs"); n != nil {
		out.minItems = n
	}
	for _, of := range []struct {
		path []protoreflect.Name
		to   **rules
	}{
		{[]protoreflect.Name{"repeated", "items"}, &out.items},
		{[]protoreflect.Name{"map", "values"}, &out.items},
		{[]protoreflect.Name{"map", "keys"}, &out.keys},
	} {
		v, ok := valueAt(m, of.path...)
		if !ok {
			continue
		}
		if inner, ok := v.Interface().(protoreflect.Message); ok {
			read := readRules(inner, depth+1)
			*of.to = &read
		}
	}
	return out
}

// readText reads the bounds of strings or bytes.
func (r *rules) readText(m protoreflect.Message) {
	for _, path := range []protoreflect.Name{"max_bytes", "len_bytes", "max_len", "len"} {
		if n := wholeAt(m, "string", path); n != nil {
			r.maxLength = n
		}
	}
	for _, path := range []protoreflect.Name{"min_len", "len"} {
		if n := wholeAt(m, "string", path); n != nil {
			r.minLength = n
		}
	}
	if n := wholeAt(m, "bytes", "max_len"); n != nil {
		const group = 3 // this many bytes are four characters of base64
		encoded := (*n + group - 1) / group * 4
		r.maxLength = &encoded
	}
	if v, ok := valueAt(m, "string", "pattern"); ok {
		r.pattern, _ = v.Interface().(string)
	}
	if v, ok := valueAt(m, "string", "uuid"); ok {
		r.uuid, _ = v.Interface().(bool)
	}
	r.in = textsAt(m, "string", "in")
}

// readNumber reads the bounds of numbers.
func (r *rules) readNumber(m protoreflect.Message, name protoreflect.Name) {
	step := 1.0
	if name == "float" || name == "double" {
		step = 0 // an open bound cannot be expressed, and the closed one is the nearest
	}
	for _, of := range []struct {
		name protoreflect.Name
		add  float64
		to   **float64
	}{
		{"gte", 0, &r.least}, {"gt", step, &r.least}, {"lte", 0, &r.most}, {"lt", -step, &r.most},
	} {
		if v, ok := valueAt(m, name, of.name); ok {
			if n, ok := floatOf(v); ok {
				n += of.add
				*of.to = &n
			}
		}
	}
	if r.least != nil && r.most != nil && *r.least > *r.most { // the rule accepts values outside of the two
		r.least = nil
		r.most = nil
	}
}

func floatOf(v protoreflect.Value) (n float64, ok bool) {
	switch v := v.Interface().(type) {
	case int32:
		n = float64(v)
	case int64:
		n = float64(v)
	case uint32:
		n = float64(v)
	case uint64:
		n = float64(v)
	case float32:
		n = float64(v)
	case float64:
		n = v
	default:
		return 0, false
	}
	return n, !math.IsNaN(n) && !math.IsInf(n, 0)
}

// wholeAt returns the number at a path of field names; nil if it is not set, or cannot be a length.
func wholeAt(m protoreflect.Message, names ...protoreflect.Name) *int {
	v, ok := valueAt(m, names...)
	if !ok {
		return nil
	}
	n, ok := floatOf(v)
	if !ok || n < 0 || n > math.MaxInt32 {
		return nil
	}
	whole := int(n)
	return &whole
}
