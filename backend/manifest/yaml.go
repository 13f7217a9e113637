package manifest

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// ParseYAML parses a text with one value and returns its root node; nil if there is none. It returns an error if
// another value follows. Aliases are not expanded. Errors do not contain values.
func ParseYAML(text string) (*yaml.Node, error) {
	var first, next yaml.Node
	breaks := lineBreaks(text)
	loader, err := yaml.NewLoader(strings.NewReader(breaks.hide.Replace(text)))
	if err != nil {
		return nil, err
	}
	err = loader.Load(&first)
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err == nil {
		err = loader.Load(&next)
	}
	switch {
	case errors.Is(err, io.EOF) && len(first.Content) == 1:
		breaks.restoreIn(first.Content[0])
		return first.Content[0], nil
	case err == nil:
		err = fmt.Errorf("line %d: there is more after the end of the value", next.Line)
	}
	return nil, notYAML(withoutValues(err, text))
}

// NodeJSON converts a node within a parsed YAML text to JSON, like [ToJSON]. Line numbers in errors count from the
// beginning of the text. It returns an error for an alias whose anchor is outside of the node.
func NodeJSON(n *yaml.Node) ([]byte, error) {
	var aliases []*yaml.Node
	inside := map[*yaml.Node]bool{}
	var collect func(n *yaml.Node)
	collect = func(n *yaml.Node) {
		inside[n] = true
		if n.Kind == yaml.AliasNode {
			aliases = append(aliases, n)
		}
		for _, c := range n.Content {
			collect(c)
		}
	}
	collect(n)
	for _, alias := range aliases {
		if !inside[alias.Alias] {
			return nil, notYAML(fmt.Errorf("line %d: the anchor of this alias is outside of the item; repeat the value", alias.Line))
		}
	}
	if (expansion{}).of(n) > MaxBytes {
		return nil, notYAML(fmt.Errorf("with what its aliases stand for it has more than %d bytes", MaxBytes))
	}
	raw, err := (&converter{open: map[*yaml.Node]bool{}}).appendJSON(nil, n)
	if err != nil {
		return nil, notYAML(err)
	}
	return raw, nil
}

// converter converts YAML nodes to JSON. open has the nodes that are being converted, for finding cycles.
type converter struct{ open map[*yaml.Node]bool }

// expansion caches the sizes of nodes in bytes, with aliases expanded. A node that contains an alias to itself has the
// size 0; appendJSON returns an error for it.
type expansion map[*yaml.Node]int

// of returns the size of a node, or MaxBytes + 1 if it is larger.
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

// appendJSON appends a node as JSON. The text of a key is used, even if YAML treats it as another type. It returns an
// error for tags of types that JSON does not have, repeated keys, and aliases to a node that contains the alias.
func (c *converter) appendJSON(out []byte, n *yaml.Node) ([]byte, error) {
	n = resolve(n)
	if c.open[n] {
		return nil, fmt.Errorf("line %d: an anchor contains itself", n.Line)
	}
	c.open[n] = true
	defer delete(c.open, n)
	switch tag := n.ShortTag(); {
	case n.Kind == yaml.MappingNode && tag == "!!map":
		return c.appendObject(out, n)
	case n.Kind == yaml.SequenceNode && tag == "!!seq":
		return c.appendList(out, n)
	case n.Kind == yaml.ScalarNode:
		return appendScalar(out, n)
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

// members returns the members of a mapping, followed by the members that merge keys (<<) add.
func (c *converter) members(n *yaml.Node) (members []member, err error) {
	seen := map[string]bool{}
	var merged []*yaml.Node
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := resolve(n.Content[i]), n.Content[i+1]
		switch {
		case key.Kind != yaml.ScalarNode || key.Style&yaml.TaggedStyle != 0 && key.ShortTag() != tagText:
			return nil, fmt.Errorf("line %d: a key is no text; write it in quotes", key.Line)
		case key.Value == "<<" && key.Style&(quoted|yaml.TaggedStyle) == 0:
			value = resolve(value)
			if value.Kind == yaml.SequenceNode {
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

// appendScalar appends a string, a number, a Boolean or null, by the core schema of YAML 1.2.
func appendScalar(out []byte, n *yaml.Node) ([]byte, error) {
	if n.Style&yaml.TaggedStyle == 0 {
		if n.Style&quoted != 0 {
			return appendText(out, n.Value), nil
		}
		tag, value := plainScalar(n.Value)
		switch {
		case value != "":
			return append(out, value...), nil
		case tag == tagFloat:
			return nil, fmt.Errorf("line %d: a number that is infinite or none is not accepted", n.Line)
		}
		return appendText(out, n.Value), nil
	}
	switch wanted := n.ShortTag(); wanted {
	case tagText:
		return appendText(out, n.Value), nil
	case tagBool, tagInt, tagFloat:
		tag, value := plainScalar(n.Value)
		if tag == wanted || tag == tagInt && wanted == tagFloat {
			if value == "" {
				return nil, fmt.Errorf("line %d: a number that is infinite or none is not accepted", n.Line)
			}
			return append(out, value...), nil
		}
		return nil, fmt.Errorf("line %d: a value does not have the type of its tag (a text that begins with ! needs quotes)", n.Line)
	}
	return nil, wrongTag(n)
}

func appendText(out []byte, text string) []byte {
	raw, _ := json.Marshal(text) // a string always has a JSON form
	return append(out, raw...)
}

func wrongTag(n *yaml.Node) error {
	return fmt.Errorf("line %d: it has a tag that is not accepted (a text that begins with ! needs quotes)", n.Line)
}

// twice returns the message about a repeated key. It contains the key only if it is one that all manifests have.
func twice(key string) string {
	if slices.Contains(strings.Fields(topKeys+" "+metadataKeys), key) {
		return "key \"" + key + "\" is given twice"
	}
	return "a key is given twice"
}

func notYAML(err error) error { return fmt.Errorf("not acceptable as YAML: %w", err) }

// withoutValues returns the error of a parser without values of the text. The composer's errors contain the name of an
// anchor, which may be an unquoted password that begins with *.
func withoutValues(err error, text string) error {
	e, ok := errors.AsType[*yaml.LoadError](err)
	if !ok {
		return err
	}
	last := 1 + strings.Count(strings.TrimRight(text, "\n"), "\n") // an error at the end has a later line
	line := max(1, min(e.Mark.Line, last))
	if e.Stage == yaml.ComposerStage {
		name := strings.TrimSuffix(strings.TrimPrefix(e.Message, "unknown anchor '"), "' referenced")
		return &AnchorError{Name: name, Line: line}
	}
	return fmt.Errorf("line %d: %s", line, e.Message)
}

// AnchorError is the error for an alias without an anchor before it.
type AnchorError struct {
	// Name is the name of the anchor. Error does not return it, because it may be an unquoted password that begins with
	// *.
	Name string
	// Line is the line of the alias, counted from 1.
	Line int
}

func (e *AnchorError) Error() string {
	return fmt.Sprintf("line %d: there is an alias without its anchor (a text that begins with * needs quotes)", e.Line)
}
