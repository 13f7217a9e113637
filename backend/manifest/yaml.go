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
	sigs "sigs.k8s.io/yaml"
)

// acceptedTags are the types of YAML that JSON has too, and those that are read as strings.
const acceptedTags = "!!str !!int !!float !!bool !!null !!map !!seq !!merge !!timestamp"

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

// expansion has the sizes of nodes, in bytes, with what aliases in them stand for. A node
// of which an alias within it stands for itself counts as nothing: it is refused later.
type expansion map[*yaml.Node]int

// of returns the size of a node, and MaxBytes + 1 for any larger one.
func (e expansion) of(n *yaml.Node) int {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
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

// checkNode refuses what the conversion to JSON reads without a word: tags of other types,
// and keys that are told apart in YAML only.
func checkNode(n *yaml.Node) error {
	if tag := n.ShortTag(); n.Kind != yaml.DocumentNode && n.Kind != yaml.AliasNode && !slices.Contains(strings.Fields(acceptedTags), tag) {
		return fmt.Errorf("line %d: it has a tag that is not accepted (a text that begins with ! needs quotes)", n.Line)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.ShortTag() != "!!merge" {
			if seen[c.Value] {
				return fmt.Errorf("line %d: %s", c.Line, twice(c.Value))
			}
			seen[c.Value] = true
			if !keepsKey(c) {
				return fmt.Errorf("line %d: a key without quotes is read as a truth value, a number or nothing there; write it in quotes", c.Line)
			}
		}
		if err := checkNode(c); err != nil {
			return err
		}
	}
	return nil
}

// oddKey is a key that YAML 1.1 may read as something else than the text that it is.
var oddKey = regexp.MustCompile(`^(?i:y|n|yes|no|on|off|true|false|null|~|[-+.0-9].*)$`)

// keepsKey says whether a key is taken as it is written: y is true in YAML 1.1, and
// 0x10 is 16.
func keepsKey(key *yaml.Node) bool {
	if key.Style&(yaml.DoubleQuotedStyle|yaml.SingleQuotedStyle) != 0 || !oddKey.MatchString(key.Value) {
		return true
	}
	raw, err := sigs.YAMLToJSON([]byte(key.Value + ": 0"))
	var read map[string]json.RawMessage
	if err != nil || json.Unmarshal(raw, &read) != nil {
		return true // refused for what it is
	}
	_, kept := read[key.Value]
	return kept
}

// Errors of the decoder that quote the document. What they quote may be of a
// write-only field: a password that begins with * or ! and stands without quotes,
// or a key of a map.
var (
	noAnchor   = regexp.MustCompile(`(?s)unknown anchor '.*' referenced`)
	inItself   = regexp.MustCompile(`(?s)anchor '.*' value contains itself`)
	otherType  = regexp.MustCompile(`(?s)cannot (?:decode|unmarshal) .*`)
	invalidKey = regexp.MustCompile(`(?s)(?:invalid|unsupported) map key.*`)
)

// twiceSet is what the decoder says of a key that stands twice.
var twiceSet = regexp.MustCompile(`(?s)key "(.*)" already set in map.*`)

// twice says that a key stands twice. It names those that every manifest has.
func twice(key string) string {
	if slices.Contains(strings.Fields(topKeys+" "+metadataKeys), key) {
		return "key \"" + key + "\" is given twice"
	}
	return "a key is given twice"
}

// withoutValues is the text of a decoder's error without what the document says.
func withoutValues(err error) string {
	text := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "yaml: "), "unmarshal errors:\n  ")
	if m := twiceSet.FindStringSubmatchIndex(text); m != nil {
		return text[:m[0]] + twice(text[m[2]:m[3]])
	}
	text = noAnchor.ReplaceAllLiteralString(text, "there is an alias without its anchor (a text that begins with * needs quotes)")
	text = inItself.ReplaceAllLiteralString(text, "an anchor contains itself")
	text = otherType.ReplaceAllLiteralString(text, "a value does not have the type of its tag (a text that begins with ! needs quotes)")
	text = invalidKey.ReplaceAllLiteralString(text, "a key is no text; write it in quotes")
	return text
}
