package manifest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// ClearRemoved returns edited, in which each of the values that were removed from before is null. Without the null, an
// apply would keep the old value. It does so for labels, annotations, description and expiresAt.
func ClearRemoved(before, edited string) (string, error) {
	was, err := members(before)
	if err != nil {
		return "", err
	}
	now, err := members(edited)
	if err != nil {
		return "", err
	}
	removed := slices.DeleteFunc(strings.Fields(clearable), func(key string) bool {
		_, had := was.metadata[key]
		_, has := now.metadata[key]
		return !had || has
	})
	if len(removed) == 0 {
		return edited, nil
	}
	for _, key := range removed {
		now.metadata[key] = json.RawMessage("null")
	}
	if now.top["metadata"], err = json.Marshal(now.metadata); err != nil {
		return "", err
	}
	out, err := json.Marshal(now.top)
	return string(out), err
}

// document has the top-level members of a document, and the members of its metadata.
type document struct{ top, metadata map[string]json.RawMessage }

func members(text string) (document, error) {
	raw, err := ToJSON(text)
	if err != nil {
		return document{}, err
	}
	var d document
	if err := json.Unmarshal(raw, &d.top); err != nil || d.top == nil {
		return document{}, fmt.Errorf("a mapping with apiVersion, kind, metadata and spec is wanted")
	}
	if err := json.Unmarshal(d.top["metadata"], &d.metadata); err != nil || d.metadata == nil {
		return document{}, fmt.Errorf("metadata must be a mapping")
	}
	return d, nil
}
