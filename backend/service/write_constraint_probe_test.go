package service_test

import (
	"encoding/json"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/failure"
)

// probe is one constraint, a spec with a value at its limit, and one with a value just past it.
type probe struct {
	path, rule string
	// limit that the error names; nil if the rule has none.
	limit any
	good  any
	bad   any
	// others is how many more violations the bad value has.
	others int
}

// survey collects the probes of a kind.
type survey struct {
	probes []probe
	// absent are limits of which there is no value: "path rule".
	absent []string
}

// spot is a place for values in a spec, which is otherwise acceptable.
type spot struct {
	path string
	put  func(any) any
	// ruled says that a rule bounds the values as well.
	ruled bool
	// ascii says that the longest value has characters of one byte alone: it is put into
	// another map, in base64, which has a limit of its own.
	ascii bool
}

// probesOf are the probes of every constraint in the spec of a kind.
func probesOf(k descriptor.Kind) *survey {
	p := &survey{}
	p.shape(k.Spec, spot{path: "spec", put: func(v any) any { return v }})
	return p
}

func (p *survey) add(a spot, rule string, limit, good, bad any) {
	p.probes = append(p.probes, probe{path: a.path, rule: rule, limit: limit, good: a.put(good), bad: a.put(bad)})
}

// shape probes an object that may stand at a place.
func (p *survey) shape(s *descriptor.Shape, a spot) {
	required := 0
	for i := range s.Fields {
		f := &s.Fields[i]
		within := spot{path: a.path + "." + f.Name, put: func(v any) any { return a.put(object(s, f.Name, v)) }}
		within.ruled = slices.ContainsFunc(s.Rules, func(r descriptor.Rule) bool { return strings.Contains(r.CEL, "self."+f.Name) })
		if f.Required {
			required++
			without := object(s, "", nil)
			delete(without, f.Name)
			p.probes = append(p.probes, probe{path: within.path, rule: "required", good: a.put(object(s, "", nil)), bad: a.put(without), others: missing(s, without)})
		}
		p.field(f, within)
	}
	if n := s.MinProperties; n > 0 {
		few := map[string]any{}
		if required == 0 {
			fill(s, few, n-1)
		}
		p.add(a, "minProperties", n, filled(s, n), few)
		p.probes[len(p.probes)-1].others = required
	}
	if n := s.MaxProperties; n > 0 && n < len(s.Fields) {
		p.add(a, "maxProperties", n, filled(s, n), filled(s, n+1))
	}
	p.add(a, "unknown", nil, object(s, "", nil), object(s, "noSuchField", 1))
}

// missing is 1 if an object without a required field has too few.
func missing(s *descriptor.Shape, without map[string]any) int {
	if len(without) < s.MinProperties {
		return 1
	}
	return 0
}

// filled has n fields, or those that it must have.
func filled(s *descriptor.Shape, n int) map[string]any {
	out := object(s, "", nil)
	fill(s, out, n)
	return out
}

func (p *survey) field(f *descriptor.Field, a spot) {
	c := f.Constraint
	if !f.List {
		p.element(f, a)
		return
	}
	p.add(a, "type", nil, list(f, 1), "no list")
	if c.MinItems != nil && *c.MinItems > 0 {
		p.add(a, "minItems", *c.MinItems, list(f, *c.MinItems), list(f, *c.MinItems-1))
	}
	if c.MaxItems != nil {
		p.add(a, "maxItems", *c.MaxItems, list(f, *c.MaxItems), list(f, *c.MaxItems+1))
	}
	if c.Unique || f.ListType == descriptor.ListSet || f.ListType == descriptor.ListMap {
		two := list(f, 2)
		p.probes = append(p.probes, probe{path: a.path + "[1]", rule: "unique", good: a.put(two), bad: a.put([]any{two[0], two[0]})})
	}
	p.element(f, spot{path: a.path + "[0]", put: func(v any) any { return a.put([]any{v}) }})
}

func (p *survey) element(f *descriptor.Field, a spot) {
	switch f.Type {
	case descriptor.TypeObject:
		p.add(a, "type", nil, element(f, 0), "no object")
		p.shape(f.Shape, a)
	case descriptor.TypeMap:
		p.mapping(f, a)
	case descriptor.TypeEnum:
		var stored []string
		for _, v := range f.Enum.Values {
			stored = append(stored, v.Stored)
		}
		p.add(a, "enum", strings.Join(stored, ", "), element(f, 0), stored[0]+"s")
	case descriptor.TypeBoolean:
		p.add(a, "type", "Boolean", true, "true")
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		p.number(f, a)
	case descriptor.TypeTime:
		p.add(a, "type", "Time", element(f, 0), "tomorrow")
		p.add(a, "type", "Time", element(f, 0), true)
	default:
		p.add(a, "type", "String", element(f, 0), true)
		p.text(f.Constraint, ofValues(), a, func(v string) spot { return spot{path: a.path, put: func(any) any { return a.put(v) }} })
	}
}

