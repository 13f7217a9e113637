package manifests

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MergePatch changes a manifest by a JSON merge patch (RFC 7386), both as YAML or JSON,
// and returns it as JSON: objects merge, lists replace, null removes. Outside of labels
// and annotations a null stays in the manifest, where it clears what is stored.
func MergePatch(text, patch string) (string, error) {
	whole, err := object(text)
	if err != nil {
		return "", fmt.Errorf("manifest: %w", err)
	}
	change, err := object(patch)
	if err != nil {
		return "", fmt.Errorf("patch: %w", err)
	}
	merge(whole, change, nil)
	out, err := json.Marshal(whole)
	return string(out), err
}

// CheckPatch says what is wrong with the form of a patch.
func CheckPatch(patch string) error {
	if _, err := object(patch); err != nil {
		return fmt.Errorf("patch: %w", err)
	}
	return nil
}

func object(text string) (map[string]any, error) {
	raw, err := manifest.ToJSON(text)
	if err != nil {
		return nil, err
	}
	dec := json.NewDecoder(bytes.NewReader(raw))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil || tree == nil {
		return nil, errors.New("an object is wanted, like {\"spec\": {...}}")
	}
	return tree, nil
}

func merge(to, patch map[string]any, path []string) {
	pairs := slices.Equal(path, []string{"metadata", "labels"}) || slices.Equal(path, []string{"metadata", "annotations"})
	for key, value := range patch {
		if value == nil && pairs {
			delete(to, key)
			continue
		}
		inner, isObject := value.(map[string]any)
		if !isObject {
			to[key] = value
			continue
		}
		old, ok := to[key].(map[string]any)
		if !ok {
			old = map[string]any{}
			to[key] = old
		}
		merge(old, inner, append(path[:len(path):len(path)], key))
	}
}
