package output

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Path is an expression that picks values out of a resource, as kubectl has it:
// .spec.resource.mtu, {.spec.resource.mtu} or spec.resource.mtu. What is absent
// gives nothing.
type Path struct {
	text string
	path *jsonpath.JSONPath
}

// barePath is an expression without braces.
var barePath = regexp.MustCompile(`^\.?[^{}]+$`)

// ParsePath reads an expression.
func ParsePath(text string) (Path, error) {
	expression := text
	if barePath.MatchString(text) {
		expression = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p, err := parse(expression)
	return Path{text, p}, err
}

// parse reads a template. The library's own errors say what it did not understand.
func parse(template string) (*jsonpath.JSONPath, error) {
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(template); err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", template, err)
	}
	return p, nil
}

// String is the expression as it was given.
func (p Path) String() string { return p.text }

// Values are what the path finds in a decoded document.
func (p Path) Values(tree any) ([]any, error) {
	found, err := p.path.FindResults(tree)
	if err != nil {
		return nil, fmt.Errorf("jsonpath %q: %w", p.text, err)
	}
	var out []any
	for _, list := range found {
		for _, v := range list {
			if v.IsValid() && v.CanInterface() {
				out = append(out, v.Interface())
			}
		}
	}
	return out, nil
}

// Text is what the path finds, as one text: several values are joined by commas.
func (p Path) Text(tree any) (string, error) {
	values, err := p.Values(tree)
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Value(v)
	}
	return strings.Join(texts, ","), err
}

// Template writes what a JSONPath template says, as kubectl has it.
type Template struct{ path *jsonpath.JSONPath }

// ParseTemplate reads a template: {.metadata.name}, or with {range} and text between.
func ParseTemplate(text string) (Template, error) {
	if barePath.MatchString(text) {
		text = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p, err := parse(text)
	return Template{p}, err
}

// Execute is the text that the template makes of a decoded document.
func (t Template) Execute(tree any) (string, error) {
	var b bytes.Buffer
	if err := t.path.Execute(&b, tree); err != nil {
		return "", fmt.Errorf("jsonpath: %w", err)
	}
	return b.String(), nil
}

// CustomColumn is a column that the user has named.
type CustomColumn struct {
	Title string
	Path  Path
}

// ParseCustomColumns reads NAME:.path,NAME:.path.
func ParseCustomColumns(text string) ([]CustomColumn, error) {
	var out []CustomColumn
	for part := range strings.SplitSeq(text, ",") {
		title, path, found := strings.Cut(part, ":")
		if !found || title == "" || path == "" {
			return nil, fmt.Errorf("custom-columns: %q is not understood; NAME:.path is accepted, several joined by commas", part)
		}
		p, err := ParsePath(path)
		if err != nil {
			return nil, fmt.Errorf("custom-columns: %w", err)
		}
		out = append(out, CustomColumn{Printable(title), p})
	}
	return out, nil
}

// Compare orders values as tables are sorted: what is absent first, numbers by
// their size, everything else by its text.
func Compare(a, b []any) int {
	return slices.CompareFunc(a, b, func(x, y any) int {
		m, first := number(x)
		n, second := number(y)
		if first && second {
			return cmp.Compare(m, n)
		}
		return strings.Compare(Value(x), Value(y))
	})
}

func number(v any) (float64, bool) {
	switch v := v.(type) {
	case int64:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// compact is a value as JSON in one line.
func compact(v any) string {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return ""
	}
	return strings.TrimSpace(b.String())
}

// printableTree is a decoded document whose texts no terminal acts on. Lines stay
// lines.
func printableTree(v any) any {
	switch v := v.(type) {
	case map[string]any:
		out := make(map[string]any, len(v))
		for key, e := range v {
			out[key] = printableTree(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = printableTree(e)
		}
		return out
	case string:
		return PrintableLines(v)
	}
	return v
}
