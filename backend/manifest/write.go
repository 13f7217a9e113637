package manifest

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v4"
)

// JSON returns the document as indented JSON, without the keys that the gateway owns.
func (d *Document) JSON() ([]byte, error) {
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	enc.SetIndent("", "  ")
	err := enc.Encode(d)
	if err != nil || len(d.Placed) == 0 {
		return b.Bytes(), err
	}
	return d.place(b.Bytes())
}

// place adds the keys of Placed to the JSON object of a document.
func (d *Document) place(document []byte) ([]byte, error) {
	all := bytes.TrimSuffix(bytes.TrimSpace(document), []byte("}"))
	for _, key := range slices.Sorted(maps.Keys(d.Placed)) {
		name, err := json.Marshal(key)
		if err != nil {
			return nil, err
		}
		all = append(append(append(append(all, ','), name...), ':'), d.Placed[key]...)
	}
	var b bytes.Buffer
	err := json.Indent(&b, append(all, '}'), "", "  ")
	return append(b.Bytes(), '\n'), err
}

// YAML returns the document as YAML, without the keys that the gateway owns. Keys are in alphabetical order. Parsing
// the result returns the same strings.
func (d *Document) YAML() ([]byte, error) {
	raw, err := d.JSON()
	if err != nil {
		return nil, err
	}
	return YAML(raw)
}

// YAML converts a JSON value to YAML. Keys are in alphabetical order. Parsing the result returns the same strings.
func YAML(raw []byte) ([]byte, error) {
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree any
	if err := dec.Decode(&tree); err != nil {
		return nil, err
	}
	var b bytes.Buffer
	enc := yaml.NewEncoder(&b)
	enc.SetIndent(2)
	enc.CompactSeqIndent()
	if err := enc.Encode(node(tree)); err != nil {
		return nil, fmt.Errorf("yaml: %w", err)
	}
	return b.Bytes(), enc.Close()
}

// node converts a JSON value to a YAML node. It sets the style of each string, because in the default style of the
// library some strings would not be parsed as the same strings.
func node(v any) *yaml.Node {
	switch v := v.(type) {
	case map[string]any:
		n := &yaml.Node{Kind: yaml.MappingNode}
		for _, key := range slices.Sorted(maps.Keys(v)) {
			n.Content = append(n.Content, textNode(key), node(v[key]))
		}
		return n
	case []any:
		n := &yaml.Node{Kind: yaml.SequenceNode}
		for _, e := range v {
			n.Content = append(n.Content, node(e))
		}
		return n
	case string:
		return textNode(v)
	}
	return &yaml.Node{Kind: yaml.ScalarNode, Value: fmt.Sprint(v)} // a number as it is written, or a Boolean
}

func textNode(s string) *yaml.Node {
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!str", Value: s, Style: yaml.DoubleQuotedStyle}
	switch {
	case isPlain(s):
		n.Style = 0
	case isBlock(s):
		n.Style = yaml.LiteralStyle
	}
	return n
}

var (
	// plainText matches strings that need no quotes, unless notText matches.
	plainText = regexp.MustCompile(`^[A-Za-z0-9/][A-Za-z0-9_./-]*( [A-Za-z0-9_./(][A-Za-z0-9_./(),-]*)*$`)
	// notText matches strings that YAML 1.1 or 1.2 parses as a number, a time, a Boolean or null.
	notText = regexp.MustCompile(`(?i)^([0-9][0-9_]*(\.[0-9_]*)?([e][0-9+-]*)?|0[xob][0-9a-f_]*|[0-9]+-[0-9-]*|y|n|yes|no|on|off|true|false|null)$`)
)

func isPlain(s string) bool { return plainText.MatchString(s) && !notText.MatchString(s) }

// isBlock reports whether a string is easier to read as a block.
func isBlock(s string) bool {
	if !strings.Contains(strings.TrimRight(s, "\n"), "\n") {
		return false
	}
	for line := range strings.Lines(s) {
		line = strings.TrimSuffix(line, "\n")
		if line == "" || line != strings.TrimRight(line, " ") || line[0] == ' ' {
			return false
		}
		for _, r := range line {
			if r < ' ' || r >= 0x7F && r < 0xA0 || r == 0x2028 || r == 0x2029 || r >= 0xD7FF {
				return false
			}
		}
	}
	return true
}
