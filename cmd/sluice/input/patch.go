package input

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/sluicegw/sluice/backend/manifest"
)

// MergePatch applies a JSON merge patch (RFC 7386) to a manifest, and returns the result as JSON. Both texts are YAML
// or JSON. Objects are merged, and other values are replaced. A null for a label or an annotation removes it. Any other
// null stays in the manifest, where it removes the stored value.
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

// Merges reports whether a patch merges an object into the value at a path. It returns false for a patch that cannot be
// parsed.
func Merges(patch string, path ...string) bool {
	at, err := object(patch)
	for _, key := range path {
		if err != nil || at == nil {
			return false
		}
		at, _ = at[key].(map[string]any)
	}
	return at != nil
}

// Precondition has the revision and the uid that the resource must have. They are empty if the patch does not have
// them.
type Precondition struct{ Revision, UID string }

// CutPrecondition removes the revision and the uid from a patch and returns them. It returns an error for other fields
// that only the gateway sets.
func CutPrecondition(patch string) (rest string, p Precondition, err error) {
	whole, err := object(patch)
	if err != nil {
		return "", p, fmt.Errorf("patch: %w", err)
	}
	if _, ok := whole["status"]; ok {
		return "", p, errors.New("patch: status: a patch does not write it; edit --subresource=status does")
	}
	metadata, ok := whole["metadata"].(map[string]any)
	if !ok {
		return patch, p, nil
	}
	for key, to := range map[string]*string{"revision": &p.Revision, "uid": &p.UID} {
		value, ok := metadata[key]
		*to, _ = value.(string)
		if ok && *to == "" {
			return "", p, fmt.Errorf(
				"patch: metadata.%s: it says what the resource is to have before, as a text, or is left out",
				key,
			)
		}
		delete(metadata, key)
	}
	for _, key := range slices.Sorted(maps.Keys(metadata)) {
		switch {
		case key == "finalizers":
			return "", p, errors.New("patch: metadata.finalizers: a patch does not write them; sluice finalize does")
		case manifest.Owned(key):
			return "", p, fmt.Errorf("patch: metadata.%s: only the gateway writes it; leave it out", key)
		}
	}
	out, err := json.Marshal(whole)
	return string(out), p, err
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
	pairs := slices.Equal(path, []string{"metadata", "labels"}) ||
		slices.Equal(path, []string{"metadata", "annotations"})
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
