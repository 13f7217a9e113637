package kind

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"math"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/google/uuid"

	"github.com/sluicegw/sluice/backend/budget"
	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
	"github.com/sluicegw/sluice/backend/service/jsontree"
)

// Object validates a new object: its structure, its constraints and its rules. at is the path of the object.
func (v *Violations) Object(ctx context.Context, s *Shape, at *failure.Path, tree map[string]any) {
	v.begin(ctx)
	v.object(ctx, s, at, tree, nil)
}

// Change validates an object that replaces another. A value whose effective value does not change may violate
// constraints and rules, because these may have become stricter since the value was stored. So each constraint and each
// rule is checked only if its inputs have changed:
//
//	constraint                        inputs
//	of a value                        the value; in a SET or MAP, the element
//	minItems, maxItems                the number of elements
//	unique                            how often an element occurs
//	minProperties, maxProperties      which fields are set; of a map, the number of keys
//	of an entry of a map              its key and value
//	a rule                            the fields that it mentions; in has(), which are set
//	a rule that mentions oldSelf      the object
//
// Types, required fields and unknown fields are always checked, because a stored resource must be readable.
func (v *Violations) Change(ctx context.Context, s *Shape, at *failure.Path, next, old map[string]any) {
	v.begin(ctx)
	v.kept = nil
	v.kept.add(s, old)
	v.unchanged = s.same(next, old, effective)
	v.object(ctx, s, at, next, old)
	if !v.unchanged {
		v.checkChange(ctx, s, at, next, old)
	}
	v.unchanged = false
}

// Types validates types, required fields and unknown fields. It ignores constraints and rules.
func (v *Violations) Types(ctx context.Context, s *Shape, at *failure.Path, tree map[string]any) {
	v.begin(ctx)
	v.unchanged = true
	v.object(ctx, s, at, tree, nil)
	v.unchanged = false
}

// ListTypes validates the lists of a merge patch like [Violations.Types]. A patch replaces lists as a whole, so they
// can be validated before the patch is applied.
func (v *Violations) ListTypes(ctx context.Context, s *Shape, at *failure.Path, patch map[string]any) {
	v.begin(ctx)
	v.unchanged = true
	for _, f := range s.ordered {
		if value := patch[f.Name]; f.List && value != nil {
			v.field(ctx, f, at.Field(f.Field), value, prior{})
		}
	}
	v.unchanged = false
}

// begin takes the budget of the operation from ctx. If the budget is used up, nothing is validated.
func (v *Violations) begin(ctx context.Context) {
	v.spent = budget.From(ctx)
	if over := v.spent.Over(); over != nil {
		v.stop(over)
	}
}

// object validates an object. old is the stored object that it replaces; nil if it replaces none.
func (v *Violations) object(ctx context.Context, s *Shape, at *failure.Path, tree, old map[string]any) {
	before := len(v.found)
	for _, name := range s.unknown(tree) {
		if v.hidden {
			v.Add(
				at, "unknown", nil, "has a field that is none of %s; its fields are %s", s.Name, s.names(true),
			)
		} else {
			v.addUnknown(s, at, name)
		}
	}
	inner := at.Below() // one path for all fields, so that it stays on the stack
	for _, f := range s.ordered {
		value, ok := tree[f.Name]
		switch {
		case ok:
			inner.SetField(f.Field)
			v.field(ctx, f, &inner, value, f.in(old))
		case f.Required:
			v.Add(at.Field(f.Field), "required", nil, "is required")
		}
	}
	if n := len(tree); v.unchanged || old != nil && s.sameNames(tree, old) {
	} else if s.MinProperties > 0 && n < s.MinProperties {
		v.Add(
			at, "minProperties", s.MinProperties, "must have at least %d of the fields %s", s.MinProperties,
			s.names(v.FieldNames == failure.ManifestNames),
		)
	} else if s.MaxProperties > 0 && n > s.MaxProperties {
		v.Add(
			at, "maxProperties", s.MaxProperties, "must have at most %d of the fields %s", s.MaxProperties,
			s.names(v.FieldNames == failure.ManifestNames),
		)
	}
	if len(s.rules) == 0 || len(v.found) > before {
		return // rules may rely on the types
	}
	v.rules(ctx, s, at, tree, old)
}

