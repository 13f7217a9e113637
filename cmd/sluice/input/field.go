package input

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/sluicegw/sluice/backend/descriptor"
	"github.com/sluicegw/sluice/graph/client"
)

// fieldForms describes the accepted tests of fields.
const fieldForms = "PATH=value, !=, <, <=, >, >=, ^= (begins with), *= (contains), PATH in (a,b), PATH notin (a,b), PATH and !PATH are accepted, joined by commas"

// maxTests is the maximum number of tests in one list of a filter of the API.
const maxTests = 50

// field is a field that a filter may name.
type field struct {
	path string
	// inAPI is the path of the field in the filters of the API; empty if it equals path.
	inAPI string
	kind  string // kind of value: String, Int, SafeInt, Float, Boolean, Time or Enum
	list  bool
	enum  []client.EnumValue
}

// ParseFilter parses filters on fields and combines them to a filter in the form of the API; nil if there are none. All
// must hold. If a filter is invalid, the error has what the kind accepts.
func ParseFilter(k client.Kind, texts []string) (map[string]any, error) {
	var tests []any
	for _, text := range texts {
		if !utf8.ValidString(text) {
			return nil, fmt.Errorf("filter: %q is not UTF-8", text)
		}
		for _, part := range splitCommas(text) {
			test, err := parseTest(k, strings.TrimSpace(part))
			if err != nil {
				return nil, fmt.Errorf("filter: %q: %w", text, err)
			}
			tests = append(tests, test)
		}
	}
	switch {
	case len(tests) == 0:
		return nil, nil
	case len(tests) > maxTests:
		return nil, fmt.Errorf("filter: %d tests; at most %d are accepted", len(tests), maxTests)
	}
	return map[string]any{"and": tests}, nil
}

// operators returns pairs of an operator, such as <=, and its name in the API. If an operator begins with a shorter
// one, as <= begins with <, it comes first.
func operators() [][2]string {
	return [][2]string{
		{"==", "eq"}, {"!=", "ne"}, {"<=", "lte"}, {">=", "gte"}, {"^=", "startsWith"}, {"*=", "contains"},
		{"=", "eq"}, {"<", "lt"}, {">", "gt"},
	}
}

func parseTest(k client.Kind, text string) (map[string]any, error) {
	if path, found := strings.CutPrefix(text, "!"); found {
		return presence(k, strings.TrimSpace(path), false)
	}
	end := strings.IndexAny(text, "=!<>^* ")
	if end < 0 {
		return presence(k, text, true)
	}
	path, rest := text[:end], strings.TrimSpace(text[end:])
	for _, o := range operators() {
		if value, found := strings.CutPrefix(rest, o[0]); found {
			return compare(k, path, o[1], strings.TrimSpace(value))
		}
	}
	word, list, found := strings.Cut(rest, "(")
	list, closed := strings.CutSuffix(strings.TrimSpace(list), ")")
	word = strings.TrimSpace(word)
	if path == "" || !found || !closed || word != "in" && word != "notin" {
		return nil, fmt.Errorf("it is not understood; %s", fieldForms)
	}
	return among(k, path, splitCommas(list), word == "notin")
}

// presence returns a test that a field has a value, or if wanted is false, that it has none.
func presence(k client.Kind, path string, wanted bool) (map[string]any, error) {
	f, err := find(k, path)
	if err != nil {
		return nil, err
	}
	return f.nest(map[string]any{"isNull": !wanted}), nil
}

// compare returns a test that compares a field with a value.
func compare(k client.Kind, path, operator, text string) (map[string]any, error) {
	if condition, found := strings.CutPrefix(path, "status.conditions."); found && k.HasConditions() {
		if operator != "eq" {
			return nil, fmt.Errorf("%s: only = is accepted for a condition", path)
		}
		return map[string]any{"conditions": []any{map[string]any{
			"type":   condition,
			"status": map[string]any{"eq": text},
		}}}, nil
	}
	f, err := find(k, path)
	if err != nil {
		return nil, err
	}
	v, err := f.value(text)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(f.accepted(), operator) {
		return nil, fmt.Errorf("%s is %s: %s are accepted", f.path, f.what(), strings.Join(f.signs(), ", "))
	}
	if f.list {
		return f.nest(map[string]any{map[string]string{"eq": "hasAny", "ne": "hasNone"}[operator]: []any{v}}), nil
	}
	return f.nest(map[string]any{operator: v}), nil
}

// among returns a test that a field has one of several values, or if not is set, none of them.
func among(k client.Kind, path string, texts []string, not bool) (map[string]any, error) {
	f, err := find(k, path)
	if err != nil {
		return nil, err
	}
	values := make([]any, len(texts))
	for i, text := range texts {
		if values[i], err = f.value(strings.TrimSpace(text)); err != nil {
			return nil, err
		}
	}
	switch {
	case f.list && not:
		return f.nest(map[string]any{"hasNone": values}), nil
	case f.list:
		return f.nest(map[string]any{"hasAny": values}), nil
	case f.kind == "Boolean":
		return nil, fmt.Errorf("%s is %s: %s are accepted", f.path, f.what(), strings.Join(f.signs(), ", "))
	case not:
		return f.nest(map[string]any{"notIn": values}), nil
	}
	return f.nest(map[string]any{"in": values}), nil
}

