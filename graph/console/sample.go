package console

import (
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
)

// sampleDepth is the maximum depth of nested objects.
const sampleDepth = 8

// sample returns an object of the shape, in the form of the API. It has the required fields, and more if the shape
// requires a minimum number of fields. If a spec has the field resource, which is the desired state, the result has it
// too. sample does not consider rules.
func sample(s *descriptor.Shape, depth int) map[string]any {
	out := map[string]any{}
	if s == nil || depth > sampleDepth {
		return out
	}
	for _, f := range s.Fields {
		if f.Required && f.Default == nil || depth == 0 && isResource(f) {
			out[apiName(f)] = sampleOf(f, depth)
		}
	}
	for _, f := range s.Fields {
		if len(out) >= s.MinProperties {
			break
		}
		if f.Deprecated == "" {
			out[apiName(f)] = sampleOf(f, depth)
		}
	}
	return out
}

// isResource reports whether a field is the desired state in a spec that also has other fields.
func isResource(f descriptor.Field) bool {
	return f.Name == "resource" && f.Type == descriptor.TypeObject && !f.List
}

func apiName(f descriptor.Field) string {
	if f.APIName != "" {
		return f.APIName
	}
	return f.Name
}

// sampleOf returns a value of a field.
func sampleOf(f descriptor.Field, depth int) any {
	if !f.List {
		return element(f, 0, depth)
	}
	n := 1
	if f.Constraint.MinItems != nil {
		n = max(n, *f.Constraint.MinItems)
	}
	out := make([]any, n)
	for i := range out {
		out[i] = element(f, i, depth)
	}
	return out
}

// element returns a value of the field's type. For different i it returns different values, where that is easy.
func element(f descriptor.Field, i, depth int) any {
	switch f.Type {
	case descriptor.TypeObject:
		return sample(f.Shape, depth+1)
	case descriptor.TypeMap:
		return []any{map[string]any{"key": "example", "value": "example"}}
	case descriptor.TypeEnum:
		return f.Enum.Values[i%len(f.Enum.Values)].Name
	case descriptor.TypeBoolean:
		return true
	case descriptor.TypeTime:
		return sampleTime
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		return sampleNumber(f.Constraint, i)
	default:
		return sampleText(f.Constraint, i)
	}
}

const sampleTime = "2030-01-01T00:00:00Z"

// sampleNumber returns an integer within the bounds.
func sampleNumber(c descriptor.Constraint, i int) int64 {
	n := 1.0
	if c.Max != nil {
		n = min(n, math.Floor(*c.Max))
	}
	if c.Min != nil {
		n = max(n, math.Ceil(*c.Min))
	}
	other := n + float64(i)
	if c.Max != nil && other > *c.Max {
		return int64(n)
	}
	return int64(other)
}

// formatted returns a string of a format; "" if any string is valid.
func formatted(f descriptor.Format) string {
	switch f {
	case descriptor.FormatUUID:
		return "6f2b1c1e-3f57-4d1a-9c3e-0d6a6f6b2a10"
	case descriptor.FormatDuration:
		return "10m"
	case descriptor.FormatDateTime:
		return sampleTime
	case descriptor.FormatCIDR:
		return "192.0.2.0/24"
	case descriptor.FormatBase64:
		return "ZXhhbXBsZQ=="
	default:
		return ""
	}
}

// texts returns strings. They are tried one after another until one matches a pattern.
func texts() []string {
	return []string{
		"example", "Example", "EXAMPLE", "a", "A", "1", "10", "100", "1.0", "1.0.0", "v1", "1h", "10Gi", "example.org", "example-1",
		"192.0.2.1", "2001:db8::1", "192.0.2.0/24", "fa:16:3e:00:00:01", "https://example.org", "ada@example.org",
		"2030-01-01", "10:00", "sha256:" + strings.Repeat("0", 64), strings.Repeat("0", 32), "en", "EUR", "+1", "/example",
	}
}

// sampleText returns a string that satisfies the constraint, if one is known.
func sampleText(c descriptor.Constraint, i int) string {
	if len(c.In) > 0 {
		return c.In[i%len(c.In)]
	}
	if text := formatted(c.Format); text != "" {
		return text
	}
	for _, text := range texts() {
		if i > 0 {
			text = fmt.Sprintf("%s%d", text, i)
		}
		if c.MinLength != nil {
			text += strings.Repeat("e", max(0, *c.MinLength-utf8.RuneCountInString(text)))
		}
		if c.MaxLength != nil && utf8.RuneCountInString(text) > *c.MaxLength {
			continue
		}
		matches, err := regexp.MatchString(c.Pattern, text)
		if err == nil && matches {
			return text
		}
	}
	return "example"
}

// samplePatch returns a patch of an object in the kind's spec; nil if none can be made. path is the path of the object,
// followed by a dot. The patch changes the first field that has a single value and is not immutable, write-only,
// deprecated or a reference. If the spec has the field resource, only that field is searched.
func samplePatch(k *descriptor.Kind, s *descriptor.Shape, path string, depth int) map[string]any {
	if s == nil || depth > sampleDepth {
		return nil
	}
	whole := depth > 0 || !slices.ContainsFunc(s.Fields, isResource)
	for _, f := range s.Fields {
		if f.Immutable || f.List || f.WriteOnly || f.Deprecated != "" || refers(k, path+f.Name) ||
			!whole && !isResource(f) {
			continue
		}
		switch f.Type {
		case descriptor.TypeMap:
		case descriptor.TypeObject:
			inner := samplePatch(k, f.Shape, path+f.Name+".", depth+1)
			if inner != nil {
				return map[string]any{apiName(f): inner}
			}
		default:
			return map[string]any{apiName(f): element(f, 1, depth)}
		}
	}
	return nil
}

// refers reports whether the field at a path is a reference.
func refers(k *descriptor.Kind, path string) bool {
	return slices.ContainsFunc(k.References, func(r descriptor.Reference) bool { return r.Path == path })
}
