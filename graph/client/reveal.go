package client

import (
	"context"
	"encoding/base64"
	"fmt"
)

// RevealedValues are the write-only values of a resource of a sensitive kind. All belong to one revision.
type RevealedValues struct {
	// ResourceID is the global id of the resource.
	ResourceID, Kind string
	// Namespace is nil for GLOBAL kinds.
	Namespace           *string
	Name, UID, Revision string
	Values              []RevealedValue
}

// RevealedValue is one write-only value.
type RevealedValue struct {
	// Path is the path of the field, such as "spec.data".
	Path string
	// Key is the key of the value if the field is a map; nil otherwise.
	Key *string
	// Value is the stored value. Encoding is PLAIN or BASE64.
	Value, Encoding string
}

// Bytes returns the decoded value.
func (e RevealedValue) Bytes() ([]byte, error) {
	if e.Encoding != "BASE64" {
		return []byte(e.Value), nil
	}
	raw, err := base64.StdEncoding.DecodeString(e.Value)
	if err != nil {
		return nil, fmt.Errorf("%s: the value is not base64", e.Path)
	}
	return raw, nil
}

// Reveal returns the write-only values of a resource; nil if the resource does not exist. An empty namespace means the
// default namespace. No other method returns these values.
func (c *Client) Reveal(ctx context.Context, k Kind, namespace, name string) (*RevealedValues, error) {
	var out struct{ Reveal *RevealedValues }
	err := c.Do(ctx, revealDocument, k.within(namespace, map[string]any{"kind": k.Name, "name": name}), &out)
	return out.Reveal, err
}
