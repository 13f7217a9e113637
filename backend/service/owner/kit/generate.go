package kit

import (
	"encoding/json"
	"fmt"
	"math"
	"math/rand/v2"
	"regexp"
	"regexp/syntax"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/backend/service/owner"
)

const (
	// maxDepth is the maximum depth of nested objects.
	maxDepth = 8
	// variants is the number of values of the varied field.
	variants = 64
	// repeats is the maximum number of repetitions of a part of a pattern in addition to the required ones.
	repeats = 4
	// drawn is the number of strings that are generated for a pattern.
	drawn = 8
)

// generator makes specs of a kind, from examples or from the description of the kind. All methods except avoid are safe
// for concurrent use.
type generator struct {
	kind     *descriptor.Kind
	examples []owner.Resource
	// texts maps the paths of string fields to their candidates.
	texts map[string][]string
	// choice maps the paths of fields to the index of the candidate that is used.
	choice map[string]int
	// optional has the paths of the optional fields that are set.
	optional map[string]bool
	// full reports whether all fields are set.
	full bool
	// varied is the path of the field whose value differs between specs. values are its values. Both are nil if there
	// is no such field.
	varied []string
	values []any
	random *rand.Rand
}

func newGenerator(k *descriptor.Kind, examples []owner.Resource, random *rand.Rand) *generator {
	g := &generator{
		kind: k, examples: examples, random: random,
		texts: map[string][]string{}, choice: map[string]int{}, optional: map[string]bool{},
	}
	if len(examples) == 0 && k.Spec != nil {
		g.prepare(k.Spec, "spec", 0)
		g.vary(k.Spec, nil)
	}
	return g
}

// prepare generates the candidates of all strings.
func (g *generator) prepare(s *descriptor.Shape, at string, depth int) {
	for i := range s.Fields {
		f := &s.Fields[i]
		path := at + "." + f.Name
		switch {
		case f.Type == descriptor.TypeString:
			g.texts[path] = g.candidates(f.Name, f.Constraint)
		case f.Shape != nil && depth < maxDepth:
			g.prepare(f.Shape, path, depth+1)
		}
	}
}

// vary sets varied and values. It chooses the field with the most values. It does not choose fields that are immutable,
// lists, write-only, deprecated or references.
func (g *generator) vary(s *descriptor.Shape, at []string) {
	for i := range s.Fields {
		f := &s.Fields[i]
		path := append(slices.Clone(at), f.Name)
		if f.List || f.Immutable || f.WriteOnly || f.Deprecated != "" || g.refers(path) {
			continue
		}
		if f.Type == descriptor.TypeObject && f.Required && len(at) < maxDepth {
			g.vary(f.Shape, path)
			continue
		}
		values := g.valuesOf(f, "spec."+strings.Join(path, "."))
		if len(values) > len(g.values) {
			g.varied = path
			g.values = values
		}
	}
}

// refers reports whether a field of the spec refers to another resource.
func (g *generator) refers(path []string) bool {
	text := "spec." + strings.Join(path, ".")
	return slices.ContainsFunc(g.kind.References, func(r descriptor.Reference) bool { return r.Path == text })
}

// valuesOf returns different values of a field.
func (g *generator) valuesOf(f *descriptor.Field, path string) (out []any) {
	switch f.Type {
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		for i := range variants {
			n := number(f.Constraint, i)
			if i == 0 || n != number(f.Constraint, i-1) {
				out = append(out, n)
			}
		}
	case descriptor.TypeBoolean:
		out = []any{true, false}
	case descriptor.TypeEnum:
		for _, v := range f.Enum.Values {
			out = append(out, v.Stored)
		}
	case descriptor.TypeString:
		for _, text := range g.texts[path] {
			out = append(out, text)
		}
	}
	return out
}

// canVary reports whether the generator can make different specs.
func (g *generator) canVary() bool { return len(g.values) > 1 || len(g.examples) > 1 }

// spec returns a spec. Different variants have different specs, if there are enough values.
func (g *generator) spec(variant int) []byte {
	if len(g.examples) > 0 {
		return g.examples[variant%len(g.examples)].Spec
	}
	out := map[string]any{}
	if g.kind.Spec != nil {
		out = g.object(g.kind.Spec, "spec", 0)
	}
	if variant > 0 && len(g.values) > 0 {
		set(out, g.varied, g.values[variant%len(g.values)])
	}
	raw, err := json.Marshal(out)
	if err != nil {
		panic(err) // it is made of texts and numbers
	}
	return raw
}

func set(tree map[string]any, path []string, value any) {
	for _, step := range path[:len(path)-1] {
		below, ok := tree[step].(map[string]any)
		if !ok {
			return
		}
		tree = below
	}
	tree[path[len(path)-1]] = value
}

