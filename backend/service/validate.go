package service

import (
	"context"
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

	"github.com/sluicegw/sluice/backend/descriptor"
)

// maxSafeInteger is the greatest integer that every JSON reader keeps exact.
const maxSafeInteger = 1<<53 - 1

// object checks the structure and the constraints of an object, then its rules.
func (v *violations) object(ctx context.Context, s *shape, path string, tree map[string]any) {
	before := len(v.list)
	for _, name := range sortedKeys(tree) {
		switch {
		case s.fields[name] != nil:
		case v.hidden:
			v.add(path, "unknown", "", "has a field that is none of %s; its fields are %s", s.Name, s.names())
		default:
			v.add(join(path, name), "unknown", "", "is not a field of %s%s", s.Name, s.suggest(name))
		}
	}
	for i := range s.Fields {
		f := s.fields[s.Fields[i].Name]
		value, ok := tree[f.Name]
		switch {
		case ok:
			v.field(ctx, f, join(path, f.Name), value)
		case f.Required:
			v.add(join(path, f.Name), "required", "", "is required")
		}
	}
	if n := len(tree); s.MinProperties > 0 && n < s.MinProperties {
		v.add(path, "minProperties", strconv.Itoa(s.MinProperties), "must have at least %d of the fields %s", s.MinProperties, s.names())
	} else if s.MaxProperties > 0 && n > s.MaxProperties {
		v.add(path, "maxProperties", strconv.Itoa(s.MaxProperties), "must have at most %d of the fields %s", s.MaxProperties, s.names())
	}
	if len(s.rules) == 0 || len(v.list) > before {
		return // rules may rely on the types
	}
	self := map[string]any{"self": s.effective(tree)}
	for _, r := range s.rules {
		if !r.transition {
			v.rule(ctx, r, path, self)
		}
	}
}

func (v *violations) rule(ctx context.Context, r rule, path string, vars map[string]any) {
	out, _, err := r.program.ContextEval(ctx, vars)
	if err != nil {
		v.add(path, "rule", r.CEL, "%s (the rule could not be evaluated)", r.Message)
	} else if ok, isBool := out.Value().(bool); !isBool || !ok {
		v.add(path, "rule", r.CEL, "%s", r.Message)
	}
}

func (s *shape) names() string {
	out := make([]string, len(s.Fields))
	for i, f := range s.Fields {
		out[i] = f.Name
	}
	return strings.Join(out, ", ")
}

// suggest finds the field that a misspelt name may mean.
func (s *shape) suggest(name string) string {
	best, distance := "", 4
	for _, f := range s.Fields {
		if len(name) > 64 {
			break
		}
		if d := levenshtein.ComputeDistance(strings.ToLower(name), strings.ToLower(f.Name)); d < distance && d < len(f.Name) {
			best, distance = f.Name, d
		}
	}
	if best == "" {
		return fmt.Sprintf("; its fields are %s", s.names())
	}
	return fmt.Sprintf("; did you mean %q?", best)
}

func (v *violations) field(ctx context.Context, f *field, path string, value any) {
	if f.WriteOnly && !v.hidden {
		v.hidden = true
		defer func() { v.hidden = false }()
	}
	if !f.List {
		v.value(ctx, f, path, value)
		return
	}
	list, ok := value.([]any)
	if !ok {
		v.add(path, "type", "list", "must be a list")
		return
	}
	c := f.Constraint
	if c.MinItems != nil && len(list) < *c.MinItems {
		v.add(path, "minItems", strconv.Itoa(*c.MinItems), "must have at least %d elements%s", *c.MinItems, v.has(len(list)))
	}
	if c.MaxItems != nil && len(list) > *c.MaxItems {
		v.add(path, "maxItems", strconv.Itoa(*c.MaxItems), "must have at most %d elements%s", *c.MaxItems, v.has(len(list)))
		return
	}
	for i, e := range list {
		at := path + "[" + strconv.Itoa(i) + "]"
		if e == nil {
			v.add(at, "type", string(f.Type), "must not be null")
			continue
		}
		v.value(ctx, f, at, e)
		if j := f.repeats(list, i); j >= 0 {
			v.add(at, "unique", "", "repeats element %d", j)
		}
	}
}

