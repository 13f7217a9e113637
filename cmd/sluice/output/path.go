package output

import (
	"bytes"
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"

	"k8s.io/client-go/util/jsonpath"
)

// Path is an expression that selects values of a resource, as in kubectl. The following have the same meaning:
// .spec.resource.mtu, {.spec.resource.mtu} and spec.resource.mtu. A field that does not exist has no values.
type Path struct {
	text string
	path *jsonpath.JSONPath
}

// barePath matches an expression without braces.
var barePath = regexp.MustCompile(`^\.?[^{}]+$`)

// ParsePath parses an expression.
func ParsePath(text string) (Path, error) {
	expression := text
	if barePath.MatchString(text) {
		expression = "{." + strings.TrimPrefix(text, ".") + "}"
	}
	p := jsonpath.New("output").AllowMissingKeys(true)
	if err := p.Parse(expression); err != nil {
		return Path{}, fmt.Errorf("jsonpath %q: %w", expression, err)
	}
	return Path{text, p}, nil
}

// String returns the expression in the form in which it was given.
func (p Path) String() string { return p.text }

// Values returns the values that the path selects in a decoded document.
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

// Text returns the selected values, joined by commas.
func (p Path) Text(tree any) (string, error) {
	values, err := p.Values(tree)
	return join(values), err
}

// join formats values for a table, separated by commas.
func join(values []any) string {
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = Value(v)
	}
	return strings.Join(texts, ",")
}

// Execute executes the expression, which may be a template with {range} and text, and returns the resulting text.
func (p Path) Execute(tree any) (string, error) {
	var b bytes.Buffer
	if err := p.path.Execute(&b, tree); err != nil {
		return "", fmt.Errorf("jsonpath: %w", err)
	}
	return b.String(), nil
}

// Compare compares values for sorting. Absent values come first. Numbers are compared as numbers, all other values as
// texts.
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

// printableTree returns a decoded document whose strings cannot control a terminal. Line breaks are kept.
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