// fields returns the fields that filters of a kind accept: metadata, which all kinds have, and the declared fields.
func fields(k client.Kind) []field {
	out := []field{{path: "metadata.name", kind: "String"}}
	if k.Scope != "GLOBAL" {
		out = append(out, field{path: "metadata.namespace", kind: "String"})
	}
	out = append(out, field{path: "metadata.createdAt", kind: "Time"}, field{path: "metadata.updatedAt", kind: "Time"},
		field{path: "metadata.deletionRequestedAt", kind: "Time"})
	for _, i := range k.FilterableFields {
		declared := k.Field(i.Path)
		if declared == nil {
			continue
		}
		f := field{
			path:  i.Path,
			inAPI: declared.APIPath,
			kind:  declared.Type,
			list:  declared.List,
			enum:  declared.EnumValues,
		}
		if len(f.enum) > 0 {
			f.kind = "Enum"
		}
		out = append(out, f)
	}
	return out
}

// Paths returns the paths that filters of a kind accept.
func Paths(k client.Kind) []string {
	var out []string
	for _, f := range fields(k) {
		out = append(out, f.path)
	}
	return out
}

func find(k client.Kind, path string) (field, error) {
	all := fields(k)
	if i := slices.IndexFunc(all, func(f field) bool { return f.path == path }); i >= 0 {
		return all[i], nil
	}
	conditions := ""
	if k.HasConditions() {
		conditions = " and status.conditions.TYPE"
	}
	return field{}, fmt.Errorf("%q cannot be used in filters of kind %s; usable are %s%s",
		path, k.Name, strings.Join(Paths(k), ", "), conditions)
}

// nest returns a filter of the API in which the operators apply to the field.
func (f field) nest(operators map[string]any) map[string]any {
	steps := strings.Split(strings.TrimPrefix(cmp.Or(f.inAPI, f.path), "metadata."), ".")
	out := operators
	for _, step := range slices.Backward(steps) {
		out = map[string]any{step: out}
	}
	return out
}

// accepted returns the operators for a field, by their names in the API.
func (f field) accepted() []string {
	switch {
	case f.list, f.kind == "Boolean", f.kind == "Enum":
		return []string{"eq", "ne"}
	case f.kind == "String":
		return []string{"eq", "ne", "lt", "lte", "gt", "gte", "startsWith", "contains"}
	}
	return []string{"eq", "ne", "lt", "lte", "gt", "gte"}
}

func (f field) signs() []string {
	var out []string
	for _, name := range f.accepted() {
		for _, o := range operators() {
			if o[1] == name && o[0] != "==" {
				out = append(out, o[0])
			}
		}
	}
	if f.kind != "Boolean" || f.list {
		out = append(out, "in", "notin")
	}
	return out
}

func (f field) what() string {
	if f.list {
		return "a list of " + f.kind
	}
	return f.kind
}

// value parses a value of the field's type. The text may be in quotes, which are removed first.
func (f field) value(text string) (any, error) {
	if strings.HasPrefix(text, `"`) {
		bare, err := strconv.Unquote(text)
		if err != nil {
			return nil, fmt.Errorf("%s: the quotes of %s are not understood", f.path, text)
		}
		text = bare
	}
	wrong := func(accepted string) error {
		return fmt.Errorf("%s is %s: %q is none; %s is accepted", f.path, f.what(), text, accepted)
	}
	switch f.kind {
	case "Int", "SafeInt":
		bits, most := 32, int64(math.MaxInt32)
		if f.kind == "SafeInt" {
			bits, most = 64, 1<<53-1
		}
		n, err := strconv.ParseInt(text, 10, bits)
		if err != nil || n > most || n < -most-1 {
			return nil, wrong("a whole number")
		}
		return n, nil
	case "Float":
		x, err := strconv.ParseFloat(text, 64)
		if err != nil || math.IsNaN(x) || math.IsInf(x, 0) {
			return nil, wrong("a number")
		}
		return x, nil
	case "Boolean":
		if text != "true" && text != "false" {
			return nil, wrong("true or false")
		}
		return text == "true", nil
	case "Time":
		if _, err := descriptor.ParseTime(text); err != nil {
			return nil, wrong("a time like 2006-01-02T15:04:05Z")
		}
	case "Enum":
		i := slices.IndexFunc(f.enum, func(v client.EnumValue) bool { return v.Stored == text || v.Name == text })
		if i < 0 {
			known := make([]string, len(f.enum))
			for i, v := range f.enum {
				known[i] = v.Stored
			}
			return nil, wrong(strings.Join(known, ", "))
		}
		return f.enum[i].Name, nil
	}
	return text, nil
}