func (p *survey) number(f *descriptor.Field, a spot) {
	c := f.Constraint
	least, most, step := -1.0*(1<<53-1), 1.0*(1<<53-1), 1.0
	if f.Type == descriptor.TypeInt {
		least, most = math.MinInt32, math.MaxInt32
	}
	p.add(a, "type", string(f.Type), element(f, 0), "4")
	if f.Type == descriptor.TypeFloat {
		step = 0
	} else {
		p.add(a, "type", string(f.Type), element(f, 0), json.Number("4.5"))
		if c.Min == nil && !a.ruled {
			p.add(a, "type", string(f.Type), numeral(least), numeral(least-1))
		}
		if c.Max == nil && !a.ruled {
			p.add(a, "type", string(f.Type), numeral(most), numeral(most+1))
		}
	}
	if c.Min != nil {
		p.add(a, "min", *c.Min, numeral(*c.Min), numeral(min(*c.Min-step, math.Nextafter(*c.Min, math.Inf(-1)))))
	}
	if c.Max != nil {
		p.add(a, "max", *c.Max, numeral(*c.Max), numeral(max(*c.Max+step, math.Nextafter(*c.Max, math.Inf(1)))))
	}
}

// textRules are what the rules of a string are called.
type textRules struct{ minLength, maxLength, pattern string }

// ofValues and ofKeys are the rules of strings, and of the keys of maps.
func ofValues() textRules { return textRules{"minLength", "maxLength", "pattern"} }
func ofKeys() textRules   { return textRules{"keyMinLength", "keyMaxLength", "keyPattern"} }

// text probes what is asked of a string; place says where it is put, and by which
// path a violation is told.
func (p *survey) text(c descriptor.Constraint, rules textRules, a spot, place func(string) spot) {
	some := member(c, 0)
	bound := func(rule string, limit *int, past int) {
		if limit == nil || *limit+past < 0 {
			return
		}
		good, ok := textOf(c, *limit)
		if a.ascii {
			good = strings.Repeat("a", *limit)
		}
		if !ok {
			p.absent = append(p.absent, a.path+" "+rule)
			good = some
		}
		bad := place(strings.Repeat("é", *limit+past))
		p.probes = append(p.probes, probe{path: bad.path, rule: rule, limit: *limit, good: place(good).put(nil), bad: bad.put(nil)})
	}
	bound(rules.minLength, c.MinLength, -1)
	bound(rules.maxLength, c.MaxLength, 1)
	wrong := func(rule string, limit any, bad string) {
		b := place(bad)
		p.probes = append(p.probes, probe{path: b.path, rule: rule, limit: limit, good: place(some).put(nil), bad: b.put(nil)})
	}
	if c.Pattern != "" {
		bad, ok := first(misfits(c), func(s string) bool { return !matches(c.Pattern, s) })
		if !ok {
			p.absent = append(p.absent, a.path+" "+rules.pattern)
		} else {
			wrong(rules.pattern, c.Pattern, bad)
		}
	}
	if c.Format != "" {
		wrong("format", string(c.Format), misfits(c)[0])
	}
	if len(c.In) > 0 {
		wrong("in", strings.Join(c.In, ", "), misfits(c)[0])
	}
}

// mapping probes a map: how many keys there are, the keys, and the values.
func (p *survey) mapping(f *descriptor.Field, a spot) {
	c := f.Constraint
	p.add(a, "type", nil, element(f, 0), "no map")
	if c.MinItems != nil && *c.MinItems > 0 {
		p.add(a, "minProperties", *c.MinItems, mapping(f, *c.MinItems), mapping(f, *c.MinItems-1))
	}
	if c.MaxItems != nil {
		p.add(a, "maxProperties", *c.MaxItems, mapping(f, *c.MaxItems), mapping(f, *c.MaxItems+1))
	}
	key, value := member(keys(c), 0), member(c, 0)
	rest := map[string]any{}
	if c.MinItems != nil {
		rest = mapping(f, *c.MinItems)
		delete(rest, key)
	}
	with := func(key, value string) spot {
		m := maps.Clone(rest)
		m[key] = value
		at := failure.Join(a.path, key)
		if f.WriteOnly {
			at = a.path // its keys are not told
		}
		return spot{path: at, put: func(any) any { return a.put(m) }}
	}
	values := c
	values.KeyPattern = ""
	a.ascii = f.MergeInto != ""
	p.text(values, ofValues(), a, func(s string) spot { return with(key, s) })
	a.ascii = false
	p.text(keys(c), ofKeys(), a, func(s string) spot { return with(s, value) })
}