// repeats returns the earlier element that element i must differ from and does not, or -1.
func (f *field) repeats(list []any, i int) int {
	switch {
	case f.ListType == descriptor.ListMap:
		e, ok := list[i].(map[string]any)
		if !ok {
			return -1
		}
		return slices.IndexFunc(list[:i], func(o any) bool {
			other, ok := o.(map[string]any)
			return ok && !slices.ContainsFunc(f.Keys, func(k string) bool { return !equal(e[k], other[k]) })
		})
	case f.ListType == descriptor.ListSet || f.Constraint.Unique:
		return slices.IndexFunc(list[:i], func(o any) bool { return equal(o, list[i]) })
	}
	return -1
}

func (v *violations) value(ctx context.Context, f *field, path string, value any) {
	switch f.Type {
	case descriptor.TypeObject:
		if m, ok := value.(map[string]any); ok {
			v.object(ctx, f.shape, path, m)
		} else {
			v.add(path, "type", "object", "must be an object with the fields %s", f.shape.names())
		}
	case descriptor.TypeMap:
		v.mapping(f, path, value)
	case descriptor.TypeBoolean:
		if _, ok := value.(bool); !ok {
			v.add(path, "type", "Boolean", "must be true or false")
		}
	case descriptor.TypeInt, descriptor.TypeInt64, descriptor.TypeFloat:
		v.number(f, path, value)
	case descriptor.TypeEnum:
		if s, _ := value.(string); !f.Enum.Has(s) && !slices.Contains(v.kept[f], s) {
			accepted := make([]string, len(f.Enum.Values))
			for i, e := range f.Enum.Values {
				accepted[i] = e.Stored
			}
			v.add(path, "enum", strings.Join(accepted, ", "), "must be one of %s", strings.Join(accepted, ", "))
		}
	default:
		if s, ok := value.(string); ok {
			v.text(f, path, s)
		} else {
			v.add(path, "type", "String", "must be a string")
		}
	}
}

// mapping checks a map of strings to strings: its keys, and each value by the constraint of the field.
func (v *violations) mapping(f *field, path string, value any) {
	m, ok := value.(map[string]any)
	if !ok {
		v.add(path, "type", "map", "must be a mapping of strings to strings")
		return
	}
	c := f.Constraint
	if c.MinItems != nil && len(m) < *c.MinItems {
		v.add(path, "minProperties", strconv.Itoa(*c.MinItems), "must have at least %d keys%s", *c.MinItems, v.has(len(m)))
	}
	if c.MaxItems != nil && len(m) > *c.MaxItems {
		v.add(path, "maxProperties", strconv.Itoa(*c.MaxItems), "must have at most %d keys%s", *c.MaxItems, v.has(len(m)))
		return
	}
	for _, key := range sortedKeys(m) {
		at := join(path, key)
		if v.hidden {
			at = path
		}
		v.mapKey(f, at, key)
		if s, ok := m[key].(string); ok {
			v.text(f, at, s)
		} else {
			v.add(at, "type", "String", "must be a string")
		}
	}
}

func (v *violations) mapKey(f *field, at, key string) {
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
		v.add(at, "keyMinLength", strconv.Itoa(least), "the key must have at least %d characters", least)
	case n > most:
		v.add(at, "keyMaxLength", strconv.Itoa(most), "the key must have at most %d characters", most)
	case f.keyPattern != nil && !f.keyPattern.MatchString(key):
		v.add(at, "keyPattern", c.KeyPattern, "the key must match %s", c.KeyPattern)
	}
}

func (v *violations) number(f *field, path string, value any) {
	n, ok := value.(json.Number)
	if !ok {
		v.add(path, "type", string(f.Type), "must be a number")
		return
	}
	x, err := n.Float64()
	if err != nil {
		v.add(path, "type", string(f.Type), "must be a number that fits 64 bits")
		return
	}
	if f.Type != descriptor.TypeFloat {
		limit := float64(maxSafeInteger)
		if f.Type == descriptor.TypeInt {
			limit = math.MaxInt32
		}
		if x != math.Trunc(x) || x > limit || x < -limit-1 || f.Type == descriptor.TypeInt64 && x < -limit {
			v.add(path, "type", string(f.Type), "must be a whole number within +-%d", int64(limit))
			return
		}
	}
	if c := f.Constraint; c.Min != nil && x < *c.Min {
		v.add(path, "min", number(*c.Min), "must be at least %s", number(*c.Min))
	} else if c.Max != nil && x > *c.Max {
		v.add(path, "max", number(*c.Max), "must be at most %s", number(*c.Max))
	}
}

// has says how many there are, unless that is hidden.
func (v *violations) has(n int) string {
	if v.hidden {
		return ""
	}
	return fmt.Sprintf(", has %d", n)
}

func number(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }

