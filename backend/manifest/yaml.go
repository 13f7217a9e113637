package manifest

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// acceptedTags are the types of YAML that JSON has too, and those that are read as strings.
const acceptedTags = "!!str !!int !!float !!bool !!null !!map !!seq !!merge !!timestamp"

// checkYAML refuses what the conversion to JSON reads without a word: what
// stands after the value, tags of other types, and keys that are told apart in
// YAML only.
func checkYAML(text string) error {
	dec := yaml.NewDecoder(strings.NewReader(text))
	var first, next yaml.Node
	if err := dec.Decode(&first); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	switch err := dec.Decode(&next); {
	case errors.Is(err, io.EOF):
	case err != nil:
		return err
	default:
		return fmt.Errorf("line %d: there is more after the end of the value", next.Line)
	}
	return checkNode(&first)
}

func checkNode(n *yaml.Node) error {
	if tag := n.ShortTag(); n.Kind != yaml.DocumentNode && n.Kind != yaml.AliasNode && !slices.Contains(strings.Fields(acceptedTags), tag) {
		return fmt.Errorf("line %d: the tag %s is not accepted", n.Line, tag)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 && c.Kind == yaml.ScalarNode && c.ShortTag() != "!!merge" {
			if seen[c.Value] {
				return fmt.Errorf("line %d: key %q is given twice", c.Line, c.Value)
			}
			seen[c.Value] = true
		}
		if err := checkNode(c); err != nil {
			return err
		}
	}
	return nil
}