// sameNames reports whether two objects set the same fields of the shape.
func (s *Shape) sameNames(a, b map[string]any) bool {
	return !slices.ContainsFunc(s.ordered, func(f *Field) bool {
		_, ok1 := a[f.Name]
		_, ok2 := b[f.Name]
		return ok1 != ok2
	})
}

// prior is the stored value that a new value replaces. ok is false if there is none.
type prior struct {
	value any
	ok    bool
}

// in returns the effective value of the field in a stored object, which may be nil.
func (f *Field) in(old map[string]any) (p prior) {
	if old != nil {
		p.value, p.ok = f.valueIn(old)
	}
	return p
}

// unknown returns the sorted names in a tree that are not fields of the shape.
func (s *Shape) unknown(tree map[string]any) (out []string) {
	for name := range tree {
		if s.fields[name] == nil {
			out = append(out, name)
		}
	}
	slices.Sort(out)
	return out
}

// names returns the names of the shape's fields for a message: the stored names, or otherwise the names in the API.
func (s *Shape) names(stored bool) string {
	out := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = f.InAPI()
		if stored {
			out[i] = f.Name
		}
	}
	return strings.Join(out, ", ")
}

// suggest returns a hint for a message, with the field whose name is most similar; "" if there is none.
func (s *Shape) suggest(name string) string {
	best, distance := "", 4
	for _, f := range s.Fields {
		if len(name) > 64 {
			break
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(f.Name)); d < distance &&
			d < len(f.Name) {
			best, distance = f.Name, d
		}
	}
	if best == "" {
		return fmt.Sprintf("; its fields are %s", s.names(true))
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

// field validates the value of a field.
func (v *Violations) field(ctx context.Context, f *Field, at *failure.Path, value any, old prior) {
	if f.WriteOnly && !v.hidden {
		v.hidden = true
		defer func() { v.hidden = false }()
	}
	if f.List {
		v.list(ctx, f, at, value, old)
	} else {
		v.one(ctx, f, at, value, old)
	}
}

// one validates a single value: the value of a field that is no list, or an element of a list.
func (v *Violations) one(ctx context.Context, f *Field, at *failure.Path, value any, old prior) {
	if was := v.unchanged; !was && old.ok && f.same(value, old.value, effective) {
		v.unchanged = true
		defer func() { v.unchanged = was }()
	}
	v.value(ctx, f, at, value, old)
}

func (v *Violations) value(ctx context.Context, f *Field, at *failure.Path, value any, old prior) {
	switch f.Type {
	case descriptor.TypeObject:
		if m, ok := value.(map[string]any); ok {
			was, _ := old.value.(map[string]any)
			v.object(ctx, f.shape, at, m, was)
		} else {
			v.Add(at, "type", "object", "must be an object with the fields %s", f.shape.names(true))
		}
	case descriptor.TypeMap:
		v.mapping(f, at, value, old)
	case descriptor.TypeBoolean:
		if _, ok := value.(bool); !ok {
			v.Add(at, "type", "Boolean", "must be true or false")
		}
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		v.number(f, at, value)
	case descriptor.TypeEnum:
		if s, _ := value.(string); !v.unchanged && !f.Enum.Has(s) && !slices.Contains(v.kept[f], s) {
			v.oneOf(at, "enum", len(f.Enum.Values), func(i int) string { return f.Enum.Values[i].Stored })
		}
	case descriptor.TypeTime:
		s, _ := value.(string)
		if _, err := descriptor.ParseTime(s); err != nil {
			v.Add(at, "type", "Time", "is no time: %s", err)
		}
	default:
		if s, ok := value.(string); ok {
			v.text(f, at, s)
		} else {
			v.Add(at, "type", "String", "must be a string")
		}
	}
}

// maxNamed is the maximum number of accepted values that a violation lists.
const maxNamed = 50

// oneOf adds the violation that a value is not one of the n accepted values.
func (v *Violations) oneOf(at *failure.Path, rule string, n int, accepted func(i int) string) {
	if v.full() {
		v.dropped++
		return
	}
	names := make([]string, min(n, maxNamed))
	for i := range names {
		names[i] = accepted(i)
	}
	text := strings.Join(names, ", ")
	if n > maxNamed {
		text += fmt.Sprintf(" or %d others", n-maxNamed)
	}
	v.Add(at, rule, text, "must be one of %s", text)
}

// mapping validates a map of strings to strings: its size, its keys, and its values by the constraint of the field.
func (v *Violations) mapping(f *Field, at *failure.Path, value any, old prior) {
	m, ok := value.(map[string]any)
	if !ok {
		v.Add(at, "type", "map", "must be a mapping of strings to strings")
		return
	}
	was, _ := old.value.(map[string]any)
	if !v.unchanged && (was == nil || len(was) != len(m)) && !v.count(f, at, "Properties", "keys", len(m)) {
		return
	}
	for _, key := range jsontree.Keys(m) {
		entry := at
		if !v.hidden {
			entry = at.Name(key)
		}
		text, isText := m[key].(string)
		if before, ok := was[key].(string); v.unchanged || ok && isText && before == text {
			continue
		}
		v.mapKey(f, entry, key)
		if isText {
			v.text(f, entry, text)
		} else {
			v.Add(entry, "type", "String", "must be a string")
		}
	}
}

// count validates the number of list elements or map keys. It returns false if there are too many.
func (v *Violations) count(f *Field, at *failure.Path, of, noun string, n int) bool {
	c := f.Constraint
	if c.MinItems != nil && n < *c.MinItems {
		v.Add(at, "min"+of, *c.MinItems, "must have at least %d %s%s", *c.MinItems, noun, v.has(n))
	}
	if c.MaxItems != nil && n > *c.MaxItems {
		v.Add(at, "max"+of, *c.MaxItems, "must have at most %d %s%s", *c.MaxItems, noun, v.has(n))
		return false
	}
	return true
}

func (v *Violations) mapKey(f *Field, at *failure.Path, key string) {
	c, n := f.Constraint, utf8.RuneCountInString(key)
	least, most := 1, MaxName
	if c.KeyMinLength != nil {
		least = *c.KeyMinLength
	}
	if c.KeyMaxLength != nil {
		most = *c.KeyMaxLength
	}
	switch {
	case n < least:
		v.Add(at, "keyMinLength", least, "the key must have at least %d characters", least)
	case n > most:
		v.Add(at, "keyMaxLength", most, "the key must have at most %d characters", most)
	case !v.matches(f.keyPattern, key):
		v.Add(at, "keyPattern", c.KeyPattern, "the key must match %s", c.KeyPattern)
	}
}

// oldNumber returns a hint for a text such as 1_000, which is a number in YAML 1.1 but a text in YAML 1.2. It returns
// "" for other values, and if the value is hidden.
func (v *Violations) oldNumber(value any) string {
	text, _ := value.(string)
	n, err := strconv.ParseInt(text, 0, 64)
	if v.hidden || err != nil || !strings.ContainsAny(text, "_bB") {
		return ""
	}
	return fmt.Sprintf("; digits with _ or 0b are a text in YAML 1.2: quote it or write %d", n)
}

func (v *Violations) number(f *Field, at *failure.Path, value any) {
	n, ok := value.(json.Number)
	if !ok {
		v.Add(at, "type", string(f.Type), "must be a number%s", v.oldNumber(value))
		return
	}
	x, err := n.Float64()
	if err != nil {
		v.Add(at, "type", string(f.Type), "must be a number that fits 64 bits")
		return
	}
	if f.Type != descriptor.TypeFloat {
		limit := int64(jsontree.MaxSafeInteger)
		if f.Type == descriptor.TypeInt {
			limit = math.MaxInt32
		}
		i, whole := jsontree.Integer(n)
		if !whole || i > limit || i < -limit && (f.Type != descriptor.TypeInt || i < math.MinInt32) {
			v.Add(at, "type", string(f.Type), "must be a whole number within +-%d", limit)
			return
		}
	}
	if c := f.Constraint; v.unchanged {
	} else if c.Min != nil && x < *c.Min {
		v.Add(at, "min", *c.Min, "must be at least %s", number(*c.Min))
	} else if c.Max != nil && x > *c.Max {
		v.Add(at, "max", *c.Max, "must be at most %s", number(*c.Max))
	}
}

// has returns ", has N" for a message; "" if the value is hidden.
func (v *Violations) has(n int) string {
	if v.hidden {
		return ""
	}
	return fmt.Sprintf(", has %d", n)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (v *Violations) text(f *Field, at *failure.Path, s string) {
	c, n := f.Constraint, utf8.RuneCountInString(s)
	if !utf8.ValidString(s) {
		v.Add(at, "type", "String", "must be valid UTF-8")
		return
	}
	if v.unchanged {
		return
	}
	if c.MinLength != nil && n < *c.MinLength {
		v.Add(at, "minLength", *c.MinLength, "must have at least %d characters%s", *c.MinLength, v.has(n))
		return
	}
	if c.MaxLength != nil && n > *c.MaxLength {
		v.Add(at, "maxLength", *c.MaxLength, "must have at most %d characters%s", *c.MaxLength, v.has(n))
		return
	}
	if !v.matches(f.pattern, s) {
		v.Add(at, "pattern", c.Pattern, "must match %s", c.Pattern)
	}
	if len(c.In) > 0 && !slices.Contains(c.In, s) {
		v.oneOf(at, "in", len(c.In), func(i int) string { return c.In[i] })
	}
	if c.Format == "" {
		return
	}
	if ok, what := accepts(c.Format, s); !ok && !slices.Contains(v.kept[f], s) {
		v.Add(at, "format", string(c.Format), "must be %s", what)
	}
}

// matches reports whether a text matches a pattern. If the budget does not suffice to find out, it returns true, and
// the operation fails because of the budget.
func (v *Violations) matches(p pattern, text string) bool {
	return p.Regexp == nil || !v.charge(1+len(text)*p.size/budget.PatternTries) || p.MatchString(text)
}

// accepts reports whether a text has a format. what describes the format for a message.
func accepts(f descriptor.Format, s string) (ok bool, what string) {
	var err error
	switch f {
	case descriptor.FormatUUID:
		_, err = uuid.Parse(s)
		return err == nil && len(s) == 36, "a UUID like 123e4567-e89b-12d3-a456-426614174000"
	case descriptor.FormatDuration:
		_, err = time.ParseDuration(s)
		return err == nil, "a duration like 90s, 10m or 1h30m"
	case descriptor.FormatDateTime:
		_, err = time.Parse(time.RFC3339, s)
		return err == nil, "a time in RFC 3339 form like 2006-01-02T15:04:05Z"
	case descriptor.FormatCIDR:
		_, err = netip.ParsePrefix(s)
		return err == nil, "a prefix like 192.168.0.0/24 or 2001:db8::/64"
	case descriptor.FormatBase64:
		_, err = base64.StdEncoding.DecodeString(s)
		return err == nil, "base64 with padding (RFC 4648 section 4)"
	}
	return f == descriptor.FormatName && isName(s), "a DNS-1123 subdomain like net-a"
}
