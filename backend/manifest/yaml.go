package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parseYAML reads the nodes of one value. It refuses what stands after it; aliases are
// not expanded.
func parseYAML(text string) (*yaml.Node, error) {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var first, next yaml.Node
	if err := dec.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return &first, err
	}
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return &first, err
	default:
		return &first, fmt.Errorf("line %d: there is more after the end of the value", next.Line)
	}
	return &first, nil
}

// converter writes a YAML value as JSON. Open has the nodes that are being written.
type converter struct{ open map[*yaml.Node]bool }

// expansion has the sizes of nodes, in bytes, with what aliases in them stand for. A node
// of which an alias within it stands for itself counts as nothing: it is refused later.
type expansion map[*yaml.Node]int

// of returns the size of a node, and MaxBytes + 1 for any larger one.
func (e expansion) of(n *yaml.Node) int {
	n = resolve(n)
	if size, known := e[n]; known {
		return size
	}
	e[n] = 0
	size := len(n.Value) + 1
	for _, c := range n.Content {
		size = min(size+e.of(c), MaxBytes+1)
	}
	e[n] = size
	return size
}

// appendJSON appends the JSON form of a node. A key is its text, also where YAML reads it as another type. It
// refuses tags that JSON has no type for, keys that stand twice and aliases of what they are in.
func (c *converter) appendJSON(out []byte, n *yaml.Node) ([]byte, error) {
	if n = resolve(n); c.open[n] {
		return nil, fmt.Errorf("line %d: an anchor contains itself", n.Line)
	}
	c.open[n] = true
	defer delete(c.open, n)
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.DocumentNode:
		return c.appendJSON(out, n.Content[0])
	case n.Kind == yaml.MappingNode && tag == "!!map":
		return c.appendObject(out, n)
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		return c.appendList(out, n)
	case n.Kind == yaml.ScalarNode:
		return appendScalar(out, n, tag)
	}
	return nil, wrongTag(n)
}

func (c *converter) appendList(out []byte, n *yaml.Node) (_ []byte, err error) {
	out = append(out, '[')
	for i, e := range n.Content {
		if i > 0 {
			out = append(out, ',')
		}
		if out, err = c.appendJSON(out, e); err != nil {
			return nil, err
		}
	}
	return append(out, ']'), nil
}

func (c *converter) appendObject(out []byte, n *yaml.Node) ([]byte, error) {
	members, err := c.members(n)
	if err != nil {
		return nil, err
	}
	out = append(out, '{')
	for i, m := range members {
		if i > 0 {
			out = append(out, ',')
		}
		out = append(appendText(out, m.key), ':')
		if out, err = c.appendJSON(out, m.value); err != nil {
			return nil, err
		}
	}
	return append(out, '}'), nil
}

type member struct {
	key   string
	value *yaml.Node
}

// members returns the members of a mapping: its own, then those that its merge keys (<<)
// add.
func (c *converter) members(n *yaml.Node) (members []member, err error) {
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0 && key.ShortTag() != "!!str":
			return nil, fmt.Errorf("line %d: a key is no text; write it in quotes", key.Line)
		case key.ShortTag() == "!!merge":
			if value = resolve(value); value.Kind == yaml.SequenceNode {
				merged = append(merged, value.Content...)
			} else {
				merged = append(merged, value)
			}
		case seen[key.Value]:
			return nil, fmt.Errorf("line %d: %s", key.Line, twice(key.Value))
		default:
			seen[key.Value] = true
			members = append(members, member{key.Value, value})
		}
	}
	for _, m := range merged {
		m = resolve(m)
		if m.Kind != yaml.MappingNode {
			return nil, fmt.Errorf("line %d: << merges a mapping or a list of mappings", m.Line)
		}
		if c.open[m] {
			return nil, fmt.Errorf("line %d: an anchor contains itself", m.Line)
		}
		c.open[m] = true
		more, err := c.members(m)
		delete(c.open, m)
		if err != nil {
			return nil, err
		}
		for _, one := range more {
			if !seen[one.key] {
				seen[one.key] = true
				members = append(members, one)
			}
		}
	}
	return members, nil
}

func resolve(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// appendScalar appends a text, a time, which is a text in JSON, a number, a Boolean or null.
// A number that is one in JSON too stays as it is written.
func appendScalar(out []byte, n *yaml.Node, tag string) ([]byte, error) {
	var value any
	tagged := n.Style&yaml.TaggedStyle != 0
	switch {
	case tag == "!!str", tag == "!!merge", tag == "!!timestamp" && !tagged:
		return appendText(out, n.Value), nil
	case tag == "!!null" && !tagged:
		return append(out, "null"...), nil
	case tag == "!!bool":
		value = new(bool)
	case tag == "!!int", tag == "!!float":
		if json.Valid([]byte(n.Value)) {
			return append(out, n.Value...), nil
		}
		value = new(float64)
		if tag == "!!int" {
			value = new(int64)
		}
	default:
		return nil, wrongTag(n)
	}
	if err := n.Decode(value); err != nil { // the error quotes the value
		return nil, fmt.Errorf("line %d: a value does not have the type of its tag (a text that begins with ! needs quotes)", n.Line)
	}
	raw, err := json.Marshal(value)
	if err != nil {
		return nil, fmt.Errorf("line %d: a number that is infinite or none is not accepted", n.Line)
	}
	return append(out, raw...), nil
}

func appendText(out []byte, text string) []byte {
	raw, _ := json.Marshal(text) // a string always has a JSON form
	return append(out, raw...)
}

func wrongTag(n *yaml.Node) error {
	return fmt.Errorf("line %d: it has a tag that is not accepted (a text that begins with ! needs quotes)", n.Line)
}

// noAnchor is the parser's error that quotes the document: a password of a write-only field
// that begins with * and has no quotes.
var noAnchor = regexp.MustCompile(`(?s)unknown anchor '.*' referenced`)

// twice returns the message about a repeated key. It names only keys that every manifest has.
func twice(key string) string {
	if slices.Contains(strings.Fields(topKeys+" "+metadataKeys), key) {
		return "key \"" + key + "\" is given twice"
	}
	return "a key is given twice"
}

// withoutValues returns the text of a parser's error without what the document says.
func withoutValues(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	return noAnchor.ReplaceAllLiteralString(text, "there is an alias without its anchor (a text that begins with * needs quotes)")
}