func (v *violations) text(f *field, path, s string) {
	c, n := f.Constraint, utf8.RuneCountInString(s)
	if !utf8.ValidString(s) {
		v.add(path, "type", "String", "must be valid UTF-8")
		return
	}
	if c.MinLength != nil && n < *c.MinLength {
		v.add(path, "minLength", strconv.Itoa(*c.MinLength), "must have at least %d characters%s", *c.MinLength, v.has(n))
		return
	}
	if c.MaxLength != nil && n > *c.MaxLength {
		v.add(path, "maxLength", strconv.Itoa(*c.MaxLength), "must have at most %d characters%s", *c.MaxLength, v.has(n))
		return
	}
	if f.pattern != nil && !f.pattern.MatchString(s) {
		v.add(path, "pattern", c.Pattern, "must match %s", c.Pattern)
	}
	if len(c.In) > 0 && !slices.Contains(c.In, s) {
		v.add(path, "in", strings.Join(c.In, ", "), "must be one of %s", strings.Join(c.In, ", "))
	}
	if c.Format != "" && !accepts(c.Format, s) {
		v.add(path, "format", string(c.Format), "must be %s", says(c.Format))
	}
}

// transition checks a change of an object: that the effective value of each
// immutable field, where both sides have one, is the same, and the rules that
// mention oldSelf. Both are compared in what the shape can name.
func (v *violations) transition(ctx context.Context, s *shape, path string, next, old map[string]any) {
	before := len(v.list)
	for i := range s.Fields {
		f := s.fields[s.Fields[i].Name]
		now, ok1 := f.valueIn(next)
		was, ok2 := f.valueIn(old)
		if !ok1 || !ok2 {
			continue
		}
		at := join(path, f.Name)
		if f.Immutable && !f.same(now, was, effective) {
			v.add(at, "immutable", "", "cannot be changed once it is set")
			continue
		}
		if f.shape == nil {
			continue
		}
		if m, ok := now.(map[string]any); ok {
			if o, ok := was.(map[string]any); ok {
				v.transition(ctx, f.shape, at, m, o)
			}
		}
		if f.ListType == descriptor.ListMap {
			v.transitionElements(ctx, f, at, now, was)
		}
	}
	if len(v.list) > before {
		return
	}
	for _, r := range s.rules {
		if r.transition {
			v.rule(ctx, r, path, map[string]any{"self": s.effective(next), "oldSelf": s.effective(old)})
		}
	}
}

// transitionElements pairs the objects of two lists by their keys.
func (v *violations) transitionElements(ctx context.Context, f *field, path string, now, was any) {
	next, _ := now.([]any)
	old, _ := was.([]any)
	for i, e := range next {
		m, ok := e.(map[string]any)
		if !ok {
			continue
		}
		for _, o := range old {
			if w, ok := o.(map[string]any); ok && f.sameElement(m, w) {
				v.transition(ctx, f.shape, path+"["+strconv.Itoa(i)+"]", m, w)
			}
		}
	}
}

// valueIn is the effective value of the field in an object.
func (f *field) valueIn(tree map[string]any) (any, bool) {
	if value, ok := tree[f.Name]; ok {
		return value, true
	}
	return f.Default, f.Default != nil
}

func accepts(f descriptor.Format, s string) bool {
	switch f {
	case descriptor.FormatUUID:
		_, err := uuid.Parse(s)
		return err == nil && len(s) == 36
	case descriptor.FormatDuration:
		_, err := time.ParseDuration(s)
		return err == nil
	case descriptor.FormatDateTime:
		_, err := time.Parse(time.RFC3339, s)
		return err == nil
	case descriptor.FormatCIDR:
		_, err := netip.ParsePrefix(s)
		return err == nil
	case descriptor.FormatName:
		return len(s) <= MaxName && nameSyntax.MatchString(s)
	}
	return false
}

func says(f descriptor.Format) string {
	switch f {
	case descriptor.FormatUUID:
		return "a UUID like 123e4567-e89b-12d3-a456-426614174000"
	case descriptor.FormatDuration:
		return "a duration like 90s, 10m or 1h30m"
	case descriptor.FormatCIDR:
		return "a prefix like 192.168.0.0/24 or 2001:db8::/64"
	case descriptor.FormatDateTime:
		return "a time in RFC 3339 form like 2006-01-02T15:04:05Z"
	}
	return "a DNS-1123 subdomain like net-a"
}

func join(path, name string) string {
	if path == "" {
		return shorten(name)
	}
	return path + "." + shorten(name)
}