// object returns an object with its required fields and the fields in optional. If full is set, the object has all
// fields except deprecated and write-only ones.
func (g *generator) object(s *descriptor.Shape, at string, depth int) map[string]any {
	out := map[string]any{}
	if depth > maxDepth {
		return out
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		path := at + "." + f.Name
		if f.Required || g.optional[path] || g.full && f.Deprecated == "" && !f.WriteOnly {
			out[f.Name] = g.value(f, path, depth)
		}
	}
	for i := range s.Fields {
		f := &s.Fields[i]
		if _, there := out[f.Name]; !there && len(out) < s.MinProperties {
			out[f.Name] = g.value(f, at+"."+f.Name, depth)
		}
	}
	return out
}

func (g *generator) value(f *descriptor.Field, path string, depth int) any {
	if !f.List {
		return g.element(f, path, 0, depth)
	}
	n := 1
	if f.Constraint.MinItems != nil {
		n = max(n, *f.Constraint.MinItems)
	}
	out := make([]any, n)
	for i := range out {
		out[i] = g.element(f, path, i, depth)
	}
	return out
}

// element returns the i-th value of a field, counted from 0. The values differ, if there are enough of them.
func (g *generator) element(f *descriptor.Field, path string, i, depth int) any {
	n := g.choice[path] + i
	switch f.Type {
	case descriptor.TypeObject:
		out := g.object(f.Shape, path, depth+1)
		for _, key := range f.Keys {
			field := f.Shape.Field(key)
			out[key] = g.element(field, path+"."+key, i, depth+1)
		}
		return out
	case descriptor.TypeMap:
		return map[string]any{"example": "example"}
	case descriptor.TypeEnum:
		return f.Enum.Values[n%len(f.Enum.Values)].Stored
	case descriptor.TypeBoolean:
		return n%2 == 0
	case descriptor.TypeTime:
		return fmt.Sprintf("2030-01-02T03:04:%02dZ", n%60)
	case descriptor.TypeInt, descriptor.TypeSafeInt, descriptor.TypeFloat:
		return number(f.Constraint, n)
	}
	texts := g.texts[path]
	if len(texts) == 0 {
		return "example"
	}
	return texts[n%len(texts)]
}

// number returns the i-th integer within the bounds, counted from 0. If there are too few integers, it returns the
// first.
func number(c descriptor.Constraint, i int) int64 {
	least := 1.0
	if c.Max != nil {
		least = min(least, math.Floor(*c.Max))
	}
	if c.Min != nil {
		least = max(least, math.Ceil(*c.Min))
	}
	n := least + float64(i)
	if c.Max != nil && n > *c.Max {
		n = least
	}
	return int64(n)
}

// candidates returns strings that the field accepts. The most plausible ones come first.
func (g *generator) candidates(name string, c descriptor.Constraint) []string {
	if len(c.In) > 0 {
		return c.In
	}
	all := append(byName(name), byFormat(c.Format)...)
	all = append(all, commonTexts()...)
	for i := range variants {
		all = append(all, "example-"+strconv.Itoa(i), "example"+strconv.Itoa(i))
	}
	if c.Pattern != "" {
		all = append(all, g.draw(c.Pattern)...)
	}
	var out []string
	for _, text := range all {
		if c.MinLength != nil && c.Pattern == "" && c.Format == "" {
			text += strings.Repeat("e", max(0, *c.MinLength-utf8.RuneCountInString(text)))
		}
		if fits(c, text) && !slices.Contains(out, text) {
			out = append(out, text)
		}
	}
	return out
}

// fits reports whether a string satisfies a constraint. If the constraint has a format, only strings that byFormat
// returns are accepted.
func fits(c descriptor.Constraint, text string) bool {
	n := utf8.RuneCountInString(text)
	if c.MinLength != nil && n < *c.MinLength || c.MaxLength != nil && n > *c.MaxLength {
		return false
	}
	if c.Format != "" && !slices.Contains(byFormat(c.Format), text) {
		return false
	}
	if c.Pattern == "" {
		return true
	}
	pattern, err := regexp.Compile(c.Pattern)
	return err == nil && pattern.MatchString(text)
}

// byName returns strings that are plausible for a field with this name. A field may still refuse them.
func byName(name string) []string {
	name = strings.ToLower(name)
	for _, guess := range []struct{ part, text string }{
		{"mail", "ada@example.org"}, {"url", "https://example.org/a"}, {"uri", "https://example.org/a"},
		{"cidr", "192.0.2.0/24"}, {"mac", "fa:16:3e:00:00:01"}, {"version", "1.0.0"}, {"host", "example.org"},
		{"domain", "example.org"}, {"phone", "+4930123456"}, {"currency", "EUR"}, {"country", "DE"},
	} {
		if strings.Contains(name, guess.part) {
			return []string{guess.text}
		}
	}
	return nil
}

// byFormat returns valid strings of a format.
func byFormat(f descriptor.Format) []string {
	switch f {
	case descriptor.FormatUUID:
		return []string{"6f2b1c1e-3f57-4d1a-9c3e-0d6a6f6b2a10", "6f2b1c1e-3f57-4d1a-9c3e-0d6a6f6b2a11"}
	case descriptor.FormatDuration:
		return []string{"10m", "1h30m", "5s"}
	case descriptor.FormatDateTime:
		return []string{"2030-01-02T03:04:05Z", "2031-01-02T03:04:05Z"}
	case descriptor.FormatName:
		return []string{"example", "example-1", "example.org", "a"}
	case descriptor.FormatCIDR:
		return []string{"192.0.2.0/24", "198.51.100.0/24", "2001:db8::/32"}
	case descriptor.FormatBase64:
		return []string{"ZXhhbXBsZQ==", "YQ==", ""}
	}
	return nil
}

// commonTexts returns strings that are tried for all fields.
func commonTexts() []string {
	return []string{
		"example", "Example", "a", "A", "1", "10", "100", "1.0", "v1", "1h", "10Gi", "example.org", "192.0.2.1",
		"2001:db8::1", "fa:16:3e:00:00:01", "https://example.org", "ada@example.org", "2030-01-01", "10:00", "en",
		"EUR", "/example", "sha256:" + strings.Repeat("0", 64), strings.Repeat("0", 32),
	}
}

// draw returns strings that match a pattern. It returns none if it does not support the syntax of the pattern.
func (g *generator) draw(pattern string) (out []string) {
	parsed, err := syntax.Parse(pattern, syntax.Perl)
	if err != nil {
		return nil
	}
	for range drawn {
		var text strings.Builder
		g.drawPart(&text, parsed)
		out = append(out, text.String())
	}
	return out
}

func (g *generator) drawPart(text *strings.Builder, part *syntax.Regexp) {
	switch part.Op {
	case syntax.OpLiteral:
		text.WriteString(string(part.Rune))
	case syntax.OpCharClass:
		text.WriteRune(g.drawRune(part.Rune))
	case syntax.OpAnyChar, syntax.OpAnyCharNotNL:
		text.WriteRune('a' + g.random.Int32N(26))
	case syntax.OpConcat, syntax.OpCapture:
		for _, sub := range part.Sub {
			g.drawPart(text, sub)
		}
	case syntax.OpAlternate:
		g.drawPart(text, part.Sub[g.random.IntN(len(part.Sub))])
	case syntax.OpStar:
		g.drawTimes(text, part.Sub[0], 0, -1)
	case syntax.OpPlus:
		g.drawTimes(text, part.Sub[0], 1, -1)
	case syntax.OpQuest:
		g.drawTimes(text, part.Sub[0], 0, 1)
	case syntax.OpRepeat:
		g.drawTimes(text, part.Sub[0], part.Min, part.Max)
	}
}

// drawTimes generates a part of a pattern a random number of times. The number is between least and least+repeats. It
// does not exceed most, unless most is -1.
func (g *generator) drawTimes(text *strings.Builder, part *syntax.Regexp, least, most int) {
	if most < 0 || most > least+repeats {
		most = least + repeats
	}
	for range least + g.random.IntN(most-least+1) {
		g.drawPart(text, part)
	}
}

// drawRune returns a character of a class. pairs has the first and the last character of each range of the class. If
// the first or the last range has printable characters, the result is printable.
func (g *generator) drawRune(pairs []rune) rune {
	i := 2 * g.random.IntN(len(pairs)/2)
	low := max(pairs[i], min(' ', pairs[i+1]))
	high := min(pairs[i+1], max('~', low))
	return low + g.random.Int32N(high-low+1)
}

var indexes = regexp.MustCompile(`\[\d*\]|\.\d+`)

// avoid changes the generator after the service has refused a spec because of violations. A field in a violation is
// set, or gets its next value if it was set. If there is no such field, all fields are set. avoid returns false if
// there is nothing left to try.
func (g *generator) avoid(violations []owner.Violation) bool {
	if len(g.examples) > 0 {
		return false
	}
	changed := false
	for _, v := range violations {
		path := indexes.ReplaceAllString(v.Path, "")
		if !strings.HasPrefix(path, "spec.") {
			continue
		}
		f, _ := g.kind.FieldAt(path)
		if f == nil {
			continue
		}
		changed = true
		if f.Required || g.optional[path] || g.full {
			g.choice[path]++
		}
		g.optional[path] = true
	}
	if !changed && !g.full {
		g.full = true
		changed = true
	}
	return changed
}
